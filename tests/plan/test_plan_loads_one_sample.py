"""plan[i] is the loop: read record i, then call one function after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.plan import Plan
from headrace.engine.transform import sample_generator


def add(sample):
    return sample + 1


def noise(sample, rng):
    return sample + rng.random()


def noisy_plan():
    return hr.arrays(np.arange(6.0), ids=list("abcdef")).map(add).map(noise)


@given(st.integers(0, 5), st.integers(0, 2**64), st.integers(0, 2**32))
def test_a_sample_is_the_plain_loop(index, seed, epoch):
    plan = noisy_plan()
    oracle = index + 1.0 + sample_generator(seed, epoch, "abcdef"[index], "noise").random()
    assert plan.sample(index, seed=seed, epoch=epoch) == oracle
    assert plan.load_one(index, seed, epoch) == oracle
    (record,) = plan.read_many([index])
    assert plan.apply_stages(record, sample_id=plan.sample_id(index), seed=seed, epoch=epoch) == oracle


def test_indexes_like_a_list():
    plan = noisy_plan()
    samples = list(plan)
    assert len(plan) == 6
    assert [plan[i] for i in range(-6, 6)] == samples + samples
    assert plan[np.int64(2)] == samples[2]
    assert samples == [plan.sample(i, seed=0, epoch=0) for i in range(6)]
    for index in (6, -7):
        with pytest.raises(IndexError, match=f"^row {index} of a plan with 6 samples$"):
            plan[index]
    with pytest.raises(TypeError):
        plan["a"]


def test_an_index_error_inside_a_stage_is_not_the_end_of_the_data():
    plan = hr.arrays([0, 1, 2]).map(lambda sample: [10, 11][sample])
    with pytest.raises(IndexError, match="list index out of range"):
        list(plan)


def test_the_caller_is_told_each_stage_before_it_runs():
    seen = []
    plan = hr.arrays([1]).map(lambda sample: seen.append("a") or sample, name="first").map(add)
    plan.apply_stages(1, sample_id=0, seed=0, epoch=0, enter=lambda stage: seen.append(stage.name))
    assert seen == ["first", "a", "add"]


def test_each_step_is_timed_once():
    steps = []
    noisy_plan().load_one(0, 0, 0, observe=lambda step, seconds: steps.append((step, seconds)))
    assert [step for step, _ in steps] == ["read", "add", "noise"]
    assert all(seconds >= 0 for _, seconds in steps)
    steps.clear()
    hr.arrays([1]).load_one(0, 0, 0, observe=lambda step, seconds: steps.append(step))
    assert steps == ["read"]


def test_the_failing_step_is_not_reported_as_done():
    steps = []
    plan = hr.arrays([0]).map(add).map(lambda sample: 1 / 0, name="divide")
    with pytest.raises(ZeroDivisionError):
        plan.load_one(0, 0, 0, observe=lambda step, _: steps.append(step))
    assert steps == ["read", "add"]


def test_a_failure_keeps_its_type_and_names_sample_and_stage(tmp_path):
    (tmp_path / "cat").mkdir()
    for name in ("1", "2"):
        (tmp_path / "cat" / f"{name}.txt").write_text(name)

    def parse(record):
        return {"1": 1}[record.data.decode()]

    plan = hr.folder(tmp_path).map(parse)
    with pytest.raises(KeyError) as caught:
        plan.sample(-1, seed=7, epoch=3)
    where = caught.value.headrace_where
    assert (where.sample_id, where.index, where.path) == ("cat/2.txt", 1, str(tmp_path / "cat/2.txt"))
    assert (where.epoch, where.seed) == (3, 7)
    assert where.stage == str(plan.stages[0])
    assert "test_plan_loads_one_sample.py:" in where.stage
    (note,) = caught.value.__notes__
    assert "sample cat/2.txt (index 1)" in note


def test_a_failure_to_read_is_named_read(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/1.txt").write_text("1")
    plan = hr.folder(tmp_path).map(add)
    (tmp_path / "cat/1.txt").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        plan[0]
    assert caught.value.headrace_where.stage == "read"


def test_reads_whole_batches_through_the_source():
    class Batched(list):
        def __getitems__(self, indices):
            return [self[i] * 100 for i in indices]

    assert Plan.of(Batched([1, 2, 3])).read_many([2, 0]) == [300, 100]
