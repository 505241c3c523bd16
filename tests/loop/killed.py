"""Trains as `sensitive` does, saving after each step, and writes down what happened; killed behind the n-th record.

python -m tests.loop.killed FOLDER RECORDS NUM_RECORDS LOADER
"""

import json
import os
import pathlib
import signal
import sys

import torch
from tests.loop.sensitive import Run


def main():
    folder, path, num, loader = sys.argv[1:]
    torch.set_num_threads(1)
    # Another seed where there is something to go on from: what is not restored shows.
    seed = 99 if any(pathlib.Path(folder).glob("step-*")) else 0
    run = Run(folder, loader=loader, seed=seed, every=1, background=True)
    with pathlib.Path(path).open("a", encoding="utf-8") as records:
        for number, record in enumerate(run.micro_steps(), 1):
            records.write(json.dumps(record) + "\n")
            records.flush()
            if number == int(num):
                os.kill(os.getpid(), signal.SIGKILL)
    run.checkpoint.close()
    print("done")


if __name__ == "__main__":
    main()
