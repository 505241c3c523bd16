"""A TARGET is found and made, or the message says what to change."""

import sys

import pytest

from headrace.doctor.subject.target import check_spec, load_target
from headrace.errors import TargetError


@pytest.fixture(autouse=True)
def clean_imports(monkeypatch, tmp_path):
    """Each test stands in its own empty folder and leaves no module behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


GOOD = """
import os
from beside import numbers

class Squares:
    def __len__(self): return 3
    def __getitem__(self, index): return index ** 2

class Nested:
    data = [1, 2]

ready = [4, 5, 6]
place = (__name__, os.getcwd())
def make_loader(): return Squares()
def with_default(size=2): return list(range(size))
if __name__ == "__main__":
    raise SystemExit("must not run")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "train_it.py").write_text(GOOD)
    (tmp_path / "sub" / "beside.py").write_text("numbers = [1]")
    return tmp_path


@pytest.mark.parametrize(
    ("attribute", "samples"),
    [
        ("make_loader", [0, 1, 4]),
        ("Squares", [0, 1, 4]),
        ("ready", [4, 5, 6]),
        ("with_default", [0, 1]),
        ("Nested.data", [1, 2]),
    ],
)
def test_a_value_is_taken_and_a_maker_is_called(folder, attribute, samples):
    found = load_target(f"sub/train_it.py:{attribute}")
    assert [found[i] for i in range(len(found))] == samples


def test_a_file_runs_under_its_own_name_in_the_folder_where_one_is(folder):
    assert load_target("sub/train_it.py:place") == ("train_it", str(folder))
    assert sys.modules["train_it"].ready == [4, 5, 6]


def test_a_module_is_found_from_the_current_folder(tmp_path):
    (tmp_path / "package_x").mkdir()
    (tmp_path / "package_x" / "__init__.py").touch()
    (tmp_path / "package_x" / "data_x.py").write_text("from . import data_y\nmake = lambda: data_y.rows")
    (tmp_path / "package_x" / "data_y.py").write_text("rows = [7]")
    assert load_target("package_x.data_x:make") == [7]


def test_two_files_of_one_name_do_not_mix(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(f"rows = [{folder!r}]")
    assert load_target("a/same.py:rows") == ["a"]
    assert load_target("b/same.py:rows") == ["b"]


def test_a_file_named_like_a_loaded_library_does_not_replace_it(tmp_path):
    import json

    (tmp_path / "json.py").write_text("rows = [1]")
    assert load_target("json.py:rows") == [1]
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    "code", ["import argparse; argparse.ArgumentParser().parse_args()\nrows = [1]", "import sys\nrows = sys.argv"]
)
def test_a_script_does_not_see_our_arguments(tmp_path, monkeypatch, code):
    monkeypatch.setattr(sys, "argv", ["headrace", "diagnose", "--full"])
    (tmp_path / "script.py").write_text(code)
    assert load_target("script.py:rows") in ([1], ["script.py"])
    assert sys.argv == ["headrace", "diagnose", "--full"]


BAD = """
import asyncio
def make_loader(root, *, split): pass
def none(): pass
def generator(): yield 1
def boom():
    return {}["label"]
async def coroutine(): pass
def number(): return 3
def text(): return "train"
def mapping(): return {"a": [1], "b": [2]}
class NoSamples: pass
"""


@pytest.mark.parametrize(
    ("spec", "patterns"),
    [
        ("bad", [r"^TARGET 'bad' has no ':'", r"train\.py:make_loader"]),
        ("bad.py", [r"^TARGET 'bad.py' names a file, but not what in it", r"do:    bad\.py:make_loader$"]),
        ("bad.py:", [r"^TARGET 'bad.py:' names a file"]),
        ("bad.py:a b", [r"'a b' is not the name of an attribute"]),
        ("bed.py:make_loader", [r"^TARGET: there is no file bed\.py in .*; did you mean 'bad\.py'\?", r"bad\.py"]),
        ("no/such/bad.py:make", [r"there is no folder no/such"]),
        (
            "bad.py:make_loder",
            [r"bad\.py has no make_loder; did you mean 'make_loader'\?", r"do:    bad\.py:make_loader$"],
        ),
        ("bad.py:NoSamples.x", [r"has no x"]),
        (
            "bad.py:make_loader",
            [r"make_loader needs arguments \(root, split\)", r"make_loader\(root=\.\.\., split=\.\.\.\)"],
        ),
        ("bad.py:none", [r"none\(\) returned None$", r"return statement"]),
        ("bad.py:generator", [r"type generator$", r"walked through once"]),
        ("bad.py:coroutine", [r"type coroutine$"]),
        ("bad.py:number", [r"number\(\) returned something of type int$", r"__len__ and __getitem__"]),
        ("bad.py:text", [r"type str$"]),
        ("bad.py:mapping", [r"type dict$"]),
        ("bad.py:NoSamples", [r"type bad\.NoSamples$"]),
        ("bad.py:boom", [r"boom\(\) failed: KeyError: 'label'$", r"raised at bad\.py:7 in boom$"]),
        ("badd:make", [r"there is no module badd; did you mean 'bad'\?"]),
        ("os.nothing:x", [r"there is no module os\.nothing"]),
        ("exits.py:x", [r"exits\.py could not be imported: SystemExit: 2$", r"exits\.py:1", r"__main__"]),
        ("syntax.py:x", [r"SyntaxError", r"syntax\.py:2$"]),
        (
            "missing.py:x",
            [r"ModuleNotFoundError: No module named 'no_such_library'$", r"missing\.py:1", r"pip install"],
        ),
        ("relative.py:x", [r"relative import", r"package\.module:attribute"]),
    ],
)
def test_bad_input_is_answered(tmp_path, spec, patterns):
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "exits.py").write_text("import sys; sys.exit(2)")
    (tmp_path / "syntax.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "missing.py").write_text("import no_such_library")
    (tmp_path / "relative.py").write_text("from . import bad")
    with pytest.raises(TargetError) as caught:
        load_target(spec)
    for pattern in patterns:
        assert caught.match(f"(?m){pattern}")


def test_the_users_own_exception_is_the_cause(tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    with pytest.raises(TargetError) as caught:
        load_target("bad.py:boom")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.slow
@pytest.mark.parametrize(("maker", "kind"), [("pair", tuple), ("named", dict)])
def test_several_loaders_are_returned_as_they_are(tmp_path, maker, kind):
    (tmp_path / "split.py").write_text(
        "from torch.utils.data import DataLoader\n"
        "def pair(): return DataLoader([1]), DataLoader([2])\n"
        "def named(): return {'train': DataLoader([1]), 'val': DataLoader([2])}\n"
    )
    found = load_target(f"split.py:{maker}")
    assert type(found) is kind
    assert len(found) == 2


def test_checking_a_spec_executes_nothing(tmp_path):
    (tmp_path / "train_it.py").write_text("1 / 0")
    assert check_spec("train_it.py:make") == ("train_it.py", "make")
