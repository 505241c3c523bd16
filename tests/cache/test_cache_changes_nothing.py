"""Same ids, same order, same bytes with and without kept samples, under every runner; later epochs do not decode."""

import pickle

import numpy as np
import pytest
import torch
from cache_pupils import NUM_FILES, jitter, plan_of, soil
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.source.gathering import NotGathered
from headrace.testing import nothing_left

BATCH_SIZE = 4
LAYOUTS = {
    "inline": {},
    "threads": {"num_workers": 3, "runner": "threads"},
    "fork": {"num_workers": 2, "multiprocessing_context": "fork"},
    "persistent": {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
    "spawn": {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
    "forkserver": {"num_workers": 2, "multiprocessing_context": "forkserver", "persistent_workers": True},
}
SLOW = {"spawn", "forkserver"}
LAYOUT_PARAMS = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in LAYOUTS]


def stream(loader, epochs=3):
    """Everything that was delivered: ids and bytes."""
    out = []
    for _ in range(epochs):
        for batch in loader:
            out.append((loader.last.sample_ids, batch["x"].numpy().tobytes(), batch["y"].tolist(), batch["name"]))
    return out


def loaded(plan, layout, **arguments):
    return stream(hr.DataLoader(plan, batch_size=BATCH_SIZE, shuffle=True, seed=3, **LAYOUTS[layout], **arguments))


@pytest.mark.parametrize("kind", ["memory", "folder"])
@pytest.mark.parametrize("layout", LAYOUT_PARAMS)
def test_every_runner_delivers_the_same_bytes_and_decodes_once(root, counter, tmp_path, layout, kind):
    reference = loaded(plan_of(root).map(soil).map(jitter), "inline")
    where = kind if kind == "memory" else tmp_path / "kept"
    with nothing_left():
        plan = plan_of(root, counter).cache(at="decode", max_bytes=10**7, where=where)
        assert loaded(plan.map(soil).map(jitter), layout) == reference
        assert loaded(plan, layout) == loaded(plan_of(root), "inline")  # whole batches at once, where in memory
        assert plan.source.usage()[0] == NUM_FILES
        # Threads try eight samples before they start, to see whether they draw from global generators.
        # Workers that persist begin the next epoch while the last batches of this one are made: what both want is not
        # kept yet, and each decodes it.
        at_once = BATCH_SIZE * 2 * 2 if LAYOUTS[layout].get("persistent_workers") else 0
        assert NUM_FILES <= counter.stat().st_size <= NUM_FILES + at_once
        del plan


@given(
    max_bytes=st.integers(1, 20_000),
    at=st.sampled_from([None, "decode", "soil"]),
    batch_size=st.integers(1, 9),
    threads=st.integers(0, 3),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bound_and_place_delivers_the_same_bytes(root, max_bytes, at, batch_size, threads):
    plain = plan_of(root).map(soil).map(jitter)
    kept = plan_of(root).map(soil).map(jitter).cache(at, max_bytes=max_bytes)
    arguments = {"batch_size": batch_size, "shuffle": True, "seed": 5}
    layout = {"num_workers": threads, "runner": "threads"} if threads else {}
    assert stream(hr.DataLoader(kept, **arguments, **layout)) == stream(hr.DataLoader(plain, **arguments))
    assert kept.source.usage()[1] <= max_bytes


def test_a_state_saved_without_a_cache_goes_on_with_one(root):
    plain = hr.DataLoader(plan_of(root).map(jitter), batch_size=4, shuffle=True, seed=1)
    kept = hr.DataLoader(plan_of(root).map(jitter).cache(max_bytes=10**6), batch_size=4, shuffle=True, seed=1)
    batches = iter(plain)
    next(batches)
    kept.load_state_dict(plain.state_dict())
    assert [ids for ids, *_ in stream(kept, 1)] == [plain.last.sample_ids for _ in batches]


def test_a_pickled_plan_is_a_plan_with_an_empty_memory(root):
    plan = plan_of(root).cache(max_bytes=10**6)
    plan[0]
    copy = pickle.loads(pickle.dumps(plan))
    assert copy.source.usage() == (0, 0)
    assert copy[0]["x"].tobytes() == plan[0]["x"].tobytes()
    assert len(copy) == NUM_FILES
    assert copy.classes == ["cat", "dog"]
    assert copy.index_of("dog/1.bin") == plan.index_of("dog/1.bin")


def test_the_plan_shows_what_is_kept_and_where(root):
    text = str(plan_of(root).cache(max_bytes=1000))
    assert "-> decode, kept in memory (at most 1,000 bytes)" in text


def test_what_is_done_to_a_sample_in_place_does_not_come_back(root):
    plan = plan_of(root).cache(max_bytes=10**6)
    plan[3]["x"][:] = 0
    plan[3]["x"][:] = 0
    assert plan[3]["x"].tobytes() == plan_of(root)[3]["x"].tobytes()


def test_stage_names_stay_unique_and_errors_name_the_kept_stage(root):
    def broken(sample):
        raise ValueError("no")

    plan = plan_of(root).map(broken).cache(max_bytes=1000)
    assert plan.map(broken).stages[-1].name == "broken-2"
    with pytest.raises(ValueError, match=r"^no") as caught:
        plan[0]
    assert "stage broken (" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match=r"^no") as caught:
        list(hr.DataLoader(plan))
    assert "stage broken (" in caught.value.__notes__[0]


JOINED = [
    {"x": np.arange(6, dtype=np.uint8).reshape(2, 3), "y": 3, "name": "ab", "z": 0.5, "raw": b"cd"},
    (torch.arange(4).to(torch.bfloat16), [1, (np.float32([2.0]), True)]),
    {"empty": np.zeros((0, 2)), "n": np.int16(4)},
    {"big": 2**70},
    np.array(["text", "more"]),
    np.arange(3, dtype=np.uint64),
    np.float64(1.5),
    torch.tensor(2.5),
    {"none": None},
    [],
]


def varied(sample, number):
    """The same form with other values; shapes and kinds stay."""
    if isinstance(sample, dict):
        return {key: varied(part, number) for key, part in sample.items()}
    if isinstance(sample, (list, tuple)):
        return type(sample)(varied(part, number) for part in sample)
    if isinstance(sample, str):
        return sample * (number % 3)
    if (
        sample is None
        or isinstance(sample, (bytes, bool))
        or (hasattr(sample, "dtype") and str(sample.dtype)[1] == "U")
    ):
        return sample
    return sample + type(sample)(number) if isinstance(sample, np.generic) else sample + number


@pytest.mark.parametrize("sample", JOINED, ids=[str(number) for number in range(len(JOINED))])
def test_a_gathered_batch_is_what_collate_makes_of_the_samples(sample):
    plan = hr.arrays(np.arange(7)).map(lambda row: varied(sample, int(row)), name="make").cache(max_bytes=10**6)
    rows = np.array([3, 0, 6, 3])
    with pytest.raises(NotGathered):
        plan.source.gather(rows)
    plain = plan.read_many(rows)
    try:
        expected = torch.utils.data.default_collate(plain)
    except (TypeError, ValueError, RuntimeError, IndexError):
        with pytest.raises(NotGathered):
            plan.source.gather(rows)
        return
    try:
        gathered = plan.source.gather(rows)
    except NotGathered:
        return
    assert shown(gathered) == shown(expected)


def shown(value):
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [shown(part) for part in value]
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride(), value.tolist()
    return value


def test_plain_samples_are_gathered(root):
    plan = plan_of(root).cache(max_bytes=10**6)
    plan.read_many(range(5))
    batch = plan.source.gather(np.arange(5))
    assert batch["y"].tolist() == [0] * 5
    assert batch["name"] == [plan.sample_id(index) for index in range(5)]
    assert batch["x"].dtype == torch.float32


def test_a_damaged_entry_is_not_gathered(root):
    plan = plan_of(root).cache(max_bytes=10**6)
    plan.read_many(range(5))
    store, stamp = plan.source.store, plan.source._stamp(2)[0]
    store.look(2, stamp).block[70] ^= 1
    store._sound[:] = 0  # as a worker that meets it for the first time
    with pytest.raises(NotGathered):
        plan.source.gather(np.arange(5))
    assert plan[2]["x"].tobytes() == plan_of(root)[2]["x"].tobytes()
