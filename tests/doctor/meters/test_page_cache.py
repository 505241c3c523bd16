"""Pages that are in memory, and the labels made of them: real files on the real file system."""

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from headrace.doctor.meters import page_cache, resident_pages
from headrace.doctor.meters.mounts import Mount, mount_of_path, read_mounts
from headrace.doctor.meters.page_cache import FileRange, Residency, evict, label, resident, warm
from headrace.doctor.meters.resident_pages import PAGE, find_lookers, pages_between

MIB = 1 << 20
SHM = "/dev/shm"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the page cache is looked at on Linux only")


@pytest.fixture(scope="module")
def disk():
    """A folder on a file system that has a page cache and a disk below it."""
    for parent in (tempfile.gettempdir(), Path(__file__).parent):
        mount = mount_of_path(parent)
        if mount and not mount.blind_spot and not mount.never_cold:
            break
    else:
        pytest.skip("no folder lies on a local disk")
    lookers = find_lookers()
    if not (lookers.mapped_pages if mount.is_overlay else lookers.own_pages or lookers.mapped_pages):
        pytest.skip("this kernel does not tell which pages are in memory")
    folder = Path(tempfile.mkdtemp(prefix="headrace-cache-", dir=parent))
    yield folder
    shutil.rmtree(folder)


def a_file(folder, name, size=8 * MIB, *, is_clean=True):
    path = folder / name
    with path.open("wb") as file:
        file.write(os.urandom(size))
        file.flush()
        if is_clean:
            os.fsync(file.fileno())
    return path


@pytest.fixture(params=["cachestat", "mincore"])
def way(request, monkeypatch):
    """Each way of asking, alone."""
    lookers = find_lookers()
    own = lookers.own_pages if request.param == "cachestat" else None
    mapped = lookers.mapped_pages if request.param == "mincore" else None
    if own is None and mapped is None:
        pytest.skip(f"{request.param} does not answer here")
    monkeypatch.setattr(page_cache, "find_lookers", lambda: resident_pages.Lookers(own, mapped))
    return request.param


def test_a_clean_file_is_evicted_and_warmed_again(disk, way):
    ranges = [FileRange(a_file(disk, f"clean-{way}"))]
    written = resident(ranges)
    assert written.fraction == 1.0
    assert written.pages == 8 * MIB // PAGE
    assert written.means == {way}
    cold = evict(ranges)
    assert cold.fraction <= 0.02
    assert label(cold).label == "cold-verified"
    hot = warm(ranges)
    assert hot.fraction >= 0.98
    assert label(hot).label == "warm-verified"
    assert label(cold, hot).label == "cold-verified"  # what was measured in between began cold


def test_changed_pages_are_written_and_then_evicted(disk, way):
    path = a_file(disk, f"dirty-{way}", is_clean=False)
    with path.open("rb") as file:
        content = file.read()
    assert evict([FileRange(path)]).fraction <= 0.02
    with path.open("rb") as file:
        assert file.read() == content


def test_a_file_of_which_part_was_read_is_mixed(disk, way):
    path = a_file(disk, f"part-{way}")
    evict([FileRange(path)])
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
        os.pread(file.fileno(), 4 * MIB, 0)
    found = resident([FileRange(path)])
    assert 0.4 < found.fraction < 0.6
    state = label(found, warm([FileRange(path)]))
    assert (state.label, state.before, state.after) == ("mixed", found.fraction, 1.0)


def test_only_the_planned_bytes_count(disk, way):
    path = a_file(disk, f"bytes-{way}")
    evict([FileRange(path)])
    planned = [FileRange(path, 5 * MIB + 100, 64 * 1024), FileRange(path, 6 * MIB + 1, 10)]
    assert resident(planned).pages == 17 + 1
    assert warm(planned).fraction == 1.0
    assert resident([FileRange(path)]).fraction < 1.0
    assert evict(planned).fraction <= 0.02


def test_small_ranges_in_a_file_that_was_read_in_one_go_are_evicted(disk):
    """Such a file lies in memory in large groups of pages, and a group is only dropped as a whole."""
    path = a_file(disk, "shard", 32 * MIB)
    evict([FileRange(path)])
    warm([FileRange(path)])
    assert evict([FileRange(path, place * MIB + 5 * PAGE + 7, 3000) for place in range(30)]).fraction <= 0.02


def test_a_range_beyond_the_end_is_cut(disk):
    path = a_file(disk, "short", 10_000)
    assert resident([FileRange(path, 8192, 1 << 40)]).pages == 1
    assert resident([FileRange(path, 20_000)]).pages == 0


def test_an_empty_file_has_no_state(disk):
    found = resident([FileRange(a_file(disk, "empty", 0))])
    assert (found.num_seen, found.num_unseen, found.fraction) == (1, 0, None)
    assert label(found).why == "the planned files are empty"


