"""Causes that lie in the workers: threads that take turns, and batches ahead that fill the memory."""

import dataclasses

import pytest

from headrace.doctor.measuring.causes.costs import lock, memory
from headrace.doctor.measuring.made_up import World
from headrace.doctor.measuring.model import MemoryUse
from headrace.doctor.meters.memory import MemorySeries


def as_threads(m, cores=1.0):
    """The same rounds, as if threads of the loop's process had worked on so many cores."""
    runs = []
    for run in m.runs:
        steps = run.timed.steps
        wall_s = steps.end_s - steps.asked_s[0]
        timed = dataclasses.replace(run.timed, consumer_cpu_s=cores * wall_s, workers_cpu_s=0.0)
        runs.append(dataclasses.replace(run, timed=timed))
    return dataclasses.replace(m, runs=tuple(runs))


TURNS = World(wall_ms={"transform": 4}, num_workers=4, cpu_inflation=4.0)


def test_threads_that_take_turns_are_named():
    found = lock(as_threads(TURNS.measured()))
    assert found.cause == "lock"
    assert found.text.startswith("4 threads deliver x")
    assert found.remedy[0] == 'runner="processes"'
    assert set(found.evidence) == {run.id for run in TURNS.measured().runs if run.arm in {"L", *PLAIN}}


PLAIN = ("plain workers=0", "plain workers=4")


@pytest.mark.parametrize(
    "make",
    [
        lambda: TURNS.measured(),  # processes
        lambda: as_threads(TURNS.measured(), cores=0.2),  # threads that wait
        lambda: as_threads(TURNS.measured(), cores=3.5),  # threads that compute beside each other
        lambda: as_threads(World(wall_ms={"transform": 4}, num_workers=4).measured()),  # four times as fast as one
        lambda: as_threads(dataclasses.replace(TURNS, num_workers=1).measured()),
        lambda: as_threads(TURNS.measured_from([run for run in TURNS.rounds() if run.arm != "plain workers=0"])),
    ],
    ids=["processes", "waiting", "beside each other", "faster", "one", "no reference"],
)
def test_others_are_not(make):
    assert lock(make()) is None


def with_memory(ahead_bytes, *, free=8 << 30, shm=None, num_workers=2):
    m = World(wall_ms={"decode": 1}, num_workers=num_workers).measured()
    series = MemorySeries(
        moments=(), peaks=None, shm_size_bytes=None, shmem_of=None, group_peak_bytes=None, why_empty=None
    )
    use = MemoryUse(series=series, growth=None, batch_bytes=ahead_bytes // 4, ahead_bytes=ahead_bytes)
    host = dataclasses.replace(m.preflight.machine, free_memory_bytes=free, shm_free_bytes=shm)
    return dataclasses.replace(m, memory=use, preflight=dataclasses.replace(m.preflight, machine=host))


@pytest.mark.parametrize(
    ("world", "place"),
    [
        ({"ahead_bytes": 5 << 30}, "memory"),
        ({"ahead_bytes": 48 << 20, "shm": 64 << 20}, "/dev/shm"),
        ({"ahead_bytes": 5 << 30, "shm": 6 << 30}, "/dev/shm"),
        ({"ahead_bytes": 3 << 30, "shm": 16 << 30}, None),
        ({"ahead_bytes": 5 << 30, "num_workers": 0}, None),
        ({"ahead_bytes": 0, "free": 0}, None),
        ({"ahead_bytes": 5 << 30, "free": None}, None),
    ],
)
def test_batches_ahead_that_take_more_than_half_of_what_is_free_are_named(world, place):
    found = memory(with_memory(**world))
    assert (found is None) == (place is None)
    if found is not None:
        assert f"of {place} are free" in found.text
        assert found.remedy[0].startswith("prefetch_factor lower")
