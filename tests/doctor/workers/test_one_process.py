"""Is it the workers? What failed there is held against readings in one process, with made-up errors and real readings."""

import contextlib
import types

import pytest

from headrace.doctor.evidence.workers import WorkerError
from headrace.doctor.walks.one_process import SELDOM, OneProcess


class Bench:
    """Seeds nothing: the data set below decides by the number of the reading."""

    @staticmethod
    def holding(*_, **__):
        return contextlib.nullcontext()

    @staticmethod
    def reseed(*parts):
        Bench.seed = parts

    @staticmethod
    def stop_listening():
        pass

    @staticmethod
    def enter(_stage):
        pass


class Subject:
    """Rows that fail as `fails(row, number, seed)` says; `number` counts the readings of all rows."""

    joins_samples = True

    def __init__(self, fails):
        self.fails, self.number = fails, 0

    def read(self, row, enter=None):
        self.number += 1
        if self.fails(row, self.number, Bench.seed):
            raise OSError("lapse")
        return {"x": row}


def place():
    """Where `read` raises, as errors say it."""
    try:
        Subject(lambda *_: True).read(0)
    except OSError as error:
        from headrace.doctor.stacks import innermost_at

        return innermost_at(error)


def one_process(fails, *, shares_nothing=True, num_rows=16):
    limits = types.SimpleNamespace(seed=1, walk_s=60.0, max_samples=num_rows, num_workers=2)
    found = OneProcess(
        limits, Subject(fails), Bench, {n: n for n in range(num_rows)}, None, lambda n: n, shares_nothing=shares_nothing
    )
    Bench.seed = ()
    found.read_twice(range(num_rows))
    return found


def error(**more):
    said = {"stage": "sample", "sample_ids": (3,), "at": place(), "arrives_as": "OSError", "in_one_process": "unknown"}
    return WorkerError(error_type="OSError", message="lapse", **{**said, "num_came_out": 1, **more})


def judged(found, **more):
    return found.judge_error(error(**more), [3])


def test_a_sample_that_always_fails_fails_here_too():
    assert judged(one_process(lambda row, *_: row == 3), num_came_out=0).in_one_process == "same"


def test_another_sample_that_fails_now_and_then_shows_that_any_may():
    found = judged(one_process(lambda row, number, _: (row, number) == (8, 17)), num_errors=99)
    assert (found.in_one_process, found.num_single_failed, found.is_drawn) == ("by chance", 1, False)
    assert found.num_single >= 32


def test_it_is_read_until_it_fails():
    found = judged(one_process(lambda row, number, _: row == 3 and number == 150), num_errors=99)
    assert (found.in_one_process, found.num_single_failed, found.is_drawn) == ("by chance", 1, False)


def test_a_seed_that_fails_again_is_a_draw():
    found = judged(one_process(lambda row, _, seed: row == 3 and seed[1] == 40), num_errors=99)
    assert (found.in_one_process, found.is_drawn) == ("by chance", True)


@pytest.mark.parametrize("first", [18, 150])
def test_what_fails_from_then_on_is_used_up_and_no_chance(first):
    found = judged(one_process(lambda row, number, _: number >= first), num_errors=99)
    assert found.in_one_process == "same"


def test_an_error_at_another_place_is_another_error():
    found = judged(one_process(lambda row, number, _: (row, number) == (8, 17)), num_errors=99, at="else.py:1 in f")
    assert found.in_one_process == "fine"


@pytest.mark.parametrize(
    ("more", "shares_nothing", "verdict"),
    [
        ({"num_errors": 1}, True, "by chance"),
        ({"num_errors": SELDOM - 1}, True, "by chance"),
        ({"num_errors": SELDOM}, True, "fine"),  # so often in workers, and never here
        ({"num_errors": 1}, False, "fine"),  # workers that share a file have a reason
        ({"num_errors": 2, "num_came_out": 0}, True, "fine"),  # it failed in each reading there
    ],
)
def test_what_never_fails_here_is_judged_by_how_often_it_failed_there(more, shares_nothing, verdict):
    found = judged(one_process(lambda *_: False, shares_nothing=shares_nothing), **more)
    assert (found.in_one_process, found.num_single_failed) == (verdict, 0)
