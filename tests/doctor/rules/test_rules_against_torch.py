"""Torch's own collate is the oracle: what it joins is not blamed, and what it refuses is never met with silence."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import default_collate

from headrace.contract.view import view_sample
from headrace.doctor import catalogue
from headrace.doctor.evidence import CollateTrial, SampleRead, SampleReads
from headrace.doctor.made_up import loader

SHAPES = st.sampled_from([(3, 4, 4), (1, 4, 4), (3, 5, 4), (4, 4), (6,), (5,)])
DTYPES = st.sampled_from(["float32", "uint8", "int64"])
TENSORS = st.builds(lambda shape, dtype: torch.zeros(shape, dtype=getattr(torch, dtype)), SHAPES, DTYPES)
ARRAYS = st.builds(lambda shape, dtype: np.zeros(shape, dtype), SHAPES, DTYPES)
WORDS = st.text("ab", max_size=4)
TOKENS = st.lists(st.integers(0, 9), min_size=1, max_size=3)
VALUES = TENSORS | ARRAYS | WORDS | TOKENS | st.integers(0, 9) | st.none() | st.just(object())
SAMPLES = st.dictionaries(st.sampled_from(["x", "y", "z"]), VALUES, min_size=1) | st.none() | TENSORS
ALIKE = st.one_of(*(st.builds(lambda x, y: {"x": x, "y": y}, kind, st.integers(0, 9)) for kind in (TENSORS, ARRAYS)))


def findings(samples):
    """What the rules say of samples that a DataLoader joins by the default rules."""
    error, batch = None, None
    try:
        batch = default_collate(list(samples))
    except Exception as caught:
        error = caught
    reads = [
        SampleRead(index=row, sample_id=row, path=None, outcome="ok", stage="done", fields=view_sample(sample))
        for row, sample in enumerate(samples)
    ]
    trial = CollateTrial(
        collate="default_collate",
        is_default=True,
        sample_ids=tuple(range(len(samples))),
        succeeded=error is None,
        error_type=None if error is None else type(error).__name__,
        odd_ids=()
        if error is None
        else tuple(row for row in range(1, len(samples)) if not joins(samples[0], samples[row])),
        batch_fields=() if batch is None else view_sample(batch),
    )
    held = [
        SampleReads(num_samples=len(reads), reads=tuple(reads), is_full=True),
        trial,
        loader(num_samples=len(reads), batch_size=len(reads)),
    ]
    by_kind = {type(record): record for record in held}
    rules = [rule for rule in catalogue.rules() if all(need in by_kind for need in rule.needs)]
    return error, [
        (rule.code, found) for rule in rules for found in rule.judge(*(by_kind[need] for need in rule.needs))
    ]


def joins(first, second):
    try:
        default_collate([first, second])
    except Exception:
        return False
    return True


@given(st.lists(SAMPLES, min_size=2, max_size=5))
def test_what_torch_refuses_is_never_met_with_silence(samples):
    error, found = findings(samples)
    if error is not None:
        assert found, f"default_collate raised {error!r}, and no rule says why"


@given(st.lists(SAMPLES, min_size=2, max_size=5))
def test_every_sample_that_is_named_exists_and_is_named_once_per_finding(samples):
    _, found = findings(samples)
    for _, finding in found:
        assert list(finding.sample_ids) == sorted(set(finding.sample_ids))
        assert set(finding.sample_ids) <= set(range(len(samples)))


@given(ALIKE, st.integers(2, 6))
def test_samples_that_are_alike_get_silence(sample, number):
    error, found = findings([sample] * number)
    assert error is None
    assert found == []


@given(st.lists(WORDS, min_size=2, max_size=6))
def test_texts_of_any_length_get_silence(texts):
    error, found = findings([{"text": text, "label": 1} for text in texts])
    assert error is None
    assert found == []


@given(SHAPES, SHAPES, st.integers(3, 6), st.data())
def test_the_one_odd_shape_is_named_and_nothing_else(usual, odd, number, data):
    place = data.draw(st.integers(0, number - 1))
    samples = [torch.zeros(odd if row == place else usual) for row in range(number)]
    _, found = findings(samples)
    named = [finding.sample_ids for _, finding in found]
    assert named == ([] if usual == odd else [(place,)])
