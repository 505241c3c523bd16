"""Two loaders timed in turn: what is said, when nothing is timed, and what is left behind. No clock decides here."""

import math
import random
import time
import types

import psutil
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import headrace as hr
from headrace.doctor.evidence.speeds import SpeedRatio
from headrace.doctor.lab.outside import Budget
from headrace.doctor.speeds.in_turn import _InTurn, time_in_turn
from headrace.doctor.speeds.text import render_speed, speed_line


class Rows(Dataset):
    def __init__(self, nap_s=0.0, size=40, fails_from=None):
        self.nap_s, self.size, self.fails_from = nap_s, size, fails_from

    def __len__(self):
        return self.size

    def __getitem__(self, row):
        time.sleep(self.nap_s)
        if self.fails_from is not None and row >= self.fails_from:
            raise KeyError("gone")
        return torch.tensor([row])


def loader(**options):
    workers = options.pop("num_workers", 0)
    return DataLoader(Rows(**options), batch_size=4, num_workers=workers)


@pytest.mark.slow
def test_real_rounds_of_both_and_no_process_is_left(tmp_path):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    a, b = loader(nap_s=0.001), loader(nap_s=0.01, num_workers=1)
    found = time_in_turn(a, b, budget_s=8, seed=0, folder=str(tmp_path), num_samples=40)
    assert all(0 < rate <= 1 / 0.01 for rate in found.rates_b)  # no sleep ends early
    assert found.outcome in {"slower", "inconclusive"}  # how many blocks there is time for is the machine's affair
    assert "there was time for" in found.why
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


class MadeUp(_InTurn):
    """Rounds of known rates, which take as long as is said."""

    def __init__(self, rates, round_s, budget_s, noise=0.005):
        self.now_s, self.rates, self.round_s, self.noise = 0.0, rates, round_s, noise
        self.random = random.Random(0)
        super().__init__(dict.fromkeys("AB"), Budget(budget_s, clock=lambda: self.now_s), 0, "", None, lambda _: None)

    def _timed(self, name, window_s):
        self.now_s += self.round_s + window_s
        if self.rates[name] is None:
            return None, "KeyError: 'gone'"
        return types.SimpleNamespace(
            rate=self.rates[name] * math.exp(self.random.gauss(0, self.noise)), began_s=self.now_s
        ), ""


@pytest.fixture
def made_up(monkeypatch):
    monkeypatch.setattr("headrace.doctor.speeds.in_turn.epoch_rate", lambda timed, _: timed.rate)
    return MadeUp


@pytest.mark.parametrize(
    ("rates", "outcome"), [((100, 150), "faster"), ((100, 50), "slower"), ((100, 100), "same"), ((100, 104), "faster")]
)
def test_blocks_that_can_tell_do(made_up, rates, outcome):
    found = made_up(dict(zip("AB", rates, strict=True)), round_s=0.3, budget_s=60).run()
    assert (found.outcome, found.why) == (outcome, "")
    assert found.num_blocks >= 6
    assert found.interval[0] <= rates[1] / rates[0] <= found.interval[1]
    assert (len(found.rates_a), len(found.rates_b)) == (4 * found.num_blocks, 2 * found.num_blocks)
    assert found.noise < 1.02


@pytest.mark.parametrize(("budget_s", "num_blocks"), [(6.0, 0), (10.5, 1), (25.0, 2)])
def test_what_there_is_no_time_for_is_said(made_up, budget_s, num_blocks):
    one = made_up({"A": 100, "B": 200}, round_s=0.9, budget_s=budget_s)
    found = one.run()
    assert one.now_s <= budget_s
    assert (found.outcome, found.num_blocks) == ("inconclusive", num_blocks)
    assert found.why == f"there was time for {num_blocks} block{'' if num_blocks == 1 else 's'}, and 6 can tell"
    assert (found.ratio is None) == (num_blocks == 0)


def test_where_the_data_differ_nothing_is_timed():
    began = time.monotonic()
    found = hr.compare(loader(), loader(size=39), levels=("E0",), speed=True, budget_s=600)
    assert found.verdict == "different"
    assert (found.speed.outcome, found.speed.ratio, found.speed.rates_a) == ("inconclusive", None, ())
    assert speed_line(found.speed) == "not compared"
    assert render_speed(found.speed) == "speed    not compared: they do not deliver the same data\n"
    assert time.monotonic() - began < 300


def test_speeds_are_not_looked_at_unless_asked():
    assert hr.compare(loader(), loader(), levels=("E0",), samples=8).speed is None


def test_one_that_fails_alone_is_said(tmp_path):
    found = time_in_turn(loader(), loader(fails_from=20), budget_s=20, seed=0, folder=str(tmp_path))
    assert found.outcome == "inconclusive"
    assert found.why.startswith("B was not timed: KeyError: 'gone'")


def speeds(**changes):
    known = {
        "rates_a": (100.0, 121.0),
        "rates_b": (200.0,),
        "outcome": "faster",
        "ratio": 1.8181,
        "interval": (1.79, 1.851),
        "noise": 1.024,
        "num_blocks": 6,
    }
    return SpeedRatio(**{**known, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "B is faster: x1.82 [1.79, 1.85] of A; A 110 samples/s, B 200 samples/s in 6 blocks in turn"),
        ({"outcome": "slower", "ratio": 0.5, "interval": (0.49, 0.51)}, "B is slower: x0.50 [0.49, 0.51] of A"),
        ({"outcome": "same", "ratio": 1.0, "interval": None}, "equally fast: B delivers x1.00 of A; A 110"),
        ({}, "two entries of A differed by up to 2.4 %"),
        (
            {
                "outcome": "inconclusive",
                "num_blocks": 1,
                "why": "there was time for 1 block, and 6 can tell",
                "more_s": 41.6,
            },
            "A differed by up to 2.4 %; there was time for 1 block, and 6 can tell; about 42 s more would settle it",
        ),
        (
            {"rates_a": (), "rates_b": (), "ratio": None, "noise": None, "why": "A was not timed: KeyError"},
            "not compared: A",
        ),
    ],
)
def test_what_is_known_is_said_and_no_more(changes, said):
    assert said in " ".join(render_speed(speeds(**changes)).split())
