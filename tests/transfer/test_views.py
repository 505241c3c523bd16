"""A view of a loader delivers the same batches in the same order, and stands where its own last batch stands."""

import numpy as np
import pytest
import torch

import headrace as hr
from headrace.engine.transfer import to_numpy
from headrace.engine.view import LoaderView
from headrace.errors import ConfigurationError, MissingExtra


def make(**more):
    rng = np.random.default_rng(0)
    plan = hr.arrays(image=rng.integers(0, 256, (23, 3, 4, 4), dtype=np.uint8), label=np.arange(23))
    return hr.DataLoader(plan, batch_size=5, shuffle=True, seed=2, **more)


def ahead(num_batches):
    """A conversion that reads ahead, as a copy to a device does."""

    def convert(stream):
        held = []
        for item in stream:
            held.append(item)
            if len(held) > num_batches:
                yield held.pop(0)
        yield from held

    return convert


@pytest.mark.parametrize("num_ahead", [0, 1, 3])
@pytest.mark.parametrize("stop", [0, 1, 3, 5])
def test_state_is_that_of_the_batch_the_view_handed_over(num_ahead, stop):
    whole = [list(batch.sample_ids) for batch in make()]
    view = LoaderView(make(), ahead(num_ahead))
    iterator = iter(view)
    seen = [list(next(iterator).sample_ids) for _ in range(stop)]
    state = view.state_dict()
    assert view.last.sample_ids == tuple(seen[-1]) if seen else True
    iterator.close()
    resumed = make()
    resumed.load_state_dict(state)
    if stop < len(whole):
        assert seen + [list(batch.sample_ids) for batch in resumed] == whole


def test_the_cpu_passes_batches_through():
    for ours, theirs in zip(make().to("cpu"), make(), strict=True):
        assert torch.equal(ours["image"], theirs["image"])
        assert ours.sample_ids == theirs.sample_ids


def test_normalize_is_the_formula():
    norm = hr.Normalize(field="image", mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    for ours, theirs in zip(make().to("cpu", normalize=norm), make(), strict=True):
        mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (norm.mean, norm.std))
        expected = (theirs["image"].float() / 255 - mean) / std
        assert ours["image"].dtype == torch.float32
        torch.testing.assert_close(ours["image"], expected, rtol=1e-5, atol=1e-5)
        assert torch.equal(ours["label"], theirs["label"])
    for wrong in ({"mean": (0.1,), "std": (1.0, 2.0)}, {"mean": (0.1,), "std": (0.0,)}):
        with pytest.raises(ConfigurationError):
            hr.Normalize(field=0, **wrong)


def test_numpy_shares_the_memory():
    batch = next(iter(make()))
    arrays = to_numpy(batch)
    assert np.shares_memory(arrays["image"], batch["image"].numpy())
    for ours, theirs in zip(make().to_numpy(), make(), strict=True):
        assert isinstance(ours["image"], np.ndarray)
        assert ours["image"].tobytes() == theirs["image"].numpy().tobytes()


def test_jax_or_what_to_install():
    try:
        import jax.numpy  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"^JAX is needed"):
            next(iter(make().to_jax()))
    else:
        for ours, theirs in zip(make().to_jax(), make(), strict=True):
            assert np.asarray(ours["image"]).tobytes() == theirs["image"].numpy().tobytes()


def test_a_view_has_the_rest_of_the_loader():
    view = make().to_numpy()
    assert len(list(view)) == len(view) == 5
    assert view.ledger.delivered == 23
    assert view.batch_size == 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_batches_arrive_whole_on_a_cuda_device_while_it_computes():
    norm = hr.Normalize(field="image", mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    load = torch.randn(2048, 2048, device="cuda")
    for ours, theirs in zip(
        make(pin_memory=True).to("cuda", normalize=norm), make().to("cpu", normalize=norm), strict=True
    ):
        for _ in range(5):
            load = load @ load * 1e-3  # keeps the consumer's stream busy while the next copy runs
        torch.testing.assert_close(ours["image"].cpu(), theirs["image"], rtol=1e-5, atol=1e-5)
        assert torch.equal(ours["label"].cpu(), theirs["label"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("layout", [{}, {"num_workers": 2}, {"num_workers": 2, "runner": "host"}])
def test_slots_are_not_used_again_before_their_copy_has_ended(layout):
    # Batches of a megabyte travel in slots; 60 of them pass through far fewer, while the device is kept busy.
    rows = np.arange(480 * 128 * 1024, dtype=np.int64).astype(np.uint8).reshape(480, 128, 1024)
    rows[:, 0, 0] = np.arange(480) % 251
    loader = hr.DataLoader(hr.arrays(image=rows), batch_size=8, shuffle=True, seed=1, **layout)
    load = torch.randn(2048, 2048, device="cuda")
    received = []
    for batch in loader.to("cuda"):
        for _ in range(5):
            load = load @ load * 1e-3
        received.append((loader.last.sample_ids, batch["image"]))
    assert len(received) == 60
    for ids, image in received:
        assert np.array_equal(image.cpu().numpy(), rows[list(ids)])
