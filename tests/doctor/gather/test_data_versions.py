"""Data against DVC's records: equal data are never reported, every change is."""

import hashlib
import json
import sys

import pytest

from headrace.doctor.probes.data_versions import compare_with_records
from headrace.errors import MissingExtra


def md5(content):
    return hashlib.md5(content).hexdigest()


def folder_md5(folder):
    entries = [
        {"md5": md5(path.read_bytes()), "relpath": path.relative_to(folder).as_posix()}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    entries.sort(key=lambda entry: entry["relpath"])
    return md5(json.dumps(entries, sort_keys=True).encode()) + ".dir"


@pytest.fixture
def tracked(tmp_path):
    """A repository with a tracked folder and a tracked file."""
    (tmp_path / ".dvc").mkdir()
    images = tmp_path / "data" / "images"
    for name in ("b/2.png", "a/1.png", "a/10.png"):
        path = images / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 10)
    labels = tmp_path / "data" / "labels.csv"
    labels.write_bytes(b"a,1\r\nb,2\r\n")
    (tmp_path / "data" / "images.dvc").write_text(
        f"outs:\n- md5: {folder_md5(images)}\n  size: {10 * 22}\n  nfiles: 3\n  hash: md5\n  path: images\n"
    )
    (tmp_path / "data" / "labels.csv.dvc").write_text(
        f"md5: 11\nouts:\n- md5: {md5(b'a,1' + bytes([10]) + b'b,2' + bytes([10]))}\n  size: 10\n  path: labels.csv\n"
    )
    return tmp_path / "data"


def compare(data):
    paths = [str(path) for path in data.rglob("*") if path.suffix in {".png", ".csv"}]
    return compare_with_records(paths)


def test_data_as_recorded_are_not_reported(tracked):
    assert compare(tracked) == (2, ())


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda data: (data / "images/a/1.png").unlink(), "number of files"),
        (lambda data: (data / "images/c.png").write_bytes(b"x"), "number of files"),
        (lambda data: (data / "images/a/1.png").write_bytes(b"longer" * 99), "size in bytes"),
        (lambda data: (data / "images/a/1.png").write_bytes(b"x" * 70), "md5"),
        (lambda data: (data / "images/a/1.png").rename(data / "images/a/3.png"), "md5"),
        (lambda data: (data / "labels.csv").write_bytes(b"a,1\r\nb,3\r\n"), "md5"),
        (lambda data: (data / "labels.csv").write_bytes(b"a,1"), "size in bytes"),
    ],
)
def test_every_change_is_reported_once(tracked, change, what):
    change(tracked)
    num_records, (mismatch,) = compare(tracked)
    assert num_records == 2
    assert mismatch.what == what
    assert mismatch.recorded != mismatch.found


def test_a_folder_from_which_files_are_left_out_is_not_compared(tracked):
    (tracked.parent / ".dvcignore").write_text("*.tmp\n")
    (tracked / "images" / "a.tmp").write_bytes(b"x")
    assert compare(tracked) == (2, ())


def test_files_without_a_record_are_nobodys_business(tracked, tmp_path):
    other = tmp_path / "other.png"
    other.write_bytes(b"x")
    assert compare_with_records([str(other), "/nowhere/at/all.png"]) == (0, ())


@pytest.mark.parametrize(
    "text", ["", "outs:\n", "a picture of a cat", "outs: []\n", "- - -\n:::\n", "outs:\n- x\n- y\n"]
)
def test_what_is_no_record_is_left_alone(tracked, text):
    (tracked / "other.dvc").write_text(text)
    assert compare(tracked) == (2, ())


def test_the_comments_that_dvc_init_writes_leave_nothing_out(tracked):
    (tracked.parent / ".dvcignore").write_text("# Add patterns of files dvc should ignore\n")
    (tracked / "images" / "c.png").write_bytes(b"x")
    _, (mismatch,) = compare(tracked)
    assert mismatch.what == "number of files"


def test_without_a_reader_of_yaml_records_are_said_to_be_unread_and_no_records_are_no_matter(
    tracked, tmp_path, monkeypatch
):
    for name in ("yaml", "dvc", "dvc.utils.serialize"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"headrace\[version\]"):
        compare(tracked)
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / ".git").mkdir()
    (other / "1.png").write_bytes(b"x")
    assert compare(other) == (0, ())
