"""Keeps, drops, forks and kills at random, and looks at every byte. HEADRACE_STRESS_S=300 does it for five minutes."""

import gc
import os
import random
import time

import psutil
import pytest
from slot_acts import is_whole, kill_self, make_batch, make_batch_there

from headrace.engine.run import HostRunner, ProcessRunner, slots_forks
from headrace.engine.run.slots import SlotTransport
from headrace.errors import WorkerDied
from headrace.testing import nothing_left
from headrace.testing.tasks import Act, ActTask

SECONDS = float(os.environ.get("HEADRACE_STRESS_S", "4"))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 100)
def test_no_wrong_byte_no_leak_no_hang():
    rng = random.Random(int(os.environ.get("HEADRACE_STRESS_SEED", "0")))
    end = time.monotonic() + SECONDS
    num_batches = num_deaths = num_failures = num_children = 0
    with nothing_left(within_s=20):
        kept, children, fds = [], [], psutil.Process().num_fds()
        while time.monotonic() < end:
            limit = rng.choice([None, None, 30_000_000])
            kind = rng.choice([ProcessRunner, HostRunner])
            runner = kind(
                rng.randint(1, 3), context="fork", persistent=rng.random() < 0.5, transport=SlotTransport(limit)
            )
            task = ActTask()
            for _ in range(rng.randint(1, 3)):
                first = rng.randrange(1 << 30)
                make = rng.choice([make_batch, make_batch_there])
                orders = [
                    Act(do=kill_self if rng.random() < 0.01 else make, value=first + i)
                    for i in range(rng.randint(1, 60))
                ]
                results, batch = runner.run(task, orders), None
                try:
                    for expected, batch in enumerate(results, start=first):
                        assert batch["value"] == expected
                        num_batches += 1
                        kept.append(batch)
                        num_kept = rng.choice([0, 1, 5, 20])
                        while len(kept) > num_kept:
                            assert is_whole(kept.pop(rng.randrange(len(kept))))
                        if rng.random() < 0.01:
                            children.append(child_that_looks(kept, rng.uniform(0, 0.3)))
                            num_children += 1
                        if rng.random() < 0.01:
                            break
                except WorkerDied:
                    num_deaths += 1
                except ValueError:
                    num_failures += 1
                results.close()
            runner.close()
            children = [pid for pid in children if not has_ended_well(pid)]
            assert psutil.Process().num_fds() <= fds + 10 + 4 * len(children)
        while children:
            children = [pid for pid in children if not has_ended_well(pid)]
            time.sleep(0.01)
        assert all(map(is_whole, kept))
        del kept, results, runner, batch
        gc.collect()
        slots_forks.look_up()
    print(
        f"{num_batches} batches, {num_deaths} deaths of workers, {num_failures} failed orders, {num_children} children"
    )


def child_that_looks(kept, after_s):
    """Forks a child that looks at what was held at that moment, later."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            time.sleep(after_s)
            status = 0 if all(map(is_whole, kept)) else 2
        finally:
            os._exit(status)
    return pid


def has_ended_well(pid):
    ended, status = os.waitpid(pid, os.WNOHANG)
    assert status == 0, "a forked child saw wrong bytes"
    return ended == pid
