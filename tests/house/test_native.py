"""Libraries are built from the C file as it is, and what cannot be built is said and done without."""

import ctypes
import shutil

import pytest

from headrace import native
from headrace.engine.order import kernels

needs_compiler = pytest.mark.skipif(shutil.which(native.compiler()[0]) is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "folder", tmp_path)


@needs_compiler
def test_a_library_is_found_where_it_was_built_and_older_ones_are_gone():
    place = native.library_path(kernels.SOURCE)
    place.parent.mkdir(parents=True)
    older = place.with_name("_kernels-00000000.so")
    older.write_bytes(b"")
    assert native.load(kernels.SOURCE, ctypes.PyDLL) is None
    assert native.build(kernels.SOURCE) == place
    assert native.load(kernels.SOURCE, ctypes.PyDLL) is not None
    assert list(place.parent.iterdir()) == [place]


def test_a_library_of_another_version_of_the_file_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "PACKAGE", tmp_path)
    paths = set()
    for text in ("int one;", "int other;"):
        (tmp_path / kernels.SOURCE).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / kernels.SOURCE).write_text(text)
        paths.add(native.library_path(kernels.SOURCE))
    assert len(paths) == 2


def test_where_there_is_no_compiler_each_file_gets_a_line(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -O1")
    built, failed = native.build_all()
    assert built == []
    assert [line.partition(":")[0] for line in failed] == list(native.SOURCES)
    assert all("no-such-compiler" in line for line in failed)


@needs_compiler
def test_what_the_compiler_says_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "SOURCES", {kernels.SOURCE: ("-lheadrace-no-such-library",)})
    built, (line,) = native.build_all()
    assert built == []
    assert "headrace-no-such-library" in line
    assert not list(tmp_path.rglob("_kernels*"))
