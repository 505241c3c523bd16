"""Pointers of git-lfs, as git-lfs 3.3.0 wrote them: recognised in git and on the disk; git-lfs itself is not needed."""

import hashlib

import pytest
from tests.loop.versions.repository import commit, needs_git
from tests.loop.versions.tracked import write

import headrace as hr
from headrace.errors import DataVersionError
from headrace.loop.versions.lfs_pointers import Pointer, pointer_in

ZEROS_OID = "c81ca5eda5947c7826ad046fdbdc2a25a846b835a6c34c237cc8b3afbe9ec6cc"
ZEROS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{ZEROS_OID}\nsize 3000\n".encode()
LETTER_OID = "edd3a863872a04239eb29ad4bc12fc892b3d4ae57cc7e786a3697816f8e141c2"
LETTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{LETTER_OID}\nsize 3\n".encode()
CONTENT = {"im ages/a.bin": bytes(3000), "im ages/ä/é.bin": "é\n".encode()}
POINTERS = {"im ages/a.bin": ZEROS, "im ages/ä/é.bin": LETTER}
OTHERS = {"im ages/plain.txt": b"plain\n", "im ages/empty.bin": b"", ".gitattributes": b"*.bin filter=lfs -text\n"}


def test_a_pointer_is_read_and_nothing_else_is_taken_for_one():
    assert pointer_in(ZEROS) == Pointer(ZEROS_OID, 3000)
    extended = ZEROS.replace(b"oid sha", b"ext-0-case sha256:" + b"a" * 64 + b"\noid sha")
    assert pointer_in(extended) == Pointer(ZEROS_OID, 3000)
    assert pointer_in(ZEROS.replace(b"git-lfs.github", b"hawser.github")) == Pointer(ZEROS_OID, 3000)
    for other in (b"", b"plain", ZEROS[:-20], ZEROS[1:], ZEROS + b"x" * 2000, ZEROS.replace(b"c81c", b"C81C")):
        assert pointer_in(other) is None


@pytest.fixture
def cloned(tmp_path, monkeypatch):
    """A clone without its large files."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {**OTHERS, **POINTERS})
    commit(tmp_path)
    return tmp_path


@pytest.fixture
def pulled(cloned):
    return write(cloned, CONTENT)


@needs_git
def test_of_a_file_it_is_the_oid(pulled):
    version = hr.data_version("im ages/a.bin")
    assert (version.kind, version.digest) == ("git-lfs", f"sha256:{ZEROS_OID}")
    assert (version.num_files, version.size_bytes, version.is_checked) == (1, 3000, True)
    assert version.source == "im ages/a.bin"


@needs_git
def test_of_a_folder_it_is_the_sum_of_the_sums(pulled):
    version = hr.data_version("im ages")
    sums = f"{ZEROS_OID}  a.bin\n{LETTER_OID}  ä/é.bin\n"  # `sha256sum a.bin ä/é.bin`
    assert version.digest == f"sha256:{hashlib.sha256(sums.encode()).hexdigest()}"
    assert (version.num_files, version.size_bytes, version.is_checked) == (2, 3003, True)
    assert version == hr.data_version("im ages")


@needs_git
def test_a_clone_and_what_was_pulled_into_it_have_one_version(cloned):
    before = hr.data_version("im ages", check=False)
    write(cloned, CONTENT)
    after = hr.data_version("im ages")
    assert (before.digest, before.num_files, before.size_bytes) == (after.digest, after.num_files, after.size_bytes)
    assert before.fingerprint != after.fingerprint


@needs_git
def test_one_unpulled_file_is_named(pulled):
    write(pulled, {"im ages/ä/é.bin": LETTER})
    with pytest.raises(
        DataVersionError, match=r"^im ages/ä/é\.bin is a git-lfs pointer, and not its content\n"
    ) as caught:
        hr.data_version("im ages")
    assert caught.value.do == ("git lfs pull --include 'im ages/ä/é.bin'",)


@needs_git
def test_of_many_the_folder_is_pulled(cloned):
    with pytest.raises(DataVersionError, match=r"^im ages/a\.bin is .* content; so is 1 more file\n") as caught:
        hr.data_version("im ages")
    assert caught.value.do == ("git lfs pull --include 'im ages'",)


@needs_git
def test_from_elsewhere_the_command_says_where(cloned, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(DataVersionError) as caught:
        hr.data_version(cloned / "im ages/a.bin")
    assert caught.value.do == (f"git -C {cloned} lfs pull --include 'im ages/a.bin'",)


@needs_git
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: (data / "a.bin").unlink(), r"^im ages/a\.bin is missing: git keeps a git-lfs pointer for it"),
        (lambda data: (data / "a.bin").rename(data / "b.bin"), r"^im ages/a\.bin is missing"),
        (lambda data: (data / "a.bin").write_bytes(bytes(2999)), r"size in bytes is 2999, stated 3000\n"),
        (
            lambda data: (data / "a.bin").write_bytes(bytes(2999) + b"\1"),
            rf"^im ages/a\.bin is not the version that its git-lfs pointer states: sha256 is \w+, stated {ZEROS_OID}\n",
        ),
    ],
)
@pytest.mark.parametrize("path", ["im ages", "im ages/a.bin"])
def test_every_change_is_refused_with_a_command(pulled, path, change, words):
    change(pulled / "im ages")
    with pytest.raises(DataVersionError, match=words) as caught:
        hr.data_version(path)
    assert caught.value.do[0].startswith("git checkout -- 'im ages/a.bin'")
    assert hr.data_version(path, check=False).kind == "git-lfs"


@needs_git
def test_what_has_no_pointer_is_free(pulled):
    write(pulled, {"im ages/plain.txt": b"changed", "im ages/new.txt": b"new"})
    version = hr.data_version("im ages")
    assert (version.is_checked, version.is_dirty) == (True, True)


def test_without_any_repository_pointers_on_the_disk_are_still_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(write(tmp_path, {"a.bin": ZEROS}))
    with pytest.raises(DataVersionError, match=r"^a\.bin is a git-lfs pointer"):
        hr.data_version("a.bin")
    assert hr.data_version("a.bin", check=False).digest == f"sha256:{ZEROS_OID}"


def test_a_text_that_quotes_a_pointer_is_no_pointer(tmp_path):
    write(tmp_path, {"spec.md": b"A pointer:\n" + ZEROS, "long.md": ZEROS + b"# more\n" * 200})
    assert hr.data_version(tmp_path).kind == "none"


@needs_git
def test_a_link_above_the_data_does_not_lead_the_command_astray(cloned, tmp_path_factory, monkeypatch):
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(cloned)
    monkeypatch.chdir(link.parent)
    with pytest.raises(DataVersionError) as caught:
        hr.data_version("link/im ages/a.bin")
    assert caught.value.do == (f"git -C {cloned} lfs pull --include 'im ages/a.bin'",)
    (cloned / "im ages/a.bin").unlink()
    with pytest.raises(DataVersionError) as caught:
        hr.data_version("link/im ages/a.bin")
    assert caught.value.do == (f"git -C {cloned} checkout -- 'im ages/a.bin'",)


@needs_git
def test_a_name_with_the_signs_of_a_pattern_is_pulled_with_all_others(cloned):
    write(cloned, {"a[1],b.bin": ZEROS})
    with pytest.raises(DataVersionError) as caught:
        hr.data_version("a[1],b.bin")
    assert caught.value.do == ("git lfs pull",)
