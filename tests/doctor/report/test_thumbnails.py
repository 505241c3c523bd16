"""Pictures are the sample as delivered, made in the lab child, and a sample that cannot be shown says why."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.probes.thumbnails import SIDE, make_thumbnails, picture_of

image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
SHAPES = st.sampled_from([(8, 9), (1, 8, 9), (3, 8, 9), (4, 8, 9), (8, 9, 3), (8, 9, 1), (8, 9, 4), (3, 300, 7)])


@given(arrays.arrays(np.uint8, SHAPES))
def test_bytes_are_shown_as_they_are(value):
    pixels, note = picture_of(value)
    assert pixels.dtype == np.uint8
    assert max(pixels.shape[:2]) <= SIDE
    channels_last = np.moveaxis(value, 0, -1) if value.ndim == 3 and value.shape[0] in {1, 3, 4} else value
    step = 3 if 300 in value.shape else 1
    expected = channels_last[::step, ::step]
    assert np.array_equal(
        pixels, expected[..., 0] if expected.shape[-1] == 1 else expected[..., :3] if expected.ndim == 3 else expected
    )
    assert str(value.shape[0]) in note
    assert ("every 3rd pixel" in note) == (step == 3)


@given(arrays.arrays(np.float64, SHAPES, elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_other_values_are_stretched_over_their_own_range_which_is_said(value):
    pixels, note = picture_of(value)
    assert pixels.dtype == np.uint8
    finite = value[np.isfinite(value)] if value.shape[0] != 4 and value.shape[-1] != 4 else np.array([])
    if not np.isfinite(value).all():
        assert "finite" in note or value.shape[0] == 4 or value.shape[-1] == 4 or 300 in value.shape
    if finite.size == value.size and finite.min() < finite.max() and 300 not in value.shape:
        assert (pixels.min(), pixels.max()) == (0, 255)
        assert "shown as black" in note


@pytest.mark.parametrize(
    "value",
    [None, "text", 3, 1.5, np.zeros(5), np.zeros((2, 8, 8)), np.zeros((5, 4, 2)), np.zeros((9, 2)), np.zeros((0, 8)),
     np.zeros((3, 8, 8, 8)), ["a"], np.zeros((8, 8), dtype=complex)],
)  # fmt: skip
def test_what_is_no_image_has_no_picture(value):
    assert picture_of(value)[0] is None


def test_tensors_and_pillow_pictures_too():
    torch = pytest.importorskip("torch")
    assert picture_of(torch.zeros(3, 8, 8, dtype=torch.bfloat16))[0].shape == (8, 8, 3)
    assert picture_of(image.new("L", (9, 8)))[0].shape == (8, 9)
    assert picture_of(torch.ones(8, 8, dtype=torch.bool))[1].endswith("shown as grey")


SOURCE = """
import os
import time
import numpy as np


class Data(list):
    sample_ids = ["good", "bad", "dead", "words", "stuck", "last"]

    def __getitem__(self, index):
        kind = self.sample_ids[index]
        if kind == "bad":
            raise ValueError("secret content")
        if kind == "dead":
            os._exit(3)
        if kind == "words":
            return "only text", 3
        while kind == "stuck":
            time.sleep(0.1)
        return {"image": np.full((3, 8, 8), index, np.uint8), "label": index}


def make():
    return Data([None] * 6)
"""


@pytest.mark.slow
def test_the_child_prepares_them_and_a_dead_or_stuck_one_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.py").write_text(SOURCE)
    with Lab("data.py:make", budget=Budget(60), per_sample_s=1.5) as lab:
        made = make_thumbnails(lab, [0, 1, 2, 3, 4, 5, 77], seed=0)
    told = {one.sample_id: one for one in made}
    assert image.open(io.BytesIO(told[5].png)).getpixel((0, 0)) == (5, 5, 5)
    assert (told[0].field, told[0].note) == ("image", "[3, 8, 8] uint8")
    assert {key: one.note for key, one in told.items() if one.png is None} == {
        1: "no picture: ValueError while it was prepared",
        2: "no picture: crashed while it was prepared",
        3: "no picture: no field of it looks like an image",
        4: "no picture: stuck while it was prepared",
        77: "no picture: ConfigurationError while it was prepared",
    }
