"""`with hr.watch()`: the same inside a process, and hooks only as long as the block is open."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import headrace as hr
from headrace.errors import ConfigurationError


def loop(**more):
    data = TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20))
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for features, _ in DataLoader(data, batch_size=5, **more):
        optimizer.zero_grad()
        model(features).sum().backward()
        optimizer.step()


def test_a_block_prints_a_verdict_and_keeps_it(capsys):
    with hr.watch() as seen:
        loop()
        with pytest.raises(ConfigurationError, match="after the end of the with block"):
            _ = seen.report
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("WATCHED  this block: finished\n")
    assert "too short to judge" in printed.err
    assert seen.report.target["watch"]["loop"]["num_batches"] == 3
    assert seen.report.findings == []


def test_a_quiet_block_prints_nothing(capsys):
    with hr.watch(quiet=True, select=("HR702",)) as seen:
        loop()
    assert capsys.readouterr().err == ""
    assert seen.report.cleared == ["HR702"]


def test_an_exception_passes_and_the_verdict_is_there():
    with pytest.raises(KeyError, match="mine"), hr.watch(quiet=True) as seen:
        loop()
        raise KeyError("mine")
    assert seen.report.target["ending"] == "failed"


def test_blocks_do_not_nest_and_do_not_open_twice():
    block = hr.watch(quiet=True)
    with block:
        with pytest.raises(ConfigurationError, match=r"^hr\.watch: a block is open already"), hr.watch():
            pass
        with pytest.raises(ConfigurationError, match="cannot be opened twice"), block:
            pass
        loop()
    with pytest.raises(ConfigurationError, match="has ended"), block:
        pass
    with hr.watch(quiet=True) as again:
        loop()
    assert again.report.target["watch"]["num_loaders"] == 1


def test_an_unknown_code_is_refused_before_anything_is_hooked():
    with pytest.raises(ConfigurationError, match="no rule has the code"):
        hr.watch(select=("HR999",))


def test_the_first_batch_for_ever_is_found(capsys):
    data = TensorDataset(torch.arange(40.0).reshape(20, 2))
    with hr.watch() as seen:
        loader = DataLoader(data, batch_size=5)
        for _ in range(12):
            next(iter(loader))
    assert [finding.code for finding in seen.report.findings] == ["HR702"]
    assert "all 12 batches were the same first one" in seen.report.findings[0].message
    assert "test_watch_block.py:" in seen.report.findings[0].where


def test_a_look_at_a_batch_and_epochs_of_a_few_batches_are_healthy():
    data = TensorDataset(torch.arange(40.0).reshape(20, 2))
    with hr.watch(quiet=True) as seen:
        loader = DataLoader(data, batch_size=5)
        next(iter(loader))
        for _ in range(20):
            for number, _ in enumerate(loader):
                if number == 2:
                    break
    assert seen.report.findings == []