def test_an_empty_file_among_others_does_no_harm(disk):
    ranges = [FileRange(a_file(disk, "empty2", 0)), FileRange(a_file(disk, "full", MIB))]
    assert label(warm(ranges)).label == "warm-verified"


def test_a_file_that_is_gone_is_said(disk):
    gone = FileRange(disk / "nowhere")
    for ask in (resident, evict, warm):
        state = label(ask([gone]))
        assert state.label == "unknown"
        assert state.why == "1 of 1 planned files or ranges could not be looked at: the file is gone"
    there = FileRange(a_file(disk, "there", MIB))
    assert label(warm([there, gone])).label == "unknown"  # half of the plan is not verified
    assert label(warm([there] * 99 + [gone])).label == "warm-verified"


def test_nothing_planned_is_unknown():
    state = label(resident([]))
    assert (state.label, state.why) == ("unknown", "it is not known which files are read")


def test_folders_and_pipes_are_refused_without_waiting(disk):
    pipe = disk / "pipe"
    os.mkfifo(pipe)
    for path in (disk, pipe):
        assert "no regular file" in label(evict([FileRange(path)])).why


def test_mapped_and_locked_pages_are_not_called_cold(disk):
    path = a_file(disk, "mapped")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as held:
        assert sum(held[::PAGE]) >= 0  # touches every page
        assert label(evict([FileRange(path)])).label != "cold-verified"
    assert label(evict([FileRange(path)])).label == "cold-verified"


def test_content_and_times_stay(disk):
    path = a_file(disk, "times", MIB)
    os.utime(path, ns=(1_000_000_000, 2_000_000_000))  # an access so old that any reading would renew it
    before = path.stat()
    evict([FileRange(path)])
    warm([FileRange(path)])
    after = path.stat()
    assert (before.st_mtime_ns, before.st_ctime_ns, before.st_size) == (
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_size,
    )
    assert after.st_atime_ns == before.st_atime_ns


def test_of_many_ranges_evenly_spread_ones_are_looked_at(disk):
    path = a_file(disk, "many", 16 * PAGE)
    found = warm([FileRange(path, place % 16 * PAGE, 1) for place in range(5000)])
    assert (found.num_planned, found.num_seen, found.pages) == (5000, 2000, 2000)
    assert found.fraction == 1.0


def test_no_descriptor_stays_open(disk):
    ranges = [FileRange(a_file(disk, "open", MIB)), FileRange(disk), FileRange(disk / "nowhere")]
    before = len(list(Path("/proc/self/fd").iterdir()))
    evict(ranges)
    warm(ranges)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.skipif(not Path(SHM).is_dir(), reason="there is no /dev/shm")
