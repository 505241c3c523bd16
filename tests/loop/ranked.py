"""Trains with DistributedDataParallel under torchrun; writes down what each rank got and what became of the model.

torchrun --nproc-per-node 2 -m tests.loop.ranked FOLDER RECORDS MAX_STEPS
"""

import json
import os
import pathlib
import random
import sys

import numpy as np
import torch
import torch.distributed as dist
from tests.loop.sensitive import NUM_SAMPLES, digest, sample, shake
from torch.nn.parallel import DistributedDataParallel

import headrace as hr


def main():
    folder, path, most = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    seed = 99 if any(pathlib.Path(folder).glob("step-*")) else rank
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(0)
    net = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))
    )
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    plan = hr.Plan.of(range(NUM_SAMPLES)).map(sample).map(shake)
    loader = hr.DataLoader(plan, 4, shuffle=True, seed=5, tail="drop", rank=rank, world_size=world)
    checkpoint = hr.Checkpointer(folder, model=net, optimizer=optimizer, loader=loader, every=2, every_s=None)
    with pathlib.Path(f"{path}-{rank}").open("a", encoding="utf-8") as records:
        for epoch in checkpoint.epochs(3):
            for batch in checkpoint.batches():
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(net(batch["x"] + random.random()), batch["y"])
                loss.backward()
                optimizer.step()
                record = {
                    "place": [epoch, checkpoint.batch],
                    "ids": list(batch.sample_ids),
                    "data": digest(batch["x"]),
                    "loss": loss.item().hex(),
                    "net": digest(net.state_dict()),
                }
                records.write(json.dumps(record) + "\n")
                records.flush()
                checkpoint.step()
                if checkpoint.steps == int(most):
                    checkpoint.wait()
                    dist.barrier()
                    os._exit(0)
    checkpoint.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
