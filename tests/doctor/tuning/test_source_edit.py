"""The edit of a user's file: only the arguments of the one call change, in whatever style it is written."""

from __future__ import annotations

import ast
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.source_edit import NotFound, arguments_of, edit

HEAD = "from torch.utils.data import DataLoader\n\n\n"


def _edited(text: str, target: str = "make", **arguments: object) -> str:
    return edit(text.encode(), target, arguments).raw.decode()


def _call(text: str) -> ast.Call:
    (call,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("DataLoader", "DL"))
    )
    return call


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("DataLoader(data, batch_size=8)", "DataLoader(data, batch_size=8, num_workers=4)"),
        ("DataLoader(data, num_workers=2)", "DataLoader(data, num_workers=4)"),
        ("DataLoader(data, num_workers = 0 )", "DataLoader(data, num_workers = 4 )"),
        ("DataLoader(data, 8, True, None, None, 2)", "DataLoader(data, 8, True, None, None, 4)"),
        ("DataLoader(data,)", "DataLoader(data, num_workers=4)"),
        ("DataLoader((data))", "DataLoader((data), num_workers=4)"),
        (
            "DataLoader(\n        data,\n        batch_size=8,\n    )",
            "DataLoader(\n        data,\n        batch_size=8,\n        num_workers=4,\n    )",
        ),
        (
            "DataLoader(\n        data,\n        batch_size=8\n    )",
            "DataLoader(\n        data,\n        batch_size=8,\n        num_workers=4\n    )",
        ),
        (
            "DataLoader(\n        data,  # all\n        batch_size=8,  # fits (just)\n        # shuffle=True\n    )",
            "DataLoader(\n        data,  # all\n        batch_size=8,  # fits (just)\n        num_workers=4,\n        # shuffle=True\n    )",
        ),
        (
            "DataLoader(\n        data,\n        batch_size=8  # a, b)\n    )",
            "DataLoader(\n        data,\n        batch_size=8,  # a, b)\n        num_workers=4\n    )",
        ),
        (
            "DataLoader(data,\n               batch_size=8)",
            "DataLoader(data,\n               batch_size=8, num_workers=4)",
        ),
        ("DataLoader(data, collate_fn=lambda x: x)", "DataLoader(data, collate_fn=lambda x: x, num_workers=4)"),
        ("DataLoader(data, num_workers=2, **more)", "DataLoader(data, num_workers=4, **more)"),
    ],
)
def test_the_call_alone_changes_and_keeps_its_style(call, expected):
    text = f"{HEAD}def make():\n    # how we load\n    return {call}  # end\n"
    assert _edited(text, num_workers=4) == f"{HEAD}def make():\n    # how we load\n    return {expected}  # end\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{HEAD}def make(n=2):\n    return DataLoader(d, num_workers=n)\n", "num_workers in line 5 is n"),
        (f"{HEAD}def make():\n    return DataLoader(d, **options)\n", r"takes \*\*arguments"),
        (f"{HEAD}def make():\n    return DataLoader(*parts)\n", r"takes \*arguments"),
        (f"{HEAD}def make():\n    return DataLoader(a), DataLoader(b)\n", "makes 2 loaders, in lines 5, 5"),
        ("from mine import MyDataLoader\ndef make():\n    return MyDataLoader(a)\n", "not PyTorch's own"),
        (f"{HEAD}class DataLoader:\n    pass\ndef make():\n    return DataLoader(a)\n", "not PyTorch's own"),
        ("from mine import build_loader\ndef make():\n    return build_loader(a)\n", "perhaps in mine"),
        ("from data import make\n", "imported from data: name that module in TARGET"),
        ("def other():\n    pass\n", "not defined in this file"),
        (
            f"{HEAD}if X:\n    def make(): return DataLoader(a)\nelse:\n    def make(): return DataLoader(b)\n",
            "2 times",
        ),
        (
            f"{HEAD}def build(d):\n    return DataLoader(d)\ndef make():\n    return build(1)\nval = build(2)\n",
            "in 2 places",
        ),
        (f"{HEAD}def make(:\n", "cannot be parsed"),
        (f"{HEAD}def make():\n    return DataLoader(x for x in y)\n", "a generator without brackets"),
        (f"{HEAD}def make():\n    return DataLoader(d, num_workers=(1 +\n        1))\n", "num_workers in line 5 is"),
        (f"{HEAD}def make():\r    return DataLoader(d)\r", "cannot be read as Python text"),
    ],
)
def test_what_is_not_certain_is_refused_with_the_reason(text, reason):
    with pytest.raises(NotFound, match=reason):
        _edited(text, num_workers=4)


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ndef make():\n    return torch.utils.data.DataLoader(d)\n",
        "import torch.utils.data as tud\ndef make():\n    return tud.DataLoader(d)\n",
        "from torch.utils import data\ndef make():\n    return data.DataLoader(d)\n",
        "from torch.utils.data import DataLoader as DL\ndef make():\n    loader = DL(d)\n    return loader\n",
        "from torch.utils.data import *\ndef make():\n    return DataLoader(d)\n",
        f"{HEAD}make = DataLoader(d)\n",
        f"{HEAD}make: DataLoader = DataLoader(d)\n",
        f"{HEAD}if True:\n    make = DataLoader(d)\n",
        f"{HEAD}def _build(d):\n    return DataLoader(d)\n\ndef make():\n    return _build(1)\n",
        "def make():\n    from torch.utils.data import DataLoader\n    return DataLoader(d)\n",
    ],
)
def test_the_call_is_found_however_it_is_named(text):
    assert ast.unparse(_call(_edited(text, num_workers=4)).keywords[-1]) == "num_workers=4"


