"""Processes with slots sit the exam of all runners; here every array goes into a slot, however small."""

import pytest

from headrace.engine.run import ProcessRunner
from headrace.engine.run.slots import SlotTransport
from headrace.testing import RunnerSuite


class _Slots(RunnerSuite):
    starts_processes = True
    can_persist = True
    context: str

    def make_runner(self, num_workers, **options):
        return ProcessRunner(num_workers, context=self.context, transport=SlotTransport(least_bytes=0), **options)


class TestFork(_Slots):
    context = "fork"


@pytest.mark.slow
class TestForkserver(_Slots):
    context = "forkserver"


@pytest.mark.slow
class TestSpawn(_Slots):
    context = "spawn"


class TestTightMemory(_Slots):
    """With a limit that only few slots fit, most results go through the pipe."""

    context = "fork"

    def make_runner(self, num_workers, **options):
        transport = SlotTransport(memory_limit=1 << 16, least_bytes=0)
        return ProcessRunner(num_workers, context=self.context, transport=transport, **options)
