"""A plan is a value: printed, compared, hashed, pickled, and never changed by what is made from it."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.plan import RESERVED_NAMES, Plan
from headrace.engine.source import ArraySource
from headrace.errors import ConfigurationError


def scale(row):
    return row["x"] * 10


def crop(sample, rng):
    return sample + rng.integers(0, 5)


def make():
    return hr.arrays(x=np.arange(4)).map(scale).map(crop)


def test_equal_plans_are_equal():
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != make().map(crop)
    assert make() != hr.arrays(x=np.arange(5)).map(scale).map(crop)
    assert make() != hr.arrays(x=np.arange(4)).map(scale).map(crop, name="other")


def test_pickles_to_itself():
    copied = pickle.loads(pickle.dumps(make()))
    assert copied == make()
    assert list(copied) == list(make())


def test_map_leaves_the_plan_as_it_was():
    plan = hr.arrays(x=[1])
    plan.map(scale)
    assert plan.stages == ()
    with pytest.raises(AttributeError):
        plan.stages = (1,)


def test_repr_shows_the_chain(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # files elsewhere are shown by their whole path
    line = {function: f"{__file__}:{function.__code__.co_firstlineno}" for function in (scale, crop)}
    assert repr(make().map(float, name="to-number")) == (
        "Plan of 4 samples\n"
        "  read       ArraySource(4 rows: x int64[4])\n"
        f"  scale      {line[scale]}\n"
        f"  crop       {line[crop]}, random\n"
        "  to-number"
    )


def test_fingerprint_is_what_a_state_says_of_its_data():
    plan = make()
    assert plan.fingerprint() == {
        "num_samples": 4,
        "data": ArraySource(x=np.arange(4)).fingerprint(),
        "stages": "scale -> crop(rng)",
    }


def test_a_long_chain_stays_short_in_a_state():
    long = hr.arrays([1])
    for _ in range(100):
        long = long.map(float)
    other = Plan(long.source, (*long.stages[:-1], long.map(int).stages[-1]))
    texts = {plan.fingerprint()["stages"] for plan in (long, other)}
    assert len(texts) == 2
    assert {len(text) for text in texts} == {256}


# Names of stages


@given(st.lists(st.sampled_from(["crop", "flip", "crop-2", "read", "collate"]), max_size=8))
def test_every_stage_has_a_name_of_its_own(names):
    plan = hr.arrays([1])
    for name in names:

        def function(sample):
            return sample

        function.__name__ = name
        plan = plan.map(function)
    found = [stage.name for stage in plan.stages]
    assert len(set(found)) == len(names)
    assert not set(found) & set(RESERVED_NAMES)
    assert all(new.startswith(old) for new, old in zip(found, names, strict=True))


def test_a_repeated_function_is_numbered():
    plan = hr.arrays([1]).map(crop).map(crop).map(crop)
    assert [stage.name for stage in plan.stages] == ["crop", "crop-2", "crop-3"]


@pytest.mark.parametrize("name", ["crop", "read", "collate"])
def test_a_chosen_name_is_kept_or_refused(name):
    with pytest.raises(ConfigurationError, match=rf"^the stage name {name!r} is taken\n"):
        hr.arrays([1]).map(crop).map(scale, name=name)


def test_what_is_no_stage_is_refused():
    with pytest.raises(ConfigurationError, match=r"^a stage must be callable"):
        hr.arrays([1]).map(7)


# What the plan passes on


def test_runs_user_code_if_any_part_does():
    assert not hr.arrays([1]).runs_user_code
    assert hr.arrays([1]).map(crop).runs_user_code
    assert Plan.of([1, 2]).runs_user_code


def test_classes_are_those_of_the_source(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text(name)
    plan = hr.folder(tmp_path).map(lambda record: record.data)
    assert (plan.classes, plan.num_classes) == (["cat", "dog"], 2)
    assert plan.locate(1) == str(tmp_path / "dog/1.txt")
    flat = hr.folder(tmp_path, labels=False)
    assert (flat.classes, flat.num_classes) == (None, None)
    assert (hr.arrays([1]).classes, hr.arrays([1]).num_classes) == (None, None)
    told = type("Told", (list,), {"num_classes": 10})([1, 2])
    assert (Plan.of(told).classes, Plan.of(told).num_classes) == (None, 10)
