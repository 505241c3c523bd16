"""Trains with `headrace.Loop` under torchrun, and prints what rank 0 has in the end.

torchrun --nproc-per-node 2 -m tests.loop.ranked_loop FOLDER
"""

import json
import sys

import torch
import torch.distributed as dist
from tests.loop.sensitive import sample
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import headrace as hr


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    model = DistributedDataParallel(net)
    data = hr.Plan.of(range(40)).map(sample)
    rest = hr.Plan.of(range(40, 53)).map(sample)

    def measure(batch):
        return {
            "loss": cross_entropy(model(batch["x"]), batch["y"], reduction="none"),
            "one": torch.ones(len(batch["y"])),
        }

    loop = hr.Loop(
        model,
        torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
        # 5 batches by 2 each epoch: the last step has one.
        train=hr.DataLoader(data, 8, shuffle=True, seed=3, tail="drop", rank=rank, world_size=world),
        evaluate=hr.DataLoader(rest, 8, tail="pad", rank=rank, world_size=world),
        measure=measure,
        epochs=2,
        folder=sys.argv[1],
        accumulate=2,
        clip=1.0,
    )
    for step in loop:
        step.update(cross_entropy(model(step.batch["x"]), step.batch["y"]))
    loop.close()
    said = [loop.steps, loop.history, [value.flatten().tolist() for value in net.state_dict().values()]]
    held = [None] * world
    dist.all_gather_object(held, said)
    assert all(one == held[0] for one in held), "ranks differ"
    if rank == 0:
        print(json.dumps(said))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
