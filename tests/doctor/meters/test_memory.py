"""Memory of real processes: what is counted, once; what comes and goes; and that the side process leaves nothing."""

import contextlib
import dataclasses
import json
import os
import resource
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from headrace.doctor.meters import memory, sampling
from headrace.doctor.meters.control_group import ControlGroup, control_group_of
from headrace.doctor.meters.growth import judge_growth
from headrace.doctor.meters.memory import MemoryMoment, MemorySampler, MemorySeries
from headrace.doctor.meters.process_tree import ProcessTree

MIB = 1 << 20

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is followed on Linux only"),
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this kernel does not add up pages"),
]


class Child:
    """A bare interpreter that runs a program up to its next `step()`, and on when it is told to."""

    def __init__(self, program, *arguments, with_site=False):
        text = (
            "import os, sys\n"
            "def step(*said):\n    print(*said, flush=True)\n    return sys.stdin.readline()\n"
            + textwrap.dedent(program)
        )
        self.process = subprocess.Popen(
            [sys.executable, *([] if with_site else ["-S"]), "-c", text, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid
        self.said = self.process.stdout.readline().strip()

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.said = self.process.stdout.readline().strip()

    def end(self):
        with contextlib.suppress(psutil.NoSuchProcess):
            for one in psutil.Process(self.pid).children(recursive=True):
                one.kill()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def child():
    made = []

    def start(program, *arguments, **options):
        made.append(Child(program, *arguments, **options))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_what_forked_workers_share_is_counted_once(child):
    family = child("""
        big = bytearray(os.urandom(1 << 20) * 64)
        end, told = os.pipe()
        for _ in range(3):
            if not os.fork():
                total = sum(big[::4096])
                os.write(told, b"x")
                os.read(0, 1)  # lives on; never gets to print
        seen = b""
        while len(seen) < 3:
            seen += os.read(end, 3)
        print(flush=True)
        os.wait()
    """)
    found = ProcessTree(family.pid).look()
    assert (found.num_processes, found.num_unread) == (4, 0)
    assert found.rss > 4 * 64 * MIB
    assert 64 * MIB < found.anon <= found.pss < 2 * 64 * MIB


SHM_PROGRAM = """
    import mmap
    step()
    name = "/dev/shm/headrace-test-%d" % os.getpid()
    file = os.open(name, os.O_CREAT | os.O_RDWR)
    os.unlink(name)  # as torch does: whoever holds the descriptor keeps the memory
    for _ in range(64):
        os.write(file, b"x" * (1 << 20))
    step()
    mapped = mmap.mmap(file, 0)
    sum(mapped[::4096])
    step()
"""


@pytest.mark.skipif(not Path(sampling.SHM).is_dir(), reason="there is no /dev/shm")
def test_shared_memory_that_nobody_has_mapped_is_counted_and_only_once_when_mapped(child):
    family = child(SHM_PROGRAM)
    watch = sampling._Watch(family.pid)
    if watch.shmem_of is None:
        pytest.skip("this kernel does not tell shared memory")
    first = watch.look()
    assert first.unmapped_shm == 0
    family.go()
    waiting = watch.look()
    assert waiting.shmem < MIB
    assert waiting.unmapped_shm > 60 * MIB
    assert waiting.shm_used - first.shm_used > 60 * MIB
    family.go()
    mapped = watch.look()
    assert mapped.shmem > 60 * MIB
    assert mapped.unmapped_shm < 32 * MIB
    assert mapped.pss + mapped.unmapped_shm < first.pss + 96 * MIB


@pytest.mark.skipif(not Path(sampling.SHM).is_dir(), reason="there is no /dev/shm")
def test_a_series_of_it(child):
    family = child(SHM_PROGRAM)
    with MemorySampler(family.pid, period_s=0.05) as sampler:
        family.go()
    series = sampler.series
    assert series.why_empty is None
    assert len(series.moments) >= 2
    assert [one.at_s for one in series.moments] == sorted(one.at_s for one in series.moments)
    assert series.moments[-1].num_processes == 1
    if series.shmem_of is None:
        pytest.skip("this kernel does not tell shared memory")
    assert series.peaks.unmapped_shm_bytes > 60 * MIB
    assert series.peaks.total_bytes >= series.moments[-1].total_bytes > 60 * MIB
    assert series.peaks.total_bytes - series.peaks.pss_bytes > 32 * MIB
    assert 60 * MIB < series.peaks.shm_used_bytes <= series.shm_size_bytes


@pytest.mark.slow
@pytest.mark.skipif(not Path(sampling.SHM).is_dir(), reason="there is no /dev/shm")
def test_a_tensor_that_waits_in_shared_memory_is_counted(child):
    """As between a worker that has sent a batch and a loop that has not taken it: a descriptor, and no mapping."""
    family = child(
        """
        import torch
        step()
        tensor = torch.ones(64 << 20, dtype=torch.uint8)
        descriptor, size = tensor.untyped_storage()._share_fd_cpu_()
        held = os.dup(descriptor)
        del tensor
        step()
        """,
        with_site=True,
    )
    with MemorySampler(family.pid) as sampler:
        family.go()
    last = sampler.series.moments[-1]
    if last.unmapped_shm_bytes is None:
        pytest.skip("this kernel does not tell shared memory")
    assert last.shmem_bytes < 8 * MIB
    assert last.unmapped_shm_bytes > 60 * MIB


def test_growth_of_a_process_that_keeps_what_it_made_is_a_leak_and_of_one_that_fills_up_a_plateau(child):
    program = """
        kept, most = [], int(sys.argv[1])
        while True:
            if len(kept) < most:
                kept.append(bytearray(b"x") * (1 << 18))
            step()
    """
    verdicts = []
    for most in (1000, 8):
        family = child(program, str(most))
        tree, seen = ProcessTree(family.pid), []
        for batch in range(40):
            seen.append((batch, tree.look().anon))
            family.go()
        verdicts.append(judge_growth(seen).verdict)
        if most == 1000:
            assert judge_growth(seen).bytes_per_1000 == pytest.approx(1000 * (1 << 18), rel=0.1)
    assert verdicts == ["leak", "plateau"]


def test_processes_that_come_and_go_do_no_harm(child):
    family = child("""
        import select
        print(flush=True)
        while not select.select([0], [], [], 0)[0]:
            if not os.fork():
                if not os.fork():
                    os._exit(0)
                os.wait()
                os._exit(0)
            os.wait()
    """)
    tree = ProcessTree(family.pid)
    most = 0
    for _ in range(300):
        found = tree.look()
        assert found.num_processes >= 1
        assert found.num_unread == 0
        most = max(most, found.num_processes)
    assert most <= 4
    assert len(tree._alive) <= 4


def test_a_worker_whose_parent_has_ended_is_still_counted_and_the_dead_are_not(child):
    family = child("""
        end, told = os.pipe()
        if not os.fork():
            if not os.fork():
                os.write(told, b"%d" % os.getpid())
                os.read(0, 1)
                os._exit(0)
            os.read(0, 1)  # ends without waiting for its child
            os._exit(0)
        orphan = os.read(end, 20).decode()
        step(orphan)
        os.wait()
        step()
    """)
    tree = ProcessTree(family.pid)
    assert tree.look().num_processes == 3
    middle = psutil.Process(int(family.said)).parent()
    middle.send_signal(signal.SIGKILL)
    while middle.is_running() and middle.status() != psutil.STATUS_ZOMBIE:
        select.select([], [], [], 0.01)
    assert tree.look().num_processes == 2  # one of them has ended, and nobody has asked for it yet
    os.kill(int(family.said), signal.SIGKILL)


def test_a_process_that_is_gone_leaves_nothing_to_count(child):
    family = child("step()")
    tree = ProcessTree(family.pid)
    family.go()
    family.process.wait()
    assert tree.look().num_processes == 0
    with MemorySampler(family.pid) as sampler:
        pass
    assert sampler.series.moments[-1].pss_bytes is None
    assert sampler.series.peaks.pss_bytes is None


def test_descriptors_against_the_limit(child):
    family = child("""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (777, 777))
        held = [os.dup(0) for _ in range(300)]
        step()
    """)
    with MemorySampler(family.pid) as sampler:
        pass
    assert 303 <= sampler.series.peaks.open_files < 320
    assert sampler.series.peaks.file_limit == 777
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] != 777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_processes_of_others_are_counted_as_unread(child):
    family = child("step()")
    program = """
        import os, sys
        from headrace.doctor.meters.process_tree import ProcessTree
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        found = ProcessTree(int(sys.argv[1])).look()
        print(found.num_processes, found.num_unread, found.pss, found.rss > 0)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(family.pid)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["1", "1", "0", "True"]


def test_without_the_kernels_list_of_children_all_processes_are_looked_at(child, monkeypatch):
    family = child("""
        if not os.fork():
            os.read(0, 1)
            os._exit(0)
        step()
    """)
    monkeypatch.setattr("headrace.doctor.meters.process_tree.pathlib.Path.exists", lambda path: False)
    assert ProcessTree(family.pid).look().num_processes == 2


def test_the_side_process_is_not_counted_and_ends_with_the_block():
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(KeyError), MemorySampler() as sampler:
        assert sampler._side.poll() is None
        pid = sampler._side.pid
        assert pid in {one.pid for one in psutil.Process().children()}
        os.kill(pid, signal.SIGINT)  # Ctrl-C reaches it, too
        raise KeyError
    assert not psutil.pid_exists(pid)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    others = {one.pid for one in psutil.Process().children(recursive=True)}
    assert sampler.series.moments[0].num_processes <= 1 + len(others)


def test_a_side_process_that_was_killed_is_told():
    with MemorySampler() as sampler:
        sampler._side.kill()
        sampler._side.wait()
    assert sampler.series.moments == ()
    assert sampler.series.why_empty == "the process that follows memory has ended early (status -9)"


def test_elsewhere_nothing_is_started(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    with MemorySampler() as sampler:
        assert sampler._side is None
    assert sampler.series.why_empty == "memory is followed on Linux only"
    assert sampler.series.peaks is None


def test_a_killed_parent_leaves_no_side_process_although_its_workers_live_on(tmp_path):
    program = """
        import os, sys, time
        from headrace.doctor.meters.memory import MemorySampler
        with MemorySampler() as sampler:
            worker = os.fork()
            if not worker:
                os.read(0, 1)
                os._exit(0)
            print(sampler._side.pid, worker, flush=True)
            time.sleep(1000)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    side, worker = (psutil.Process(int(number)) for number in parent.stdout.readline().split())
    try:
        parent.kill()
        parent.wait()
        psutil.wait_procs([side])  # the hang guard ends it if this never comes true
        assert not side.is_running() or side.status() == psutil.STATUS_ZOMBIE
        assert worker.is_running()
        assert list(tmp_path.iterdir()) == []
    finally:
        worker.kill()
        parent.communicate()


def test_long_runs_keep_the_peaks_and_ever_rarer_moments(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_MOMENTS", 64)
    seen = sampling.Seen()
    for number in range(1000):
        seen.add(sampling.Look(pss=number * 7 % 1000, at_s=number, open_files=number == 501, file_limit=number))
    assert len(seen.looks) <= 64
    assert seen.looks[0].at_s == 0
    assert [one.at_s for one in seen.looks] == sorted(one.at_s for one in seen.looks)
    assert seen.every > 8
    assert seen.peaks["pss"] == 999
    assert (seen.peaks["open_files"], seen.peaks["file_limit"]) == (1, 501)


def test_what_the_side_process_tells_can_be_written_down():
    assert json.loads(json.dumps(dataclasses.asdict(sampling.Look())))["unmapped_shm"] is None


def a_moment(at_s, anon, swap=0):
    return MemoryMoment(
        at_s=at_s,
        num_processes=1,
        num_unread=anon is None,
        pss_bytes=anon,
        anon_bytes=anon,
        file_bytes=0,
        shmem_bytes=0,
        swap_bytes=swap,
        unmapped_shm_bytes=None,
        rss_bytes=1,
        shm_used_bytes=None,
        open_files=3,
    )


def test_moments_are_placed_between_batches():
    moments = (
        a_moment(0, 5),
        a_moment(10, 10),
        a_moment(15, 20, 2),
        a_moment(17, None),
        a_moment(20, 30),
        a_moment(30, 9),
    )
    series = MemorySeries(
        moments=moments, peaks=None, shm_size_bytes=None, shmem_of=None, group_peak_bytes=None, why_empty=None
    )
    assert series.at_batches([(10, 0), (20, 100)]) == ((0, 10), (50, 22), (100, 30))
    assert series.at_batches([]) == ()
    assert moments[0].total_bytes == 5
    assert moments[3].total_bytes is None


def a_group(folder, version, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_control_groups_of_both_versions(tmp_path):
    root = a_group(tmp_path / "two", 2, memory__max="max\n")
    a_group(root / "slice", 2, memory__max="3000\n")
    inner = a_group(
        root / "slice" / "job", 2, memory__max="5000\n", memory__peak="77\n", memory__stat="file 9\nshmem 4\n"
    )
    group = ControlGroup(folder=inner, version=2, root=root)
    assert (group.limit_bytes(), group.peak_bytes(), group.shmem_bytes()) == (3000, 77, 4)
    one = a_group(
        tmp_path / "one",
        1,
        memory__limit_in_bytes="9223372036854771712\n",
        memory__max_usage_in_bytes="55\n",
        memory__stat="shmem 1\ntotal_shmem 6\n",
    )
    group = ControlGroup(folder=one, version=1, root=one)
    assert (group.limit_bytes(), group.peak_bytes(), group.shmem_bytes()) == (None, 55, 6)
    empty = ControlGroup(folder=tmp_path / "none", version=2, root=tmp_path)
    assert (empty.limit_bytes(), empty.peak_bytes(), empty.shmem_bytes()) == (None, None, None)


def test_no_control_group_is_no_error(tmp_path):
    assert control_group_of(root=tmp_path) is None
    assert control_group_of(pid=2**22 + 5) is None


def test_a_side_process_that_cannot_be_started_is_told_and_does_not_stop_the_run(monkeypatch):
    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(memory.sys, "executable", "/nowhere/python")
    with MemorySampler() as sampler:
        pass
    assert sampler.series.why_empty == "the process that follows memory could not be started"
    assert len(list(Path("/proc/self/fd").iterdir())) == before
