"""A stage knows its name, its place and whether it is random, and refuses a function that cannot be one."""

import functools
import operator
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from headrace.engine.transform import Stage, sample_generator
from headrace.errors import ConfigurationError


def double(sample):
    return sample * 2


def jitter(sample, rng):
    return sample + rng.random()


def jitter_by_keyword(sample, *, scale=1, rng=None):
    return sample + scale * rng.random()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Adder:
    def __init__(self, amount=1):
        self.amount = amount

    def __call__(self, sample):
        return sample + self.amount

    def jitter(self, sample, rng):
        return sample + self.amount * rng.random()


class Module(torch.nn.Module):
    def forward(self, x):
        return x


class RandomModule(torch.nn.Module):
    def forward(self, x, rng=None):
        return x + rng.random()


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # files outside the working directory are shown by their whole path


def line(function):
    return f"{__file__}:{function.__code__.co_firstlineno}"


@pytest.mark.parametrize(
    ("function", "name", "takes_rng", "location"),
    [
        (double, "double", False, line(double)),
        (jitter, "jitter", True, line(jitter)),
        (jitter_by_keyword, "jitter_by_keyword", True, line(jitter_by_keyword)),
        (decorated(jitter), "jitter", True, line(jitter)),
        (functools.partial(jitter_by_keyword, scale=2), "jitter_by_keyword", True, line(jitter_by_keyword)),
        (Adder(), "Adder", False, line(Adder.__call__)),
        (Adder().jitter, "jitter", True, line(Adder.jitter)),
        (Adder, "Adder", False, line(Adder.__init__)),
        (Module(), "Module", False, line(Module.forward)),
        (RandomModule(), "RandomModule", True, line(RandomModule.forward)),
        (len, "len", False, None),
        (int, "int", False, None),
        (np.sqrt, "sqrt", False, None),
        (operator.itemgetter("x"), "itemgetter", False, None),
        (functools.partial(np.clip, a_min=0, a_max=1), "clip", False, ...),
    ],
)
def test_name_rng_and_place(function, name, takes_rng, location):
    stage = Stage.of(function)
    assert (stage.name, stage.takes_rng) == (name, takes_rng)
    assert location is ... or stage.location == location
    assert location is ... or str(stage) == (name if location is None else f"{name} ({location})")


def test_a_lambda_has_a_name_and_a_place():
    function = lambda sample: sample  # noqa: E731 the lambda is under test
    assert str(Stage.of(function)) == f"lambda ({line(function)})"
    assert Stage.of(function, "scale").name == "scale"


def test_a_file_below_the_working_directory_is_shown_from_there(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    assert Stage.of(double).location == f"{Path(__file__).name}:{double.__code__.co_firstlineno}"


def test_a_plain_stage_is_a_call():
    assert Stage.of(double).apply(21, seed=0, epoch=0, sample_id=0) == 42


@pytest.mark.parametrize("function", [jitter, jitter_by_keyword, decorated(jitter), Adder().jitter, RandomModule()])
def test_a_random_stage_gets_the_generator_of_its_sample(function):
    stage = Stage.of(function, "noise")
    for key in [(0, 0, "a"), (0, 1, "a"), (1, 0, "a"), (0, 0, "b")]:
        seed, epoch, sample_id = key
        assert stage.apply(1.0, seed=seed, epoch=epoch, sample_id=sample_id) == (
            1.0 + sample_generator(*key, "noise").random()
        )


def test_the_name_is_part_of_the_key():
    drawn = {Stage.of(jitter, name).apply(0, seed=0, epoch=0, sample_id=0) for name in ("a", "b")}
    assert len(drawn) == 2


def test_exceptions_pass_through_untouched():
    with pytest.raises(ZeroDivisionError) as caught:
        Stage.of(lambda sample: 1 / sample).apply(0, seed=0, epoch=0, sample_id=0)
    assert not hasattr(caught.value, "__notes__")


def test_is_a_value():
    assert Stage.of(double) == Stage.of(double) == pickle.loads(pickle.dumps(Stage.of(double)))
    assert hash(Stage.of(double)) == hash(Stage.of(double))
    assert Stage.of(double) != Stage.of(double, "twice")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, "^a stage must be callable, and 3 of type int is not\n"),
        (lambda image, label: image, r"^stage 'lambda' cannot be called as function\(sample\): missing .*'label'\n"),
        (lambda: 1, r"^stage 'lambda' cannot be called as function\(sample\): too many positional"),
        (lambda rng: rng, r"^stage 'lambda' cannot be called as function\(sample, rng=...\): multiple values"),
        (lambda rng, sample: 1, r"^stage 'lambda' cannot be called as function\(sample, rng=...\): multiple values"),
        (lambda sample, rng, /: 1, r"^stage 'lambda' cannot be called as function\(sample, rng=...\): "),
        (functools.partial(jitter, rng=np.random.default_rng(0)), "^stage 'jitter' has its `rng` bound already"),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        Stage.of(function)
    assert caught.value.do
