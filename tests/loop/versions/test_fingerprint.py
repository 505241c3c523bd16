"""A fingerprint changes if and only if a path, a size or, if asked for, the content changes."""

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loop.versions.tracked import write

import headrace as hr
from headrace.errors import DataVersionError
from headrace.loop.versions import content

names = st.sampled_from(["a", "b", "é", "x y", "1", "0.txt", ".h"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


def _is_possible(files):
    """No path is both a file and a folder."""
    return not any(one != other and other.startswith(f"{one}/") for one in files for other in files)


data_sets = st.dictionaries(paths, st.binary(max_size=2), min_size=1, max_size=5).filter(_is_possible)


def fingerprint(folder, files, **more):
    return hr.data_version(write(folder, files), **more).fingerprint


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("data")


@pytest.mark.slow
@given(one=data_sets, other=data_sets, order=st.randoms())
def test_equal_fingerprints_mean_equal_files(fresh, one, other, order):
    shuffled = list(one.items())
    order.shuffle(shuffled)
    assert fingerprint(fresh(), one) == fingerprint(fresh(), dict(shuffled))
    assert fingerprint(fresh(), one, content=True) == fingerprint(fresh(), dict(shuffled), content=True)

    sizes = [{name: len(inside) for name, inside in files.items()} for files in (one, other)]
    assert (fingerprint(fresh(), one) == fingerprint(fresh(), other)) is (sizes[0] == sizes[1])
    with_content = [fingerprint(fresh(), files, content=True) for files in (one, other)]
    assert (with_content[0] == with_content[1]) is (one == other)


@pytest.mark.slow
@given(files=data_sets, choice=st.randoms())
def test_one_changed_byte_is_seen_with_content_and_only_then(fresh, files, choice):
    name = choice.choice(sorted(files))
    changed = {**files, name: bytes(byte ^ 1 for byte in files[name])}
    assert fingerprint(fresh(), files) == fingerprint(fresh(), changed)
    same = fingerprint(fresh(), files, content=True) == fingerprint(fresh(), changed, content=True)
    assert same is (files[name] == b"")


def test_neither_times_nor_the_order_of_listing_matter(tmp_path, monkeypatch):
    write(tmp_path, {f"{number % 3}/{number}.txt": b"x" * number for number in range(20)})
    before = hr.data_version(tmp_path, content=True)
    for file in tmp_path.rglob("*.txt"):
        os.utime(file, (1, random.randrange(10**9)))
    scandir = os.scandir

    class Reversed:
        def __init__(self, place):
            self.entries = list(scandir(place))

        def __enter__(self):
            return self

        def __exit__(self, *args):
            pass

        close = __exit__

        def __iter__(self):
            return self

        def __next__(self):
            if not self.entries:
                raise StopIteration
            return self.entries.pop()

    monkeypatch.setattr(content.os, "scandir", Reversed)
    assert hr.data_version(tmp_path, content=True) == before


@pytest.mark.parametrize("with_content", [False, True])
def test_no_other_list_of_files_gives_the_same_bytes(fresh, with_content):
    # Paths that would run into one another if nothing stood between them.
    sets = [{"a": b"1", "b": b""}, {"ab": b"1"}, {"a": b"", "b": b"1"}, {"a1:": b"b"}, {"a": b"1;b"}]
    found = {fingerprint(fresh(), files, content=with_content) for files in sets}
    assert len(found) == len(sets)


def test_a_file_is_its_name_and_its_size(tmp_path):
    write(tmp_path, {"a.bin": b"one", "c/a.bin": b"two", "b.bin": b"one"})
    of = {name: hr.data_version(tmp_path / name).fingerprint for name in ("a.bin", "c/a.bin", "b.bin")}
    assert of["a.bin"] == of["c/a.bin"] != of["b.bin"]


def test_large_files_are_read_to_the_end(tmp_path):
    large = bytearray(3 * content.CHUNK_BYTES)
    before = fingerprint(tmp_path, {"a": bytes(large)}, content=True)
    large[-1] = 1
    assert fingerprint(tmp_path, {"a": bytes(large)}, content=True) != before


def test_more_files_than_are_hashed_at_once(tmp_path):
    files = {f"{number:04d}": b"%d" % (number % 10) for number in range(2 * content.FILES_AT_ONCE + 3)}
    before = fingerprint(tmp_path, files, content=True)
    files["0513"], files["0514"] = files["0514"], files["0513"]
    assert fingerprint(tmp_path, files, content=True) != before


def test_nothing_describes_it(tmp_path):
    version = hr.data_version(write(tmp_path, {"a": b"x"}))
    assert (version.kind, version.digest, version.source, version.commit) == ("none", None, None, None)
    assert (version.is_checked, version.has_content) == (False, False)


@pytest.mark.parametrize("check", [True, False])
def test_where_nothing_is_there_is_no_version(tmp_path, check):
    with pytest.raises(DataVersionError, match=r"^there is nothing at .*/train, and no \.dvc file, dvc\.lock or git"):
        hr.data_version(tmp_path / "train", check=check)


def test_links_are_followed_but_not_round_in_circles(tmp_path):
    write(tmp_path / "real", {"a": b"x"})
    (tmp_path / "data").mkdir()
    (tmp_path / "data/linked").symlink_to(tmp_path / "real")
    assert hr.data_version(tmp_path / "data").fingerprint == fingerprint(tmp_path / "other", {"linked/a": b"x"})

    (tmp_path / "real/back").symlink_to(tmp_path / "data")
    with pytest.raises(DataVersionError, match="is a link back to a folder above it"):
        hr.data_version(tmp_path / "data")


def test_a_link_to_nothing_is_refused_and_without_check_passed_over(tmp_path):
    (write(tmp_path, {"a": b"x"}) / "b").symlink_to("nowhere")
    with pytest.raises(DataVersionError, match=r"/b is a link to a file that is not there: nowhere"):
        hr.data_version(tmp_path)
    assert hr.data_version(tmp_path, check=False).fingerprint
