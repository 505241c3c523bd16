"""What DVC recorded: recognised as it is, and refused when the data are not that, with the command that mends it."""

import shutil

import pytest
from tests.loop.versions.tracked import (
    FOLDER_2_MD5,
    FOLDER_3_DVC,
    FOLDER_3_MD5,
    LABELS_3_DVC,
    forget_cache,
    repository_2,
    repository_3,
    write,
)

import headrace as hr
from headrace.errors import DataVersionError, MissingExtra

pytest.importorskip("yaml", reason="PyYAML is not installed")


@pytest.fixture(params=["with the listing", "without the listing"])
def listed(request):
    return request.param == "with the listing"


@pytest.fixture
def three(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return repository_3(tmp_path)


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return repository_2(tmp_path)


@pytest.mark.parametrize(
    ("path", "kind", "digest", "num_files", "size_bytes", "source"),
    [
        ("data/bil der", "dvc", FOLDER_3_MD5, 3, 11, "data/bil der.dvc"),
        ("data/bil der/ä", "dvc", FOLDER_3_MD5, 3, 11, "data/bil der.dvc"),
        ("data/bil der/ä/2é.txt", "dvc", FOLDER_3_MD5, 3, 11, "data/bil der.dvc"),
        ("data/labels.csv", "dvc", "8f457ad9d573db377e681164b7f5af35", 1, 5, "data/labels.csv.dvc"),
        ("out", "dvc-lock", "2e2cfcdae07e51500da7440d17ce8aab.dir", 1, 5, "dvc.lock"),
        ("no", "dvc-lock", "8f457ad9d573db377e681164b7f5af35", 1, 5, "dvc.lock"),
        ("raw.csv", "dvc-lock", "8f457ad9d573db377e681164b7f5af35", 1, 5, "dvc.lock"),
    ],
)
def test_of_dvc_3(three, listed, path, kind, digest, num_files, size_bytes, source):
    if not listed:
        forget_cache(three)
    version = hr.data_version(path)

    assert (version.kind, version.digest, version.source) == (kind, digest, source)
    assert (version.num_files, version.size_bytes, version.is_checked) == (num_files, size_bytes, True)
    assert version.as_dict()["path"] == path


@pytest.mark.parametrize(
    ("path", "digest", "source"),
    [
        ("bil der", FOLDER_2_MD5, "bil der.dvc"),
        ("labels.csv", "dd8c6a395b5dd36c56d23275028f526c", "labels.csv.dvc"),
        ("out", "35cb2dec2968f3a6546cf09f49c0c9a0.dir", "dvc.lock"),
        ("x1", "9dd4e461268c8034f5c8564e155c67a6", "both.dvc"),
        ("x2", "2fb1c5cf58867b5bbc9a1b145a86f3a0", "both.dvc"),
    ],
)
def test_of_dvc_2(two, listed, path, digest, source):
    if not listed:
        forget_cache(two)
    version = hr.data_version(path)

    assert (version.digest, version.source, version.is_checked) == (digest, source, True)


def test_line_ends_of_text_are_equal_for_dvc_2_and_for_dvc_3_they_are_not(two):
    (two / "labels.csv").write_bytes(b"a\nb\r\n\n")  # as many bytes
    with pytest.raises(DataVersionError, match="md5"):
        hr.data_version("labels.csv")
    (two / "labels.csv.dvc").write_text(LABELS_3_DVC.replace("8f457ad9d573db377e681164b7f5af35", "aa"))
    (two / "labels.csv").write_bytes(b"a,b\r\n")
    with pytest.raises(DataVersionError, match="md5 is 8f457ad9d573db377e681164b7f5af35, recorded aa"):
        hr.data_version("labels.csv")


CHANGES = {
    "missing": lambda data: shutil.rmtree(data),
    "emptied": lambda data: [shutil.rmtree(data), data.mkdir()],
    "one file missing": lambda data: (data / "1.txt").unlink(),
    "one byte changed": lambda data: (data / "ä/2é.txt").write_bytes(b"twO\r\n"),
    "line end changed": lambda data: (data / "ä/2é.txt").write_bytes(b"two\n"),
    "file added": lambda data: (data / "ä/new.txt").write_bytes(b"x"),
    "empty file added": lambda data: (data / "new.txt").write_bytes(b""),
    "renamed": lambda data: (data / "1.txt").rename(data / "3.txt"),
    "two swapped": lambda data: write(data, {"1.txt": b"two\r\n", "ä/2é.txt": b"one\n"}),
    "broken link": lambda data: [(data / "1.txt").unlink(), (data / "1.txt").symlink_to("nowhere")],
    "a file in its place": lambda data: [shutil.rmtree(data), data.write_bytes(b"x")],
}
WORDS = {
    "missing": r"^data/bil der is missing: data/bil der\.dvc records it with md5 7286a8.*\.dir\n",
    "one file missing": r"^data/bil der/1\.txt is missing: data/bil der\.dvc records it with md5 5bbf5a",
    "one byte changed": r"^data/bil der/ä/2é\.txt is not the version that data/bil der\.dvc records: md5 is \w+, recorded 11fb",
    "file added": r"^data/bil der/ä/new\.txt is not in the version that data/bil der\.dvc records\n",
    "renamed": r"^data/bil der/1\.txt is missing",
    "a file in its place": r"^data/bil der is a file, and data/bil der\.dvc records a folder\n",
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_refused_with_a_command(three, listed, change):
    if not listed:
        forget_cache(three)
    CHANGES[change](three / "data/bil der")

    with pytest.raises(DataVersionError, match=WORDS.get(change) if listed else None) as caught:
        hr.data_version("data/bil der")

    assert any("'data/bil der.dvc'" in command for command in caught.value.do), caught.value.do
    noted = hr.data_version("data/bil der", check=False)
    assert (noted.digest, noted.is_checked) == (FOLDER_3_MD5, False)


@pytest.mark.parametrize("change", ["one byte changed", "file added", "renamed"])
def test_what_changed_elsewhere_in_the_folder_is_nothing_to_a_part_of_it(three, change):
    write(three / "data/bil der", {"b/3.txt": b"x"})
    listing = three / ".dvc/cache/files/md5"
    CHANGES[change](three / "data/bil der")

    assert listing.exists()
    assert hr.data_version("data/bil der/.hidden").is_checked


def test_a_missing_folder_that_the_cache_holds_is_checked_out_and_else_pulled(three):
    shutil.rmtree(three / "data/bil der")
    with pytest.raises(DataVersionError) as caught:
        hr.data_version("data/bil der")
    assert caught.value.do == ("dvc checkout 'data/bil der.dvc'",)

    forget_cache(three)
    with pytest.raises(DataVersionError) as caught:
        hr.data_version("data/bil der")
    assert caught.value.do == ("dvc pull 'data/bil der.dvc'",)


def test_from_elsewhere_the_command_says_where(three, tmp_path_factory, monkeypatch):
    (three / "data/labels.csv").unlink()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(DataVersionError) as caught:
        hr.data_version(three / "data/labels.csv")
    assert caught.value.do == (f"dvc --cd {three} pull data/labels.csv.dvc",)


def test_a_cache_elsewhere_is_found_by_the_repositorys_settings(three, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    shutil.move(three / ".dvc/cache/files", cache / "files")
    (three / ".dvc/config").write_text(
        "[core]\n    remote = r\n[cache]\n    dir = nowhere\n['remote \"r\"']\n    url = x\n"
    )
    (three / ".dvc/config.local").write_text(f"[cache]\n    dir = {cache}\n    type = symlink\n")
    (three / "data/bil der/1.txt").write_bytes(b"two\n")

    with pytest.raises(DataVersionError, match=r"^data/bil der/1\.txt is not the version"):
        hr.data_version("data/bil der")


def test_a_damaged_listing_accuses_no_file(three):
    (listing,) = (three / ".dvc/cache").rglob("*.dir")
    listing.write_text(listing.read_text().replace("5bbf", "0000"))

    assert hr.data_version("data/bil der").is_checked


def test_a_folder_that_holds_several_recorded_things_has_a_hash_over_them_all(three):
    version = hr.data_version("data")
    assert (version.kind, version.num_files, version.size_bytes) == ("dvc", 4, 16)
    assert version.source == "data/bil der.dvc, data/labels.csv.dvc"

    (three / "data/labels.csv").write_bytes(b"a,c\r\n")
    with pytest.raises(DataVersionError, match=r"^data/labels\.csv is not the version"):
        hr.data_version("data")
    (three / "data/labels.csv.dvc").write_text(LABELS_3_DVC.replace("8f45", "1f45"))
    assert hr.data_version("data", check=False).digest != version.digest


def test_of_a_stage_the_command_names_the_output(three):
    shutil.rmtree(three / "out")
    with pytest.raises(DataVersionError, match=r"^out is missing: dvc\.lock records it") as caught:
        hr.data_version("out")
    assert caught.value.do == ("dvc pull out",)


def test_a_record_above_with_a_working_folder_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "sets/a b", {"labels.csv": b"a,b\r\n"})
    (tmp_path / "one.dvc").write_text("wdir: sets/a b\n" + LABELS_3_DVC)

    assert hr.data_version("sets/a b/labels.csv").source == "one.dvc"


def test_patterns_of_files_to_leave_out_are_left_to_dvc(three, listed):
    if not listed:
        forget_cache(three)
    (three / ".dvcignore").write_text("*.tmp\n")
    (three / "data/bil der/x.tmp").write_bytes(b"x")

    assert hr.data_version("data/bil der").is_checked is listed
    if listed:
        (three / "data/bil der/1.txt").unlink()
        with pytest.raises(DataVersionError, match=r"1\.txt is missing"):
            hr.data_version("data/bil der")


def test_what_has_no_hash_yet_is_not_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"labels.csv": b"x", "labels.csv.dvc": b"outs:\n- hash: md5\n  path: labels.csv\n"})
    version = hr.data_version("labels.csv")
    assert (version.kind, version.digest, version.is_checked) == ("dvc", None, False)