def test_a_method_is_found_by_its_dotted_name():
    text = f"{HEAD}class Data:\n    def train(self): return DataLoader(a)\n    def val(self): return DataLoader(b)\n"
    assert "DataLoader(b, num_workers=1)" in _edited(text, "Data.val", num_workers=1)


def test_without_workers_what_needs_them_goes():
    text = f"{HEAD}def make():\n    return DataLoader(d, num_workers=2, prefetch_factor=4, persistent_workers=True)\n"
    assert "num_workers=0, prefetch_factor=None, persistent_workers=False)" in _edited(text, num_workers=0)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encoding_and_line_ends_stay(encoding, newline):
    cookie = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else ""
    text = f"{cookie}{HEAD}NAME = 'größe'\ndef make():\n    return DataLoader(\n        'ä',\n        num_workers=2,\n    )\n"
    raw = text.replace("\n", newline).encode(encoding)
    after = edit(raw, "make", {"num_workers": 4, "prefetch_factor": 4}).raw
    expected = text.replace("num_workers=2,\n", "num_workers=4,\n        prefetch_factor=4,\n")
    assert after == expected.replace("\n", newline).encode(encoding)


ARGUMENTS = st.lists(
    st.sampled_from(
        ["batch_size=8", "shuffle=True", "collate_fn=lambda b: b", "timeout=0", "num_workers=2", "drop_last=(True)"]
    ),
    unique=True,
)
GAPS = st.sampled_from([", ", ",", ",\n        ", " ,  ", ",  # why, (not)\n        ", ",\n\n        # note\n        "])
ENDS = st.sampled_from(
    ["", ",", "\n    ", ",\n    ", "  # last\n    ", ",  # last ,)\n    ", " ", ",  # a\n        # b\n    "]
)


@settings(max_examples=200, deadline=None)
@given(
    arguments=ARGUMENTS,
    gaps=st.lists(GAPS, min_size=7, max_size=7),
    start=st.sampled_from(["", "\n        ", "  # first\n        "]),
    end=ENDS,
    changes=st.fixed_dictionaries({"num_workers": st.integers(1, 64)}, optional={"prefetch_factor": st.integers(1, 8)}),
)
def test_any_style_of_call_is_changed_in_nothing_but_the_arguments(arguments, gaps, start, end, changes):
    parts = ["data", *arguments]
    inside = "".join(part + gap for part, gap in zip(parts, gaps, strict=False))[: -len(gaps[len(parts) - 1])]
    text = f"{HEAD}def make():\n    x = 1  # before\n    return DataLoader({start}{inside}{end})  # behind\n\n\ny = 2\n"
    after = _edited(text, **changes)
    before_call, after_call = _call(text), _call(after)
    kept = {one.arg: ast.unparse(one.value) for one in before_call.keywords if one.arg not in changes}
    assert {one.arg: ast.unparse(one.value) for one in after_call.keywords} == kept | {
        k: repr(v) for k, v in changes.items()
    }
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert [line.partition("#")[2] for line in after.splitlines() if "#" in line] == comments
    assert after.startswith(text.partition("DataLoader(")[0])
    assert after.endswith(")  # behind\n\n\ny = 2\n")
    assert edit(after.encode(), "make", changes).raw.decode() == after, "done twice, nothing more happens"


def test_the_diff_applies_to_one_line():
    diff = edit(
        f"{HEAD}def make():\n    return DataLoader(d, num_workers=2)\n".encode(), "make", {"num_workers": 4}
    ).diff
    changed = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert changed == ["-    return DataLoader(d, num_workers=2)", "+    return DataLoader(d, num_workers=4)"]


