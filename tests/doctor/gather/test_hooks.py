"""Spies wait for a library to be imported by somebody else, and are in place before anybody sees it."""

import importlib
import sys

import pytest

from headrace.doctor.lab.spies import hooks
from headrace.doctor.lab.spies.hooks import when_imported


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Writes a module under a name that nobody has; forgets it and the finder at the end."""
    names = []

    def write(code, name="foreign_library_of_tests"):
        (tmp_path / f"{name}.py").write_text(code)
        names.append(name)
        return name

    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield write
    sys.meta_path[:] = before
    for name in names:
        sys.modules.pop(name, None)


def loud(module):
    original = module.read
    module.read = lambda: original().upper()


def test_a_name_taken_from_the_module_is_the_spied_one(library):
    name = library("def read():\n    return 'data'\n")
    when_imported(name, loud)
    assert name not in sys.modules
    namespace = {}
    exec(f"from {name} import read", namespace)
    assert namespace["read"]() == "DATA"


def test_a_module_that_is_there_already_is_spied_on_at_once(library):
    name = library("def read():\n    return 'data'\n")
    module = importlib.import_module(name)
    when_imported(name, loud)
    assert module.read() == "DATA"


def test_a_module_that_puts_another_in_its_place(library):
    name = library(
        "import sys, types\nother = types.ModuleType(__name__)\nother.read = lambda: 'x'\nsys.modules[__name__] = other\n"
    )
    when_imported(name, loud)
    assert importlib.import_module(name).read() == "X"


def test_a_library_of_another_version_is_used_without_its_spy(library):
    name = library("def other():\n    return 'data'\n")
    when_imported(name, loud)
    assert importlib.import_module(name).other() == "data"


def test_a_module_that_fails_fails_as_it_would(library):
    name = library("raise RuntimeError('no such device')\n")
    when_imported(name, loud)
    with pytest.raises(RuntimeError, match=r"^no such device$"):
        importlib.import_module(name)


def test_other_modules_and_missing_ones_are_none_of_its_business(library):
    name = library("value = 1\n")
    when_imported("nobody_has_this_module", loud)
    assert importlib.import_module(name).value == 1
    with pytest.raises(ModuleNotFoundError, match="nobody_has_this_module"):
        importlib.import_module("nobody_has_this_module")


def test_the_loader_is_otherwise_the_modules_own(library):
    name = library("value = 1\n")
    when_imported(name, lambda module: None)
    module = importlib.import_module(name)
    assert module.__spec__.loader.get_source(name) == "value = 1\n"
    assert sum(isinstance(finder, hooks._Finder) for finder in sys.meta_path) == 1
