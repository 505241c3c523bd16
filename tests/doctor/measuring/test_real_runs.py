"""Real loaders whose truth is far larger than any noise: they sleep."""

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import headrace
from headrace.doctor.measuring.measure import Options, measure
from headrace.errors import ConfigurationError, TargetError


class Sleepy(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 3000

    def __getitem__(self, row):
        time.sleep(self.seconds)
        return torch.full((4,), row), row % 3


class Breaks(Sleepy):
    def __getitem__(self, row):
        raise RuntimeError(f"row {row} is broken")


def short(batch):
    time.sleep(0.002)


def test_a_loader_that_sleeps_limits_the_loop_and_the_data_set_is_named():
    started = time.monotonic()
    found = headrace.measure(DataLoader(Sleepy(0.01), batch_size=4), step=short, budget_s=12)
    assert (found.conclusion.verdict, found.conclusion.causes[0].cause) == ("limited", "sample")
    assert found.waiting.share.value > 0.5
    assert found.scope.cache.label == "unknown"
    assert {row.num_workers for row in found.plain} <= {0, 2}
    assert time.monotonic() - started < 12 + 8  # the budget, and what a crowded machine takes to end


def test_the_loader_alone_gets_its_rate():
    found = headrace.measure(DataLoader(Sleepy(0.005), batch_size=4), budget_s=8)
    assert found.conclusion.verdict == "supply"
    assert found.decomposition is None
    alone = next(arm for arm in found.arms if arm.kind == "L")
    assert alone.rounds.median_per_s <= 200  # no sample in less than it sleeps
    assert all(run.timed is not None for run in found.runs if run.arm == "L")


def test_what_the_users_code_raises_is_told_with_its_line():
    with pytest.raises(TargetError, match=r"row \d+ is broken.*test_real_runs\.py:\d+"):
        measure(DataLoader(Breaks(0), batch_size=4), Options(budget_s=10))


def test_a_step_that_fails_is_told_as_such():
    def step(batch):
        raise ValueError("no such layer")

    with pytest.raises(TargetError, match=r"under step: ValueError: no such layer, at .* in step \(round r\d+\)"):
        headrace.measure(DataLoader(Sleepy(0), batch_size=4), step=step, budget_s=10)


def test_options_that_cannot_be_meant():
    with pytest.raises(ConfigurationError, match="at least 5 s"):
        Options(budget_s=1)
    with pytest.raises(ConfigurationError, match="exclude each other"):
        headrace.measure("a.py:make", step="a.py:step", step_ms=3)
    with pytest.raises(ConfigurationError, match="needs the loader itself"):
        headrace.measure("a.py:make", step=short)
