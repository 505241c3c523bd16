"""With DVC and git-lfs themselves: what they record is recognised, and the command in each refusal mends it."""

import hashlib
import json
import pathlib
import shlex
import shutil
import subprocess

import pytest
from tests.loop.versions.repository import commit, run
from tests.loop.versions.tracked import write

import headrace as hr
from headrace.errors import DataVersionError
from headrace.loop.versions import dvc_files

pytestmark = pytest.mark.slow

needs_dvc = pytest.mark.skipif(shutil.which("dvc") is None, reason="DVC is not installed")
has_lfs = (
    shutil.which("git") and subprocess.run(["git", "lfs", "version"], capture_output=True, check=False).returncode == 0
)
needs_lfs = pytest.mark.skipif(not has_lfs, reason="git-lfs is not installed")

FILES = {
    "data/bil der/.hidden": b"\0\1",
    "data/bil der/1.txt": b"one\r\n",
    "data/bil der/ä/2é.txt": b"zwei\r\n",
    "data/bil der/ä/leer": b"",
    "data/labels.csv": b"a,b\r\n",
    "raw.csv": b"raw\n",
}
STAGES = """stages:
  prep:
    cmd: mkdir -p out/sub && cp raw.csv out/sub/l.csv && cp raw.csv no && echo 1 > m.json
    deps: [raw.csv]
    outs: [out, 'no']
    metrics:
    - m.json:
        cache: false
"""


def mended(path, number=0, **more):
    """Expects a refusal, runs the command that it gives, and returns the version that is then there."""
    with pytest.raises(DataVersionError) as caught:
        hr.data_version(path, **more)
    command, _, _ = caught.value.do[number].partition("    #")
    run(pathlib.Path.cwd(), *shlex.split(command))
    return hr.data_version(path, **more)


@pytest.fixture
def of_dvc(tmp_path, monkeypatch):
    """A repository with data, a stage, and a remote that has them all."""
    for name in ("GLOBAL_CONFIG", "SYSTEM_CONFIG", "SITE_CACHE"):
        monkeypatch.setenv(f"DVC_{name}_DIR", str(tmp_path / name))
    root = tmp_path / "re po"
    write(root, {**FILES, "dvc.yaml": STAGES.encode()})
    monkeypatch.chdir(root)
    run(root, "git", "init", "-q")
    run(root, "dvc", "init", "-q")
    run(root, "dvc", "config", "core.check_update", "false")
    run(root, "dvc", "remote", "add", "-q", "-d", "r", "../remote")
    run(root, "dvc", "add", "-q", "data/bil der", "data/labels.csv")
    run(root, "dvc", "repro", "-q")
    run(root, "dvc", "push", "-q")
    commit(root)
    return root


@needs_dvc
def test_what_dvc_records_is_recognised_with_and_without_its_cache(of_dvc):
    paths = ["data/bil der", "data/bil der/ä", "data/labels.csv", "data", "out", "out/sub", "no", "m.json", "raw.csv"]
    for _ in range(2):
        found = [hr.data_version(path) for path in paths]
        assert all(one.is_checked and one.is_dirty is False for one in found)
        assert [one.kind for one in found] == 4 * ["dvc"] + 5 * ["dvc-lock"]
        shutil.rmtree(of_dvc / ".dvc/cache", ignore_errors=True)


@needs_dvc
def test_the_commands_bring_the_recorded_data_back(of_dvc):
    data = of_dvc / "data/bil der"
    before = hr.data_version(data, content=True)

    shutil.rmtree(data)
    assert mended(data, content=True) == before  # from the cache
    (data / "ä/2é.txt").write_bytes(b"zwei\n\n")
    assert mended(data, content=True) == before
    (data / "more.txt").write_bytes(b"x")
    assert mended(data, content=True) == before
    (data / "1.txt").rename(data / "3.txt")
    assert mended(data, content=True) == before
    shutil.rmtree(data)
    shutil.rmtree(of_dvc / ".dvc/cache")
    assert mended(data, content=True) == before  # from the remote
    shutil.rmtree(of_dvc / ".dvc/cache")
    (data / "1.txt").write_bytes(b"two\r\n")
    assert mended(data, 1, content=True) == before


@needs_dvc
def test_without_the_list_of_files_the_first_command_brings_it(of_dvc):
    shutil.rmtree(of_dvc / ".dvc/cache")
    (of_dvc / "data/bil der/1.txt").write_bytes(b"two\r\n")
    with pytest.raises(DataVersionError, match=r"^data/bil der is not the version that .* md5 is \w+\.dir, recorded"):
        hr.data_version("data/bil der")
    with pytest.raises(DataVersionError, match=r"^data/bil der/1\.txt is not the version that"):
        mended("data/bil der")


@needs_dvc
def test_the_commands_record_the_data_that_are_there(of_dvc):
    before = hr.data_version("data/bil der")
    (of_dvc / "data/bil der/ä/2é.txt").write_bytes(b"zwo\r\n")
    after = mended("data/bil der", 1)
    assert after.digest != before.digest
    assert after.is_dirty