def test_files_that_the_record_itself_lists_are_checked(tmp_path, monkeypatch):
    # As `dvc push` to a remote with `version_aware` writes it.
    monkeypatch.chdir(tmp_path)
    record = """outs:
- path: d
  size: 5
  nfiles: 1
  hash: md5
  files:
  - relpath: labels.csv
    md5: 8f457ad9d573db377e681164b7f5af35
    size: 5
    cloud:
      r:
        version_id: '7'
"""
    write(tmp_path, {"d/labels.csv": b"a,b\r\n", "d.dvc": record.encode()})
    assert hr.data_version("d").is_checked
    (tmp_path / "d/labels.csv").write_bytes(b"a,c\r\n")
    with pytest.raises(DataVersionError, match=r"^d/labels\.csv is not the version"):
        hr.data_version("d")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("outs:\n- md5: aa\n  path: 'x\n", r"^labels\.csv\.dvc:\d cannot be read as YAML: "),
        ("outs:\n- md5: aa\n path: x\n", r"^labels\.csv\.dvc:3 cannot be read as YAML: "),
        ("<<<<<<< HEAD\nouts:\n- md5: aa\n=======\n", r"^labels\.csv\.dvc:\d cannot be read as YAML: "),
        ("- a\n", r"^labels\.csv\.dvc is not as DVC writes it: it holds a list where DVC writes keys"),
        ("just words\n", r"^labels\.csv\.dvc is not as DVC writes it: it holds the text 'just words'"),
        ("outs: x\n", r"^labels\.csv\.dvc is not as DVC writes it: outs is the text 'x', and not a list"),
        ("outs:\n- md5: aa\n", r"^labels\.csv\.dvc is not as DVC writes it: an entry of outs has no path"),
        ("outs:\n- path: a\n  size: big\n", r"^labels\.csv\.dvc is not as DVC writes it: size of a is 'big'"),
    ],
)
def test_a_malformed_record_says_what_and_where(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"labels.csv": b"x", "labels.csv.dvc": text.encode()})
    with pytest.raises(DataVersionError, match=words):
        hr.data_version("labels.csv", check=False)


