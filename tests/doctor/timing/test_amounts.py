"""What a batch holds: bytes, pixels, tokens."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace.doctor.timing.amounts import MOST_PLACES, Tally, _padding, look_at


def images(*shape, dtype=torch.uint8):
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("field", "pixels"),
    [
        (images(8, 3, 32, 24), 8 * 32 * 24),
        (images(8, 32, 24, 3), 8 * 32 * 24),
        (images(8, 1, 32, 24, dtype=torch.float32), 8 * 32 * 24),
        (images(8, 4, 3, 32, 24, dtype=torch.bfloat16), 8 * 4 * 32 * 24),  # films
        ([images(3, 10 + i, 20) for i in range(8)], sum(10 + i for i in range(8)) * 20),
        ([Image.new("RGB", (30, 20))] * 8, 8 * 600),
        (np.zeros((8, 16, 16, 1), np.float16), 8 * 256),
        # Look-alikes that are no pictures:
        (images(8, 3, 32, 24, dtype=torch.int64), None),
        (images(8, 100, 3, dtype=torch.float32), None),  # points
        (images(8, 128, 512, dtype=torch.float32), None),  # sound, or states
        (images(8, 64, 7, 7, dtype=torch.float32), None),  # features
        (images(8, 1, 1, 5, dtype=torch.float32), None),
        (torch.zeros(8), None),
    ],
)
def test_pixels(field, pixels):
    assert look_at({"x": field, "label": torch.zeros(8, dtype=torch.int64)}, 8).num_pixels == pixels


def test_pixels_of_one_sample():
    assert look_at(images(1, 3, 8, 8), 1).num_pixels == look_at(images(3, 8, 8), 1).num_pixels == 64


def test_bytes_are_those_of_all_arrays():
    batch = {"a": torch.zeros(4, 5), "b": [np.zeros(3), "text"], "c": (torch.zeros(2, dtype=torch.bfloat16), 7)}
    assert look_at(batch, 4).num_bytes == 80 + 24 + 4


def padded(lengths, value, at_end=True, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.full((len(lengths), max(lengths)), value)
    for row, length in zip(ids, lengths, strict=True):
        tokens = rng.integers(1000, 30000, length)
        row[: length if at_end else None][None if at_end else -length :] = tokens
    return ids


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=2, max_size=12),
    value=st.sampled_from([0, 1, -100, 50256]),
    at_end=st.booleans(),
    has_mask=st.booleans(),
)
def test_tokens_are_counted_without_padding(lengths, value, at_end, has_mask):
    ids = padded(lengths, value, at_end)
    batch = {"labels_text": torch.from_numpy(ids)}
    if has_mask:
        batch["attention_mask"] = torch.from_numpy((ids != value).astype(np.int64))
    found = look_at(batch, len(lengths))
    num_padding = sum(max(lengths) - length for length in lengths)
    if max(lengths) < 2:
        assert found.num_tokens is None
    elif has_mask or num_padding > 1:
        assert (found.num_tokens, found.num_token_places) == (sum(lengths), ids.size)


def test_masks_of_torch_say_where_the_padding_is():
    ids = padded([3, 7, 5], 0)
    found = look_at({"ids": torch.from_numpy(ids), "key_padding_mask": torch.from_numpy(ids == 0)}, 3)
    assert (found.num_tokens, found.num_token_places) == (15, 21)


def test_blocks_of_tokens_are_known_by_their_name_alone():
    block = torch.randint(0, 50000, (4, 128))
    assert look_at({"input_ids": block, "labels": block.clone()}, 4).num_tokens == 512
    assert look_at({"features": block}, 4).num_tokens is None
    assert look_at({"hot": torch.nn.functional.one_hot(torch.arange(4), 10)}, 4).num_tokens is None


def test_some_batches_stand_for_all():
    tally = Tally()
    assert [number for number in range(200) if tally.wants(number)] == [0, 1, 2, 3, 4, 5, 6, 7, 64, 128, 192]
    ids = padded([10, 6], 0)
    tally.add({"input_ids": torch.from_numpy(ids), "image": images(2, 3, 8, 8)}, 2)
    total = tally.total(100)
    assert (total.num_samples, total.num_pixels, total.num_tokens) == (100, 6400, 800)
    assert total.num_bytes == 50 * (ids.nbytes + 384)
    assert total.padding_share == pytest.approx(0.2)


def test_nothing_is_zero_and_not_unknown():
    total = Tally().total(0)
    assert (total.num_samples, total.num_bytes, total.num_pixels, total.padding_share) == (0, 0, None, None)


def plain_padding(array):
    """The padding of a whole field, value by value."""
    most = 0
    for rows in (array, array[:, ::-1]):
        for value in np.unique(rows[:, -1])[:8]:
            is_value = rows == value
            runs = np.where(is_value.all(axis=1), rows.shape[1], (~is_value[:, ::-1]).argmax(axis=1))
            num, elsewhere = int(runs.sum()), int(np.count_nonzero(is_value) - runs.sum())
            if num > 1 and np.unique(runs).size > 1 and elsewhere <= num * 0.05:
                most = max(most, num)
    return most


def padded_rows(draw, num_rows, length, num_values, fill):
    array = draw.integers(0, num_values, (num_rows, length))
    for row in array:
        num = draw.integers(0, length + 1)
        row[length - num :] = fill
    return array if draw.random() < 0.7 else array[:, ::-1]


@given(seed=st.integers(0, 2**32 - 1), num_values=st.integers(1, 60), fill=st.integers(-1, 3))
def test_the_quick_look_finds_the_padding_that_the_plain_one_finds(seed, num_values, fill):
    draw = np.random.default_rng(seed)
    array = padded_rows(draw, draw.integers(1, 12), draw.integers(2, 40), num_values, fill)
    assert _padding(array) == plain_padding(array)


@pytest.mark.parametrize("length", [512, 4096, MOST_PLACES])
def test_of_a_large_field_some_rows_speak_for_all(length):
    draw = np.random.default_rng(length)
    array = padded_rows(draw, 4 * MOST_PLACES // length if length < MOST_PLACES else 3, length, 1000, -1)
    if length < MOST_PLACES:
        assert _padding(array) == pytest.approx(plain_padding(array), rel=0.2)
    assert 0 < _padding(array) <= array.size
