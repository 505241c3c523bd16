"""Pure arithmetic that tells what a field became of its file; Pillow and numpy are the oracles."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image, ImageOps

from headrace.doctor.probes.likeness import as_plane, coarse_likeness, distinct, linear_likeness, turned

PICTURES = arrays.arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6), st.just(3)))


def smooth(height=48, width=64):
    rows, columns = np.mgrid[0:height, 0:width]
    return 12 * rows + 300 * np.sin(columns / 15.0) + 1000


@given(pixels=PICTURES, orientation=st.integers(1, 8))
def test_a_picture_is_turned_as_pillow_turns_it(pixels, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=exif)
    np.testing.assert_array_equal(turned(pixels, orientation), np.asarray(ImageOps.exif_transpose(Image.open(file))))


@given(scale=st.floats(0.001, 100), shift=st.floats(-1000, 1000), flip=st.integers(0, 3))
def test_a_linear_function_of_a_picture_and_its_mirror_images_are_like_it(scale, shift, flip):
    stored = smooth()
    field = scale * stored + shift
    field = (field, field[::-1], field[:, ::-1], field[::-1, ::-1])[flip]
    assert linear_likeness({"stored": stored}, field) == {"stored": pytest.approx(1.0)}


@pytest.mark.parametrize("size", [(48, 64), (30, 40), (96, 128), (17, 90)])
def test_scaling_clipping_and_wrapping_are_told_apart_at_any_size(size):
    stored = smooth().astype(np.uint16)
    ways = {"scaled": stored / 65535, "clipped": np.minimum(stored, 1200), "wrapped": stored % 256}
    for name, changed in ways.items():
        field = np.asarray(Image.fromarray(changed.astype(np.float32)).resize(size[::-1], Image.BOX))
        found = linear_likeness({"scaled": stored, "clipped": np.minimum(stored, 1200), "wrapped": stored % 256}, field)
        assert max(found, key=found.get) == name


def test_a_flat_picture_is_like_nothing():
    assert linear_likeness({"flat": np.full((9, 9), 7)}, smooth(9, 9)) == {"flat": 0.0}
    assert coarse_likeness(np.full((9, 9), 7), smooth(9, 9)) is None


@given(values=arrays.arrays(np.int64, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(-5, 400)))
def test_distinct_values_are_those_of_numpy(values):
    np.testing.assert_array_equal(distinct(values), np.unique(values))


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.int32, np.float32])
def test_distinct_values_of_every_dtype(dtype):
    array = np.array([[0, 1], [1, 0]], dtype)
    assert distinct(array).tolist() == [0, 1]


def test_too_many_values_are_not_listed():
    assert distinct(np.arange(300).reshape(15, 20)) is None
    assert distinct(np.random.default_rng(0).random((200, 200))) is None
    assert distinct(np.array([[1.0, np.nan], [np.inf, 2.0]])).tolist() == [1, 2]


@pytest.mark.parametrize("shape", [(20, 30), (1, 20, 30), (3, 20, 30), (20, 30, 3), (1, 3, 20, 30), (20, 30, 1)])
def test_one_number_per_pixel_whatever_the_layout(shape):
    assert as_plane(np.zeros(shape)).shape == (20, 30)


@pytest.mark.parametrize("shape", [(5,), (7, 30), (16, 20, 30), (4, 3, 20, 30)])
def test_what_is_no_picture_has_no_plane(shape):
    assert as_plane(np.zeros(shape)) is None
