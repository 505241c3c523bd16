"""Every runner sits the same exam."""

import pytest

from headrace.engine.run import HostRunner, InlineRunner, ProcessRunner, ThreadRunner
from headrace.testing import RunnerSuite


class TestInline(RunnerSuite):
    worker_counts = (0,)

    def make_runner(self, num_workers, **options):
        return InlineRunner()


class TestThreads(RunnerSuite):
    def make_runner(self, num_workers, **options):
        return ThreadRunner(num_workers, **options)


class _Processes(RunnerSuite):
    starts_processes = True
    can_persist = True
    context: str

    def make_runner(self, num_workers, **options):
        return ProcessRunner(num_workers, context=self.context, **options)


class TestFork(_Processes):
    context = "fork"


@pytest.mark.slow
class TestForkserver(_Processes):
    context = "forkserver"


@pytest.mark.slow
class TestSpawn(_Processes):
    context = "spawn"


class _Hosts(RunnerSuite):
    starts_processes = True
    can_persist = True
    context: str

    def make_runner(self, num_workers, **options):
        return HostRunner(num_workers, context=self.context, **options)


class TestHostByFork(_Hosts):
    context = "fork"


@pytest.mark.slow
class TestHostBySpawn(_Hosts):
    context = "spawn"
