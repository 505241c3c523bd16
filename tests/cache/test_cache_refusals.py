"""What cannot be kept rightly is refused, or loaded each time with a warning; always with the reason."""

import random
import threading

import numpy as np
import pytest
from cache_pupils import jitter, plan_of, soil

import headrace as hr
from headrace.errors import ConfigurationError


def test_a_place_after_a_random_stage_is_refused(root):
    with pytest.raises(
        ConfigurationError, match=r"^samples cannot be kept after stage 'soil': stage 'jitter' is random"
    ):
        plan_of(root).map(jitter).map(soil).cache(at="soil", max_bytes=10**6)


def test_by_default_samples_are_kept_before_the_first_random_stage(root):
    plan = plan_of(root).map(soil).map(jitter).map(soil).cache(max_bytes=10**6)
    assert [stage.name for stage in plan.source.kept_stages] == ["decode", "soil"]
    assert [stage.name for stage in plan.stages] == ["jitter", "soil-2"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda plan: plan.cache(max_bytes=10), "^there is nothing to keep in this plan: it has no stages"),
        (lambda plan: plan.map(jitter).cache(max_bytes=10), "^there is nothing to keep in this plan: its first stage"),
        (lambda plan: plan.map(soil).cache("sail", max_bytes=10), "^at='sail' is no stage .*; did you mean 'soil'"),
        (lambda plan: plan.map(soil).cache(max_bytes=0), "^max_bytes=0: expected bytes, 1 or more"),
        (lambda plan: plan.map(soil).cache(max_bytes=10).cache(max_bytes=10), "^this plan keeps samples already"),
        (lambda plan: plan.map(soil).cache(max_bytes=10, where="/proc/none"), "^the cache folder cannot be used"),
    ],
)
def test_arguments_that_cannot_work_are_refused(root, make, message):
    with pytest.raises(ConfigurationError, match=message):
        make(hr.folder(root))


def test_a_stage_that_holds_a_lock_is_refused_with_its_place(root):
    lock = threading.Lock()

    def decode(record):
        with lock:
            return len(record.data)

    with pytest.raises(ConfigurationError, match=r"^the samples cannot be kept: decode: lock is of class _thread.lock"):
        hr.folder(root).map(decode).cache(max_bytes=10**6)


def test_a_stage_that_draws_from_global_generators_is_not_kept(root):
    def noisy(record):
        return {"x": random.random()}

    plan = hr.folder(root).map(noisy).cache(max_bytes=10**6)
    with pytest.warns(UserWarning, match="drew from random, so it comes out differently each time"):
        plan[0]
    assert plan.source.usage() == (0, 0)
    plain = hr.DataLoader(hr.folder(root).map(noisy), batch_size=4, seed=1)
    kept = hr.DataLoader(plan, batch_size=4, seed=1)
    assert [batch["x"].tolist() for batch in kept] == [batch["x"].tolist() for batch in plain]


def test_a_sample_of_another_class_is_loaded_each_time(root):
    plan = hr.folder(root).map(lambda record: {"x": {record.label}}, name="odd").cache(max_bytes=10**6)
    with pytest.warns(UserWarning, match=r"sample\['x'\] is of class set"):
        assert plan[0] == {"x": {0}}
    assert plan[1] == {"x": {0}}
    assert plan.source.usage() == (0, 0)


def test_a_record_that_cannot_be_told_apart_is_loaded_each_time():
    class Things:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return {index}

    plan = hr.Plan.of(Things()).map(lambda record: max(record), name="largest").cache(max_bytes=10**6)
    with pytest.warns(UserWarning, match="record is of class set, so that a changed record"):
        assert [plan[0], plan[1], plan[2]] == [0, 1, 2]
    assert plan.source.usage() == (0, 0)


def test_rows_of_arrays_are_kept_by_their_content():
    data = np.arange(12.0).reshape(4, 3)
    plan = hr.arrays(x=data).map(lambda row: row["x"].sum(), name="total").cache(max_bytes=10**6)
    assert [float(plan[0]), float(plan[0])] == [3.0, 3.0]
    assert plan.source.usage()[0] == 1
    data[0] = 10
    assert float(plan[0]) == 30.0


def test_a_row_that_was_filtered_stays_filtered(root):
    contract = hr.Contract(fields=(), may_filter=True, extra_fields="ignore")
    plan = plan_of(root).map(lambda sample: None if sample["y"] else sample, name="cats")
    for made in (plan, plan.cache(max_bytes=10**6)):
        loader = hr.DataLoader(made, batch_size=4, contract=contract)
        for _ in range(2):
            assert sum(len(loader.last.sample_ids) for _ in loader) == 12
