"""A replayed sample is the sample that the loader delivered: same stages, same draws; a failing one shows everything."""

import numpy as np
import pytest

import headrace as hr
from headrace.cli import main

TRAIN = """
import headrace as hr

def shake(sample, rng):
    if sample["x"] == 3:
        raise LookupError("three is missing")
    return {"x": sample["x"] + rng.random()}

plan = hr.arrays(x=[1.0, 2.0, 3.0], ids=["one", "two", "three"]).map(shake)
loader = hr.DataLoader(plan, seed=5)

class Words:
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return {"text": ["mill", "race"][index], "length": 4}
"""


@pytest.fixture(autouse=True)
def train_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)


def replayed_value(capsys, *words):
    assert main(["replay", *words]) == 0
    return float(capsys.readouterr().out.splitlines()[-1].split()[-1])


def shaken(seed, epoch):
    def shake(sample, rng):
        return sample["x"] + rng.random()

    plan = hr.arrays(x=np.array([1.0, 2.0]), ids=["one", "two"]).map(shake)
    return float(plan.sample(1, seed=seed, epoch=epoch))


@pytest.mark.parametrize(
    ("words", "seed", "epoch"),
    [
        (["train.py:loader", "two"], 5, 0),
        (["train.py:loader", "two", "--epoch", "3"], 5, 3),
        (["train.py:loader", "two", "--seed", "8"], 8, 0),
        (["train.py:plan", "two"], 0, 0),
        (["train.py:plan", "1", "--seed", "2", "--epoch", "9"], 2, 9),
    ],
)
def test_the_draws_are_those_of_seed_epoch_and_sample(words, seed, epoch, capsys):
    assert replayed_value(capsys, *words) == pytest.approx(shaken(seed, epoch), rel=1e-5)


def test_a_plain_data_set_is_shown_without_its_text(capsys):
    assert main(["replay", "train.py:Words", "1"]) == 0
    screen = capsys.readouterr().out
    assert screen.startswith("sample 1 (index 1), epoch 0, seed 0\n")
    assert "race" not in screen
    assert [line.split()[:2] for line in screen.splitlines()[2:]] == [["text", "string"], ["length", "number"]]


def test_a_failing_sample_shows_the_users_traceback_and_the_note(capsys):
    assert main(["replay", "train.py:loader", "three", "--epoch", "2"]) == 1
    error = capsys.readouterr().err
    assert 'raise LookupError("three is missing")' in error
    assert "sample three" in error
    assert "stage shake (train.py:" in error
    assert "epoch 2" in error
    assert "/headrace/" not in error


def test_an_unknown_id_is_wrong_usage(capsys):
    assert main(["replay", "train.py:loader", "thre"]) == 2
    assert "did you mean 'three'?" in capsys.readouterr().err