def test_a_lock_of_another_schema_is_refused(three):
    (three / "dvc.lock").write_text("schema: '3.0'\nstages: {}\n")
    with pytest.raises(DataVersionError, match=r"^dvc\.lock is not as DVC writes it: its schema is '3\.0'"):
        hr.data_version("out")


def test_a_record_that_is_no_text_is_refused(three):
    (three / "data/labels.csv.dvc").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataVersionError, match=r"^data/labels\.csv\.dvc is no text"):
        hr.data_version("data/labels.csv")


def test_without_a_reader_of_yaml_the_extra_is_named(three, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.setitem(sys.modules, "dvc", None)
    monkeypatch.setitem(sys.modules, "dvc.utils.serialize", None)
    with pytest.raises(MissingExtra, match=r"headrace\[version\]"):
        hr.data_version("data/labels.csv")


def test_a_folder_called_no_is_a_folder(three):
    assert "path: no\n" in (three / "dvc.lock").read_text()
    assert hr.data_version("no").kind == "dvc-lock"


def test_an_empty_folder_may_be_what_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bil der").mkdir()
    empty = FOLDER_3_DVC.replace(FOLDER_3_MD5, "d751713988987e9331980363e24189ce.dir")
    (tmp_path / "bil der.dvc").write_text(empty.replace("size: 11", "size: 0").replace("nfiles: 3", "nfiles: 0"))

    version = hr.data_version("bil der")
    assert (version.is_checked, version.fingerprint) == (True, None)