FACTS = LoaderNow(
    library="torch", kind="DataLoader", present=Setting(num_workers=2, prefetch_factor=2, persistent_workers=False)
)


def test_arguments_are_named_as_the_loader_names_them():
    change = Setting(num_workers=4, prefetch_factor=2, start_method="forkserver")
    assert arguments_of(FACTS, change) == {"num_workers": 4, "multiprocessing_context": "forkserver"}


@pytest.mark.parametrize("change", [Setting(loader="headrace"), Setting(reads_batches=True)])
def test_what_is_more_than_arguments_is_refused(change):
    with pytest.raises(NotFound, match="more than an argument"):
        arguments_of(FACTS, change)


def test_the_places_of_arguments_are_those_of_the_loaders():
    import inspect

    import torch.utils.data

    import headrace
    from headrace.doctor.tuning.source_edit import POSITIONS

    for loader in (torch.utils.data.DataLoader, headrace.DataLoader):
        assert tuple(inspect.signature(loader).parameters)[: len(POSITIONS)] == POSITIONS


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "DataLoader(data, batch_size=8, \\\n        shuffle=True)",
            "DataLoader(data, batch_size=8, \\\n        shuffle=True, num_workers=4)",
        ),
        ("wrap(DataLoader(data), 3)", "wrap(DataLoader(data, num_workers=4), 3)"),
        ("DataLoader(f(g(data)))", "DataLoader(f(g(data)), num_workers=4)"),
        ("DataLoader(data, collate_fn=(lambda b: (b)))", "DataLoader(data, collate_fn=(lambda b: (b)), num_workers=4)"),
        ("DataLoader(data, batch_size=(n := 8))", "DataLoader(data, batch_size=(n := 8), num_workers=4)"),
        ("DataLoader(data, num_workers=-1)", "DataLoader(data, num_workers=4)"),
        (
            "DataLoader(\n        data, batch_size=8,\n        shuffle=True,\n    )",
            "DataLoader(\n        data, batch_size=8,\n        shuffle=True,\n        num_workers=4,\n    )",
        ),
        (
            "DataLoader(\n        data, batch_size=8\n    )",
            "DataLoader(\n        data, batch_size=8, num_workers=4\n    )",
        ),
        (
            "DataLoader(\n\tdata,\n\tbatch_size=8,\n    )",
            "DataLoader(\n\tdata,\n\tbatch_size=8,\n\tnum_workers=4,\n    )",
        ),
    ],
)
def test_other_styles(call, expected):
    text = f"{HEAD}def make():\n    return {call}\n"
    assert _edited(text, num_workers=4) == f"{HEAD}def make():\n    return {expected}\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}make = lambda: DataLoader(d)\n",
        f"{HEAD}def make():\n    with_it = dict(train=DataLoader(d))\n    return with_it['train']\n",
        f"{HEAD}try:\n    import x\nexcept ImportError:\n    def make(): return DataLoader(d)\n",
        "import headrace as hr\ndef make():\n    return hr.DataLoader(d)\n",
        "from torchdata.stateful_dataloader import StatefulDataLoader\ndef make():\n    return StatefulDataLoader(d)\n",
    ],
)
def test_more_ways_to_make_a_loader(text):
    assert ", num_workers=4)" in _edited(text, num_workers=4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "from functools import partial\nfrom torch.utils.data import DataLoader\nmake = partial(DataLoader, d)\n",
            "no call of DataLoader",
        ),
        (f"{HEAD}make = DataLoader(d)\nmake = wrap(make)\n", "defined 2 times, in lines 4, 5"),
        (
            f"{HEAD}def a():\n    return DataLoader(1)\ndef b():\n    return DataLoader(2)\ndef make():\n    return a() or b()\n",
            "several functions",
        ),
        (f"{HEAD}def make():\n    return make()\n", "no call of DataLoader"),
        (
            f"{HEAD}def make():\n    return DataLoader(d, num_workers=WORKERS)\n",
            "is WORKERS: set it where that comes from",
        ),
    ],
)
def test_more_that_is_refused(text, reason):
    with pytest.raises(NotFound, match=reason):
        _edited(text, num_workers=4)


@pytest.mark.parametrize("end", ["\n", ""])
def test_the_diff_is_one_that_git_applies(end, tmp_path):
    file = tmp_path / "train.py"
    file.write_text(f"{HEAD}x = 1\nmake = DataLoader(\n    data,\n    num_workers=2,\n){end}")
    edited = edit(file.read_bytes(), "make", {"num_workers": 4, "prefetch_factor": 4}, name="train.py")
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=edited.diff.encode(), check=True)
    assert file.read_bytes() == edited.raw
