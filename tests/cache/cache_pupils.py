"""Plans and stages for the tests of the cache; at the top of a module, so that spawned workers find them."""

import os
import signal
from pathlib import Path

import numpy as np

import headrace as hr

NUM_FILES = 23


def make_files(root, num_files=NUM_FILES, seconds_ago=60):
    """Files of two classes whose bytes follow from their names, old enough to be trusted."""
    for number in range(num_files):
        path = Path(root) / ("cat", "dog")[number % 2] / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, bytes(range(number, number + 40)))
    return Path(root)


def write(path, data):
    path.write_bytes(data)


def counting(path):
    """Counts one call, over all processes: a file that grows by one byte."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, b".")
    os.close(fd)


class Decode:
    """Decodes, and counts how often."""

    def __init__(self, counter=None):
        self.counter = counter

    def __call__(self, record):
        if self.counter is not None:
            counting(self.counter)
        values = np.frombuffer(record.data, np.uint8)
        return {"x": values.astype(np.float32).reshape(-1, 4), "y": record.label, "name": record.id}


def soil(sample):
    """Changes the sample in place."""
    sample["x"] *= 2
    sample["x"][0] = -1
    sample["y"] += 1
    return sample


def jitter(sample, rng):
    return {**sample, "x": sample["x"] + rng.normal(size=sample["x"].shape)}


def plan_of(root, counter=None):
    return hr.folder(root).map(Decode(counter), name="decode")


def die_once(sample):
    """Kills its worker the first time that a certain sample comes."""
    flag = Path(os.environ["HEADRACE_TEST_FLAG"])
    if sample["name"].endswith("/7.bin") and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return sample
