"""Trains and restores models that FSDP2 shards, under torchrun: several jobs for each start.

torchrun --nproc-per-node 2 -m tests.loop.sharded JOBS      a JSON list of {"do": "train" or "load", ...}
"""

import faulthandler
import json
import os
import pathlib
import random
import signal
import sys

import numpy as np
import torch
import torch.distributed as dist
from tests.loop.sensitive import digest, sample, shake
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate

import headrace as hr

ACCUMULATE = 2
NUM_SAMPLES = 64


class Net(nn.Module):
    """Has what shards badly: sizes that do not divide, a parameter of one row, tied weights, buffers of each rank's own."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 37)
        self.norm = nn.BatchNorm1d(37)
        self.drop = nn.Dropout(0.3)
        self.back = nn.Linear(37, 37, bias=False)
        self.again = nn.Linear(37, 37)
        self.again.weight = self.back.weight
        self.last = nn.Linear(37, 2)
        self.shift = nn.Parameter(torch.zeros(1, 37))
        self.register_buffer("scale", torch.ones(3), persistent=False)

    def forward(self, x):
        if self.training:
            self.scale.mul_(1.01).add_(x.detach().mean() / 50)
        x = self.drop(self.norm(self.first(x))) * self.scale.mean() + self.shift
        return self.last(torch.relu(self.again(torch.relu(self.back(x)))))


def sharded(kind, seed):
    """A net, and its optimizer; kind: plain, fsdp, hsdp (two replicas), tensor (two ways of dividing at once)."""
    torch.manual_seed(seed)
    net = Net()
    if kind == "hsdp":
        mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("replicate", "shard"))
        fully_shard(net.last, mesh=mesh)
        fully_shard(net, mesh=mesh)
    elif kind == "tensor":
        from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

        mesh = init_device_mesh("cpu", (dist.get_world_size() // 2, 2), mesh_dim_names=("data", "tensor"))
        net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
        parallelize_module(net[0], mesh["tensor"], ColwiseParallel(output_layouts=Replicate()))
        fully_shard(net, mesh=mesh["data"])
    elif kind == "fsdp":
        fully_shard(net.last)
        fully_shard(net)
    return net, torch.optim.AdamW(net.parameters(), lr=1e-2)


def whole(value):
    """A nested value with whole tensors in place of those that ranks share."""
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    return value.full_tensor() if isinstance(value, DTensor) else value


def state(net, optimizer):
    """All numbers of a run, by name."""
    return {
        "net": whole(dict(net.state_dict())),
        "scale": getattr(net, "scale", None),
        "moments": whole({str(key): one for key, one in optimizer.state_dict()["state"].items()}),
        "gradients": whole({name: one.grad for name, one in net.named_parameters()}),
    }


def made(job, seed=0):
    """Net, optimizer and checkpointer of a job."""
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    net, optimizer = sharded(job["kind"], seed)
    torch.manual_seed(seed + rank)
    random.seed(seed + rank)
    np.random.seed(seed + rank)
    plan = hr.Plan.of(range(NUM_SAMPLES)).map(sample).map(shake)
    loader = hr.DataLoader(plan, 8, shuffle=True, seed=5, tail="drop", rank=rank, world_size=world)
    checkpoint = hr.Checkpointer(
        job["folder"], model=net, optimizer=optimizer, loader=loader, every=2, every_s=None, keep=job.get("keep", 2)
    )
    return net, optimizer, checkpoint


def train(job):
    """Trains; with `die_at` each rank is killed at that batch, with `until` all end there without a word."""
    rank = dist.get_rank()
    net, optimizer, checkpoint = made(job, job.get("seed", 0))
    with pathlib.Path(f"{job['records']}-{rank}").open("a", encoding="utf-8") as records:
        for epoch in checkpoint.epochs(2):
            for batch in checkpoint.batches():
                x = batch["x"] * (1 + 0.01 * random.random())
                loss = nn.functional.cross_entropy(net(x), batch["y"]) / ACCUMULATE
                loss.backward()
                number = checkpoint.batch
                if number % ACCUMULATE == 0:
                    optimizer.step()
                    checkpoint.step()
                    if [epoch, number] == job.get("die_at"):
                        os.kill(os.getpid(), signal.SIGKILL)  # while what was due is being written
                    optimizer.zero_grad()
                numbers = state(net, optimizer)
                record = {
                    "place": [epoch, number],
                    "ids": list(batch.sample_ids),
                    "loss": loss.item().hex(),
                    "digests": {name: digest(one) for name, one in numbers.items()},
                }
                records.write(json.dumps(record) + "\n")
                records.flush()
                if [epoch, number] == job.get("save_at"):
                    checkpoint.save(wait=True)
                if [epoch, number] == job.get("until"):
                    checkpoint.save(wait=True)
                    dist.barrier()
                    checkpoint.close()
                    return
            net.eval()
            with torch.no_grad():
                net(torch.ones(2, 6))  # leaves the outermost parameters whole
            net.train()
            checkpoint.save(metric=1.0)
    checkpoint.close()


def load(job):
    """Restores into a net that began otherwise, and writes down what it then is."""
    net, optimizer, checkpoint = made(job, 77)
    found = checkpoint.restore(quiet=True)
    numbers = state(net, optimizer)
    checkpoint.close()
    said = {
        "step": found.step,
        "promise": found.promise,
        "lost": found.lost,
        "differs": found.differs,
        "state": {name: digest(one) for name, one in numbers.items()},
    }
    if not dist.is_initialized() or dist.get_rank() == 0:
        pathlib.Path(job["out"]).write_text(json.dumps(said), encoding="utf-8")
    return said


def by_torch(job):
    """Loads the model with torch's own reader of sharded safetensors; says whether it is what `load` gives."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    ours, _, checkpoint = made(job, 77)
    place = pathlib.Path(checkpoint.restore(quiet=True).path)
    checkpoint.close()
    theirs, _ = sharded(job["kind"], 78)
    values = theirs.state_dict()
    del values["again.weight"]  # tied: the checkpoint holds it once
    dcp.load(values, storage_reader=HuggingFaceStorageReader(str(place / "model")))
    expected = {name: one for name, one in ours.state_dict().items() if name in values}
    is_same = digest(whole(values)) == digest(whole(expected))
    if dist.get_rank() == 0:
        pathlib.Path(job["out"]).write_text(json.dumps(is_same), encoding="utf-8")