def test_files_in_memory_are_warm_and_cannot_be_made_cold():
    mount = mount_of_path(SHM)
    if mount is None or mount.type != "tmpfs":
        pytest.skip("/dev/shm is not in memory here")
    folder = Path(tempfile.mkdtemp(prefix="headrace-cache-", dir=SHM))
    try:
        ranges = [FileRange(a_file(folder, "data", MIB))]
        found = evict(ranges)
        assert found.file_systems == {"tmpfs"}
        assert label(found).label == "warm-verified"
        # A hole has no pages, and neither has what was swapped: no disk of the data set is read, so it is not cold.
        os.truncate(ranges[0].path, 4 * MIB)
        state = label(evict(ranges))
        assert state.label == "unknown"
        assert "never cold" in state.why
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_files_of_others_are_not_believed(disk):
    path = a_file(disk, "others", MIB)
    path.chmod(0o644)
    disk.chmod(0o755)
    program = """
        import os, sys
        from headrace.doctor.meters.page_cache import FileRange, evict, label, resident
        from headrace.doctor.meters import mounts, resident_pages
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        print(label(resident([FileRange(sys.argv[1])])).why)
        print(label(evict([FileRange(sys.argv[1])])).label)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), path], capture_output=True, text=True, check=True
    )
    why, state = ran.stdout.splitlines()
    assert "only to its owner" in why
    assert state == "unknown"


def test_an_overlay_is_asked_by_mapping(disk):
    """`cachestat` would see no page of it, and would call everything cold."""
    path = a_file(disk, "lower", 2 * MIB)
    folders = [disk / name for name in ("lower.d", "upper", "work", "seen")]
    for folder in folders:
        folder.mkdir()
    path.rename(folders[0] / "data")
    program = """
        import subprocess, sys
        lower, upper, work, seen = sys.argv[1:]
        done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                               f"lowerdir={lower},upperdir={upper},workdir={work}", seen])
        if done.returncode:
            sys.exit(77)
        from headrace.doctor.meters.page_cache import FileRange, evict, label, resident, warm
        planned = [FileRange(seen + "/data")]
        for ask in (warm, evict, resident, warm, resident):
            found = ask(planned)
            print(label(found).label, *found.means, *found.file_systems)
    """
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", textwrap.dedent(program)]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    ran = subprocess.run([*command, *folders], capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"no overlay can be mounted here: {ran.stderr.strip()[-200:]}")
    expected = ["warm-verified", "cold-verified", "cold-verified", "warm-verified", "warm-verified"]
    assert ran.stdout.splitlines() == [f"{state} mincore overlay" for state in expected]


def test_a_way_that_always_says_resident_is_not_believed(monkeypatch, disk):
    path = a_file(disk, "liar", MIB)
    assert not resident_pages._passes(lambda descriptor, offset, length: pages_between(offset, length))
    assert not resident_pages._passes(lambda descriptor, offset, length: 0)
    monkeypatch.setattr(page_cache, "find_lookers", lambda: resident_pages.Lookers(None, None))
    assert "does not tell" in label(resident([FileRange(path)])).why


def test_the_trial_does_without_files_in_memory(monkeypatch, disk):
    lookers = find_lookers()
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    assert lookers.mapped_pages is None or resident_pages._passes(lookers.mapped_pages)


def test_both_ways_agree(disk):
    lookers = find_lookers()
    if lookers.own_pages is None or lookers.mapped_pages is None:
        pytest.skip("this kernel has one way only")
    if mount_of_path(disk).is_overlay:
        pytest.skip("one way does not see the files here")
    path = a_file(disk, "both")
    evict([FileRange(path)])
    with path.open("rb") as file:
        for offset in (0, 3 * MIB, 3 * MIB + 5 * PAGE, 8 * MIB - 1):
            os.pread(file.fileno(), 100, offset)
        for offset, length in ((0, 8 * MIB), (1, 1), (PAGE - 1, 2), (3 * MIB, 10 * PAGE), (8 * MIB - 1, 1)):
            counts = {look(file.fileno(), offset, length) for look in (lookers.own_pages, lookers.mapped_pages)}
            assert len(counts) == 1
            assert counts.pop() <= pages_between(offset, length)


def a_mount(**changes):
    return Mount(**{"point": "/data", "type": "ext4", "source": "/dev/sda1", "options": frozenset({"rw"}), **changes})


@pytest.mark.parametrize(
    ("mount", "word"),
    [
        (a_mount(type="nfs4", source="server:/data"), "network"),
        (a_mount(type="fuse.gcsfuse"), "served by a program"),
        (a_mount(type="fuse"), "served by a program"),
        (a_mount(type="zfs"), "cache of its own"),
        (a_mount(options=frozenset({"rw", "dax=always"})), "dax"),
    ],
)
def test_file_systems_whose_cache_is_elsewhere_are_unknown(monkeypatch, disk, mount, word):
    path = a_file(disk, "elsewhere", MIB)
    monkeypatch.setattr(page_cache, "mount_of", lambda descriptor, mounts: mount)
    state = label(warm([FileRange(path)]))
    assert state.label == "unknown"
    assert word in state.why


def test_a_disk_in_a_file_may_be_warm_but_not_cold(monkeypatch, disk):
    path = a_file(disk, "loop", MIB)
    monkeypatch.setattr(page_cache, "mount_of", lambda descriptor, mounts: a_mount(source="/dev/loop3"))
    assert label(warm([FileRange(path)])).label == "warm-verified"
    assert "loop device" in label(evict([FileRange(path)])).why


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "fuseblk", "overlay"])
def test_local_disks_have_no_blind_spot(kind):
    assert a_mount(type=kind).blind_spot is None
    assert a_mount(type=kind).never_cold is None


def test_the_mount_is_that_of_the_file_not_of_the_path(disk):
    link = disk / "link"
    link.symlink_to("/proc")
    assert mount_of_path(link).type == "proc"
    assert mount_of_path("/nowhere/at/all") is None
    assert all(mount.type and mount.point.startswith("/") for mount in read_mounts().values())


def seen(**changes):
    made = {"num_planned": 10, "num_seen": 10, "num_unseen": 0, "pages": 1000, "resident_pages": 0}
    return Residency(**{**made, "means": frozenset(), "file_systems": frozenset(), "blind_spots": (), **changes})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (20, None, "cold-verified"),
        (21, None, "mixed"),
        (979, None, "mixed"),
        (980, None, "warm-verified"),
        (0, 1000, "cold-verified"),
        (1000, 1000, "warm-verified"),
        (1000, 500, "mixed"),  # memory did not suffice to keep it
        (500, 1000, "mixed"),
    ],
)
def test_labels(before, after, expected):
    state = label(seen(resident_pages=before), None if after is None else seen(resident_pages=after))
    assert state.label == expected


def test_what_is_not_known_at_the_end_is_not_verified():
    lost = seen(num_seen=0, num_unseen=10, pages=0, blind_spots=("the file is gone",))
    assert label(seen(resident_pages=1000), lost).label == "unknown"
    assert label(seen(resident_pages=0), lost).label == "cold-verified"  # how it began is verified
