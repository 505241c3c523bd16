"""Data that git keeps itself, and the commits of what describes data."""

import pytest
from tests.loop.versions.repository import commit, needs_git, run
from tests.loop.versions.tracked import repository_3, write

import headrace as hr
from headrace.errors import DataVersionError
from headrace.loop.versions import git as asked

pytestmark = needs_git


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"data/ä b.txt": b"one", "data/sub/c.txt": b"two", "code.py": b"pass"})
    return tmp_path


def test_it_is_the_object_and_the_commit_that_changed_it_last(kept):
    first = commit(kept)
    write(kept, {"code.py": b"import this"})
    commit(kept)

    of_folder, of_file = hr.data_version("data"), hr.data_version("data/ä b.txt")
    assert (of_folder.kind, of_folder.digest) == ("git", run(kept, "git", "rev-parse", "HEAD:data"))
    assert of_file.digest == run(kept, "git", "hash-object", "data/ä b.txt")
    assert of_folder.commit == of_file.commit == first
    assert (of_folder.is_dirty, of_folder.num_files, of_file.num_files) == (False, 2, 1)

    write(kept, {"data/sub/c.txt": b"other"})
    second = commit(kept)
    assert (hr.data_version("data").commit, hr.data_version("data/ä b.txt").commit) == (second, first)


@pytest.mark.parametrize(
    "files", [{"data/sub/c.txt": b"twO"}, {"data/new.txt": b"x"}, {"data/cache.tmp": b"x", ".gitignore": b"*.tmp\n"}]
)
def test_what_no_commit_holds_makes_it_dirty(kept, files):
    commit(kept)
    before = hr.data_version("data", content=True)
    write(kept, files)
    after = hr.data_version("data", content=True)
    assert (before.is_dirty, after.is_dirty, after.digest) == (False, True, before.digest)
    assert before.fingerprint != after.fingerprint
    assert str(after).endswith(", not as it was committed")


def test_files_that_were_never_committed_belong_to_nobody(kept):
    run(kept, "git", "init", "-q")
    assert hr.data_version("data").kind == "none"


def test_a_folder_of_which_git_keeps_only_its_own_files_belongs_to_nobody(kept):
    write(kept, {"data/.gitignore": b"*.txt\n"})
    commit(kept)
    assert hr.data_version("data").kind == "none"


def test_before_the_first_commit_there_is_none(kept):
    run(kept, "git", "init", "-q")
    run(kept, "git", "add", "-A")
    version = hr.data_version("data")
    assert (version.kind, version.digest, version.commit, version.is_dirty) == ("git", None, None, True)


def test_what_git_keeps_and_the_disk_does_not_is_checked_out(kept):
    commit(kept)
    (kept / "data/ä b.txt").unlink()
    with pytest.raises(DataVersionError, match=r"^there is nothing at data/ä b\.txt\n") as caught:
        hr.data_version("data/ä b.txt")
    assert caught.value.do == ("git checkout -- 'data/ä b.txt'",)
    assert hr.data_version("data/ä b.txt", check=False).digest


def test_the_commit_of_dvc_files_is_the_one_of_the_record(tmp_path, monkeypatch):
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    monkeypatch.chdir(repository_3(tmp_path))
    write(tmp_path, {".gitignore": b"/data/labels.csv\n/data/bil der\n.dvc/cache\n"})
    first = commit(tmp_path)
    write(tmp_path, {"other.txt": b"x"})
    commit(tmp_path)
    version = hr.data_version("data/labels.csv")
    assert (version.kind, version.commit, version.is_dirty) == ("dvc", first, False)


def test_without_git_there_is_a_version_all_the_same(kept, monkeypatch):
    commit(kept)
    monkeypatch.setenv("PATH", "")
    assert hr.data_version("data").kind == "none"


def test_a_git_that_does_not_answer_is_not_waited_for(kept, monkeypatch, tmp_path_factory):
    slow = tmp_path_factory.mktemp("bin") / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent), prepend=":")
    monkeypatch.setattr(asked, "PATIENCE_S", 0.05)
    assert hr.data_version("data").kind == "none"


def test_looking_changes_nothing_in_the_repository(kept):
    commit(kept)
    before = {path: path.stat().st_mtime_ns for path in (kept / ".git").rglob("*")}
    (kept / "data/sub/c.txt").touch()  # `git status` would write the new time to its index
    hr.data_version("data")
    assert {path: path.stat().st_mtime_ns for path in (kept / ".git").rglob("*")} == before