def refused(job):
    """Saves while FSDP2 holds gradients back; writes down what was said."""
    net, _, checkpoint = made(job, 0)
    net.set_requires_gradient_sync(False)
    net(torch.ones(4, 6)).sum().backward()
    try:
        checkpoint.save(wait=True)
        said = "nothing"
    except hr.errors.CheckpointError as error:
        said = str(error)
    checkpoint.close()
    if dist.get_rank() == 0:
        pathlib.Path(job["out"]).write_text(json.dumps(said), encoding="utf-8")


def repeats(job):
    """Asks a sharded run whether its steps repeat; writes down the answer, whether all was put back, and what is pending."""
    net, optimizer, checkpoint = made(job, 0)

    def step(batch):
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()

    step(torch.ones(4, 6))
    optimizer.zero_grad()
    before = digest(state(net, optimizer))
    found = checkpoint.check(step, [torch.full((4, 6), float(number)) for number in range(3)])
    said = [found.is_exact, digest(state(net, optimizer)) == before]
    step(torch.ones(4, 6))
    said.append(checkpoint._gradients.state() == {})
    net(torch.ones(4, 6)).square().mean().backward()  # added to gradients that a step has used
    said.append(set(checkpoint._gradients.state()) == {name for name, _ in net.named_parameters()})
    checkpoint.close()
    if dist.get_rank() == 0:
        pathlib.Path(job["out"]).write_text(json.dumps(said), encoding="utf-8")


JOBS = {"train": train, "load": load, "by_torch": by_torch, "refused": refused, "repeats": repeats}


def main():
    faulthandler.enable()  # what gloo ends by SIGABRT says where it was
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for job in json.loads(sys.argv[1]):
        JOBS[job["do"]](job)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
