"""Trains with ExactTrainer under torchrun: whole, cut, and gone on with; each rank writes down what it got.

torchrun --nproc-per-node 2 -m tests.loop.ranked_trainer FOLDER CUT
"""

import json
import os
import pathlib
import sys

import torch
from tests.loop.test_huggingface import fit, make_loader


def main():
    folder, cut = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def run(name, **given):
        loader = make_loader(batch_size=4, tail="drop", rank=rank, world_size=world_size)
        return fit(folder / name, loader=loader, ddp_backend="gloo", **given)

    runs = [run("whole"), run("cut", cut=cut), run("cut", seed=99, resume=True)]
    (folder / f"rank-{rank}.json").write_text(json.dumps(runs), encoding="utf-8")
    torch.distributed.barrier()
    os._exit(0)  # while Trainer's model is wrapped, to take the process group down may wait for ever


if __name__ == "__main__":
    main()