@needs_dvc
@pytest.mark.parametrize("path", ["out", "no", "m.json"])
def test_the_commands_mend_what_a_stage_makes(of_dvc, path):
    before = hr.data_version(path, content=True)
    place = of_dvc / path
    for ruin in (lambda: shutil.rmtree(place) if place.is_dir() else place.unlink(), lambda: _spoil(place)):
        ruin()
        assert mended(path, content=True) == before


@needs_dvc
def test_the_commands_work_from_elsewhere(of_dvc, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = hr.data_version("re po/data/labels.csv")
    (of_dvc / "data/labels.csv").unlink()
    assert mended("re po/data/labels.csv") == before


@needs_dvc
def test_links_into_a_cache_elsewhere_are_data(of_dvc, tmp_path):
    run(of_dvc, "dvc", "cache", "dir", "-q", "../ca che")
    run(of_dvc, "dvc", "config", "cache.type", "symlink")
    run(of_dvc, "dvc", "pull", "-q", "--force")
    run(of_dvc, "dvc", "checkout", "-q", "--relink", "--force")
    assert (of_dvc / "data/labels.csv").is_symlink()
    before = [hr.data_version(path) for path in ("data/bil der", "data/labels.csv")]
    assert all(one.is_checked for one in before)

    shutil.rmtree(tmp_path / "ca che")
    assert [mended(path) for path in ("data/bil der", "data/labels.csv")] == before


@needs_dvc
def test_dvcs_own_reader_reads_the_same_as_pyyaml(of_dvc):
    python = str(pathlib.Path(shutil.which("dvc")).with_name("python"))
    code = (
        "import sys, json; from dvc.utils.serialize import parse_yaml\n"
        "print(json.dumps(parse_yaml(open(sys.argv[1]).read(), sys.argv[1])))"
    )
    for name in ("data/bil der.dvc", "data/labels.csv.dvc", "dvc.lock"):
        theirs = json.loads(run(of_dvc, python, "-c", code, name))
        ours = dvc_files.read_records(of_dvc / name)
        reader, dvc_files.read_yaml = dvc_files.read_yaml, lambda text, file: theirs
        try:
            assert dvc_files.read_records(of_dvc / name) == ours
        finally:
            dvc_files.read_yaml = reader


def _spoil(place):
    file = next(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else place
    file.unlink()  # not through a link into the cache
    file.write_bytes(b"7\n" + b"x" * 9)


@pytest.fixture
def of_lfs(tmp_path, monkeypatch):
    """A clone without its large files."""
    monkeypatch.setenv("GIT_LFS_SKIP_SMUDGE", "1")
    origin = tmp_path / "origin"
    write(origin, {f"im ages/{name}": content for name, content in LARGE.items()})
    run(origin, "git", "init", "-q")
    run(origin, "git", "lfs", "install", "--local")
    run(origin, "git", "lfs", "track", "*.bin")
    commit(origin)
    run(tmp_path, "git", "clone", "-q", str(origin), str(tmp_path / "clo ne"))
    run(tmp_path / "clo ne", "git", "lfs", "install", "--local", "--skip-smudge")
    monkeypatch.chdir(tmp_path / "clo ne")
    return tmp_path / "clo ne"


LARGE = {"a.bin": bytes(3000), "ä/é b.bin": b"x" * 200, "leer.bin": b"", "plain.txt": b"plain\n"}


@needs_lfs
def test_the_command_pulls_one_file_or_a_whole_folder(of_lfs):
    one = mended("im ages/ä/é b.bin")
    assert (one.is_checked, one.is_dirty, one.size_bytes) == (True, False, 200)
    assert (of_lfs / "im ages/a.bin").stat().st_size < 200  # that alone was asked for

    whole = mended("im ages")
    assert (whole.is_checked, whole.is_dirty, whole.num_files, whole.size_bytes) == (True, False, 2, 3200)
    assert {name: (of_lfs / "im ages" / name).read_bytes() for name in LARGE} == LARGE


@needs_lfs
def test_the_command_pulls_from_elsewhere(of_lfs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mended("clo ne/im ages").is_checked


@needs_lfs
def test_what_is_missing_or_changed_is_brought_back_by_git(of_lfs, monkeypatch):
    before = mended("im ages")
    monkeypatch.delenv("GIT_LFS_SKIP_SMUDGE")
    run(of_lfs, "git", "lfs", "install", "--local", "--force")
    (of_lfs / "im ages/a.bin").unlink()
    assert mended("im ages") == before
    (of_lfs / "im ages/a.bin").write_bytes(bytes(2999) + b"\1")
    assert mended("im ages") == before


@needs_lfs
def test_the_digest_of_a_folder_is_the_sum_of_the_list(of_lfs):
    version = mended("im ages")
    listed = run(of_lfs, "sh", "-c", "cd 'im ages' && sha256sum a.bin 'ä/é b.bin'") + "\n"
    assert version.digest == f"sha256:{hashlib.sha256(listed.encode()).hexdigest()}"
