"""Same ids, same order, same bytes under every runner and worker count, random transforms included."""

import numpy as np
import pytest
import torch
from loader_datasets import BatchedRandom, GloballyRandom, crop, decode, globally_random

import headrace as hr
from headrace.errors import GlobalRandomness
from headrace.testing import nothing_left

LAYOUTS = [
    {"num_workers": 1, "runner": "threads"},
    {"num_workers": 3, "runner": "threads"},
    {"num_workers": 3, "runner": "host", "multiprocessing_context": "fork"},
    {"num_workers": "auto"},
    {"num_workers": 1, "multiprocessing_context": "fork"},
    {"num_workers": 3, "multiprocessing_context": "fork", "prefetch_factor": 1},
    pytest.param({"num_workers": 2, "multiprocessing_context": "forkserver"}, marks=pytest.mark.slow),
    pytest.param({"num_workers": 2, "multiprocessing_context": "spawn"}, marks=pytest.mark.slow),
    {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
]


def plan():
    rng = np.random.default_rng(0)
    return hr.arrays(x=rng.normal(size=(29, 4)), y=np.arange(29)).map(decode).map(crop)


def stream(loader, epochs=2):
    """Everything that was delivered: ids and bytes."""
    out = []
    for _ in range(epochs):
        for batch in loader:
            leaves = batch.values() if isinstance(batch, dict) else [batch]
            out.append((loader.last.sample_ids, [leaf.numpy().tobytes() for leaf in leaves]))
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stages_that_take_rng_deliver_the_same_bytes(layout):
    epochs = 1 if "spawn" in layout.values() or "forkserver" in layout.values() else 2  # starting these is slow
    reference = stream(hr.DataLoader(plan(), batch_size=4, shuffle=True, seed=3), epochs)
    with nothing_left():
        loader = hr.DataLoader(plan(), batch_size=4, shuffle=True, seed=3, **layout)
        assert stream(loader, epochs) == reference
        del loader


@pytest.mark.parametrize("layout", LAYOUTS)
def test_samples_of_mixed_dtypes_join_to_the_same_dtype(layout):
    samples = [torch.full((2,), 1 / 3, dtype=dtype) for dtype in (torch.float32, torch.float64)] * 2
    batches = list(hr.DataLoader(samples, batch_size=2, **layout))
    assert [(batch.dtype, batch.tolist()) for batch in batches] == [
        (batch.dtype, batch.tolist()) for batch in hr.DataLoader(samples, batch_size=2)
    ]


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if "runner" not in str(layout)])
@pytest.mark.parametrize("dataset", [GloballyRandom(), BatchedRandom()], ids=["single", "batched"])
def test_code_that_uses_global_generators_delivers_the_same_bytes(layout, dataset):
    reference = stream(hr.DataLoader(dataset, batch_size=4, shuffle=True, seed=3), epochs=1)
    assert stream(hr.DataLoader(dataset, batch_size=4, shuffle=True, seed=3, **layout), epochs=1) == reference


def test_batched_reads_that_draw_give_what_single_reads_give():
    single = hr.DataLoader(GloballyRandom(), batch_size=4, seed=3)
    batched = hr.DataLoader(BatchedRandom(), batch_size=4, seed=3)
    assert stream(single) == stream(batched)


@pytest.mark.parametrize("dataset", [GloballyRandom(), plan()], ids=["global", "rng"])
def test_draws_do_not_depend_on_the_batch_size_and_differ_between_samples_and_epochs(dataset):
    def samples(batch_size):
        loader = hr.DataLoader(dataset, batch_size=batch_size, seed=3)
        rows = []
        for epoch in range(2):
            for batch in loader:
                values = batch["x"] if isinstance(batch, dict) else batch[:, 1:]
                rows += [(epoch, i, v.numpy().tobytes()) for i, v in zip(loader.last.sample_ids, values, strict=True)]
        return rows

    assert samples(4) == samples(7)
    assert len({row[2] for row in samples(4)}) == 2 * len(dataset)


def test_threads_refuse_code_that_draws_from_global_generators():
    loader = hr.DataLoader(plan().map(globally_random), batch_size=4, num_workers=2, runner="threads")
    with pytest.raises(GlobalRandomness, match=r"^this data draws from "):
        iter(loader)


def test_the_callers_generators_are_left_alone():
    import random

    for layout in ({}, {"num_workers": 2, "multiprocessing_context": "fork"}, {"num_workers": 2, "runner": "threads"}):
        dataset = plan() if layout.get("runner") else GloballyRandom()
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        expected = (torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random())
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        for _ in hr.DataLoader(dataset, batch_size=4, shuffle=True, **layout):
            pass
        assert (torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()) == expected


def test_seed_none_follows_torch_manual_seed_without_drawing():
    torch.manual_seed(5)
    a = hr.DataLoader(range(30), batch_size=4, shuffle=True)
    torch.manual_seed(6)
    b = hr.DataLoader(range(30), batch_size=4, shuffle=True)
    torch.manual_seed(5)
    torch.rand(100)
    c = hr.DataLoader(range(30), batch_size=4, shuffle=True)
    assert stream(a) == stream(c) != stream(b)
    assert hr.DataLoader(range(9), generator=torch.Generator().manual_seed(8)).seed == 8
    assert hr.DataLoader(range(9), rank=0, world_size=2, batch_size=2).seed == 0


@pytest.mark.parametrize("layout", [{}, *LAYOUTS[:6]])
def test_resume_with_another_runner_continues_with_the_same_bytes(layout):
    reference = stream(hr.DataLoader(plan(), batch_size=4, shuffle=True, seed=3), epochs=1)
    stopped = hr.DataLoader(plan(), batch_size=4, shuffle=True, seed=3)
    iterator = iter(stopped)
    for _ in range(3):
        next(iterator)
    resumed = hr.DataLoader(plan(), batch_size=4, shuffle=True, **layout)
    resumed.load_state_dict(stopped.state_dict())
    assert stream(resumed, epochs=1) == reference[3:]


def test_replay_returns_the_very_sample():
    loader = hr.DataLoader(plan(), batch_size=4, shuffle=True, seed=3, num_workers=2, runner="threads")
    batches = [(loader.last.sample_ids, batch["x"]) for _ in range(2) for batch in loader]
    ids, x = batches[-1]
    assert np.array_equal(loader.replay(ids[0], epoch=1)["x"], x[0].numpy())
