"""`hr.diagnose(loader)`: the same findings as the command's, and nothing of the caller's changes."""

import os
import pathlib
import random

import numpy as np
import psutil
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import headrace as hr
from headrace.errors import ConfigurationError, TargetError

pytestmark = pytest.mark.slow  # each test forks


def make_local(bad=3):
    class Rows(Dataset):  # as in a notebook: no file, no name to import it by
        opened = 0

        def __len__(self):
            return 12

        def __getitem__(self, index):
            Rows.opened += 1
            random.random(), np.random.rand(), torch.rand(1)
            return torch.full((4 + (index == bad),), float(index)), index % 2

    return Rows


def fingerprint():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def test_findings_name_the_sample_and_nothing_of_the_callers_changes():
    rows = make_local()
    loader = DataLoader(rows(), batch_size=4)
    before, children = fingerprint(), psutil.Process().children(recursive=True)
    descriptors = len(list(pathlib.Path("/proc/self/fd").iterdir()))
    report = hr.diagnose(loader, select=["HR3"])
    assert [(row.code, row.sample_ids) for row in report.findings] == [("HR302", [3])]
    assert "HR302" in report.text()
    assert report.exit_status == 1
    assert fingerprint() == before
    assert rows.opened == 0, "the data set itself was not touched"
    assert psutil.Process().children(recursive=True) == children
    assert len(list(pathlib.Path("/proc/self/fd").iterdir())) == descriptors


def test_an_iterator_that_is_under_way_goes_on():
    iterator = iter(DataLoader(list(range(6)), batch_size=2))
    assert next(iterator).tolist() == [0, 1]
    loader = DataLoader(make_local(bad=None)(), batch_size=4)
    assert hr.diagnose(loader, select=["HR3"]).verdict == "clean"
    assert next(iterator).tolist() == [2, 3]


def test_a_crash_is_a_finding_and_not_the_end_of_the_notebook():
    class Ends(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            if index == 4:
                os._exit(9)
            return index

    report = hr.diagnose(Ends(), select=["HR101"])
    assert [(row.code, row.sample_ids) for row in report.findings] == [("HR101", [4])]


def test_a_stream_that_exists_only_here_is_walked_with_workers():
    class Stream(IterableDataset):
        def __iter__(self):
            yield from (torch.tensor([float(number)]) for number in range(20))

    report = hr.diagnose(DataLoader(Stream(), num_workers=2), select=["HR601"])
    assert [row.code for row in report.findings] == ["HR601"]


def test_what_cannot_be_examined_is_an_error_that_says_so():
    with pytest.raises(TargetError, match="the object is something of type"):
        hr.diagnose(object())
    with pytest.raises(ConfigurationError, match="exclude"):
        hr.diagnose([1, 2], full=True, quick=True)


def test_a_text_is_a_target_as_on_the_command_line(tmp_path):
    (tmp_path / "data.py").write_text("def make():\n    return [1.0, float('nan'), None]\n")
    report = hr.diagnose(f"{tmp_path}/data.py:make", select=["HR306"])
    assert [row.sample_ids for row in report.findings] == [[2]]
