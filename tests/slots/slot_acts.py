"""Both halves of the transport in one process, and acts whose results fill slots with bytes that can be checked."""

import os
import signal

import numpy as np
import torch

from headrace.engine.batch_memory import batch_memory, for_the_result
from headrace.engine.run.slots import SlotTransport


class Pair:
    """A consumer and one worker, with a pipe between them that copies, as the real one does."""

    def __init__(self, max_in_flight=3, **options):
        self.channel = SlotTransport(**options).open(1, max_in_flight)
        self.sender = self.channel.sender(0)
        self.sender.open()
        self.num_in_pipe = 0

    def travel(self, value):
        parts = [memoryview(bytearray(part)) for part in self.sender.encode(value)]
        self.num_in_pipe = sum(map(len, parts))
        return self.channel.decode(0, parts)

    def close(self):
        if self.sender is not None:
            self.sender.close()
            self.sender = None
            self.channel.close()


def pattern(value, size):
    """Bytes that occur in no other batch in this place."""
    return ((np.arange(size, dtype=np.uint64) * 2654435761 + value * 40503) >> 7).astype(np.uint8)


def make_batch(task, act, mark):
    """About a megabyte, of a size that depends on the value."""
    mark(0)
    size = 200_000 + act.value * 7919 % 1_000_000
    return {
        "image": torch.from_numpy(pattern(act.value, size)),
        "mask": pattern(act.value + 1, size // 3),
        "value": act.value,
    }


def make_batch_there(task, act, mark):
    """The same batch, made in memory that the sender lends; or a part of it, and sometimes not at all."""
    batch = make_batch(task, act, mark)
    with for_the_result():
        for name in ("image", "mask")[: act.value % 3]:
            memory = batch_memory((len(batch[name]),), np.uint8)
            memory[:] = np.asarray(batch[name])
            batch[name] = torch.from_numpy(memory) if name == "image" else memory
        if act.value % 97 == 0:
            raise ValueError("a failed order")
    return batch


def is_whole(batch):
    """True if not one byte of a batch is another's."""
    size = len(batch["image"])
    return np.array_equal(batch["image"].numpy(), pattern(batch["value"], size)) and np.array_equal(
        batch["mask"], pattern(batch["value"] + 1, size // 3)
    )


def kill_self(task, act, mark):
    """Dies while a batch of its own is on the way."""
    os.kill(os.getpid(), signal.SIGKILL)
