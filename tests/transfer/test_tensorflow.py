"""A loader as a `tf.data.Dataset`: the same batches, an epoch per iteration, a state that can still be used."""

import sys

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigurationError, MissingExtra


def make(**options):
    plan = hr.arrays(
        image=np.arange(23 * 12, dtype=np.uint8).reshape(23, 3, 4),
        weight=np.linspace(0, 1, 23),
        name=[f"n{row}\0" for row in range(23)],
    )
    return hr.DataLoader(plan, **{"batch_size": 5, "shuffle": True, "seed": 1, **options})


def test_without_tensorflow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingExtra, match=r"^TensorFlow is needed"):
        make().to_tf()


@pytest.fixture
def tf(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def same(ours, theirs):
    """True if an element of tf.data holds what a batch of the loader holds."""
    if isinstance(theirs, dict):
        return set(ours) == set(theirs) and all(same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, (list, tuple)) and not isinstance(theirs[0], str):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, list):
        return [text.decode() for text in ours.numpy().tolist()] == theirs
    theirs = theirs.numpy()
    return ours.numpy().dtype == theirs.dtype and ours.numpy().tobytes() == theirs.tobytes()


@pytest.mark.parametrize("options", [{}, {"num_workers": 2, "runner": "threads"}, {"tail": "drop"}])
def test_each_iteration_is_an_epoch(tf, options):
    dataset, loader = make(**options).to_tf(), make(**options)
    assert dataset.element_spec["image"] == tf.TensorSpec((None, 3, 4), tf.uint8)
    assert dataset.element_spec["name"] == tf.TensorSpec((None,), tf.string)
    for _ in range(2):
        elements, batches = list(dataset), list(loader)
        assert len(elements) == len(batches)
        assert all(map(same, elements, batches))


def test_the_state_goes_on_after_the_element_that_was_taken_last(tf):
    loader, other = make(), make()
    iterator = iter(loader.to_tf())
    for _ in range(2):
        next(iterator)
    state = loader.state_dict()
    rest = [batch for _, batch in zip(range(3), make_resumed(other, state), strict=True)]
    assert all(map(same, iterator, rest))
    assert other.ledger.delivered == 13


def make_resumed(loader, state):
    loader.load_state_dict(state)
    return loader


def test_a_loop_that_ends_early_leaves_a_loader_that_works(tf):
    loader = make(num_workers=2, runner="threads")
    dataset = loader.to_tf().prefetch(1)
    for _ in dataset:
        break
    assert len(list(dataset)) == 5


def test_shapes_that_differ_are_open(tf):
    lengths = [3, 4, 5, 6, 7]

    def ragged(row):
        return {"tokens": np.arange(lengths[int(row["n"])]), "fixed": np.zeros((2, 3), np.float32)}

    plan = hr.arrays(n=np.arange(5)).map(ragged)
    loader = hr.DataLoader(plan, batch_size=1)
    spec = loader.to_tf().element_spec
    assert spec["tokens"].shape.as_list() == [None, None]
    assert spec["fixed"].shape.as_list() == [None, 2, 3]
    assert [element["tokens"].shape[1] for element in loader.to_tf()] == lengths
    # The contract knows of sizes that the three samples happen to have in common.
    lengths[:] = [3, 4, 3, 5, 3]
    contract = hr.Contract.infer(plan)
    padded = hr.DataLoader(plan, batch_size=2, contract=contract).to_tf()
    assert padded.element_spec["tokens"].shape.as_list() == [None, None]


def test_lists_tuples_and_single_samples(tf):
    plan = hr.arrays(np.arange(6.0), np.arange(12).reshape(6, 2))
    spec = hr.DataLoader(plan, batch_size=2).to_tf().element_spec
    assert spec == (tf.TensorSpec((None,), tf.float64), tf.TensorSpec((None, 2), tf.int64))
    single = hr.DataLoader(plan, batch_size=None).to_tf()
    assert single.element_spec == (tf.TensorSpec((), tf.float64), tf.TensorSpec((2,), tf.int64))
    assert [float(x) for x, _ in single] == [0, 1, 2, 3, 4, 5]


def test_what_is_no_tensor_is_refused_before_the_first_batch(tf):
    plan = hr.arrays(x=np.arange(4.0)).map(lambda row: {"when": object()}, name="objects")
    with pytest.raises(ConfigurationError, match=r"^field when holds Python objects"):
        hr.DataLoader(plan, batch_size=2, collate_fn=lambda samples: samples[0]).to_tf()


def test_a_sample_that_fails_is_passed_over_if_another_does_not(tf):
    def fails(row):
        if row["x"] == 0:
            raise ValueError("the first one")
        return row

    plan = hr.arrays(x=np.arange(6.0)).map(fails)
    assert hr.DataLoader(plan, on_error=hr.Skip()).to_tf().element_spec["x"].shape.as_list() == [None]
    with pytest.raises(ValueError, match="the first one"):
        hr.DataLoader(hr.arrays(x=np.zeros(3)).map(fails)).to_tf()


def test_a_stream_needs_a_signature(tf):
    from torch.utils.data import IterableDataset

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(np.arange(4.0))

    with pytest.raises(ConfigurationError, match=r"^a stream does not say"):
        hr.DataLoader(Stream(), batch_size=2).to_tf()
    dataset = hr.DataLoader(Stream(), batch_size=2).to_tf(signature=tf.TensorSpec((None,), tf.float64))
    assert [element.numpy().tolist() for element in dataset] == [[0, 1], [2, 3]]
