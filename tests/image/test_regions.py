"""Regions decoded by the native library are Pillow's pixels; where it is not there, or refuses, Pillow does it all."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace.engine.transform import image, image_region


@pytest.fixture(scope="module", autouse=True)
def library(build_native):
    build_native(image_region.SOURCE)
    image_region._function.cache_clear()
    yield
    image_region._function.cache_clear()


def photo(width, height, seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, (height // 6 + 2, width // 6 + 2, 3), np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


def encoded(size, mode="RGB", **options):
    stream = io.BytesIO()
    photo(*size).convert(mode).save(stream, "JPEG", **options)
    return stream.getvalue()


@given(
    size=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    corners=st.tuples(*[st.floats(0, 1)] * 4),
    subsampling=st.sampled_from(["4:4:4", "4:2:2", "4:2:0"]),
    progressive=st.booleans(),
    step=st.sampled_from([1, 2, 4, 8]),
)
@settings(max_examples=150)
def test_a_region_is_what_pillow_decodes_there(size, corners, subsampling, progressive, step):
    data = encoded(size, subsampling=subsampling, progressive=progressive, quality=88)
    whole = Image.open(io.BytesIO(data))
    if step > 1:
        whole.draft(None, (max(size[0] // step, 1), max(size[1] // step, 1)))
        if whole.decoderconfig[0] != step:
            return
    width, height = whole.size
    left, right = sorted(int(corner * (width - 1)) for corner in corners[:2])
    top, bottom = sorted(int(corner * (height - 1)) for corner in corners[2:])
    region = (left, top, right + 1, bottom + 1)
    found = image_region.decode_region(data, step, whole.size, region)
    assert found is not None
    # Two builds of libjpeg-turbo may round the smoothing of colours apart by one step.
    np.testing.assert_allclose(found, np.asarray(whole.crop(region)), rtol=0, atol=1)


def test_the_stage_gives_the_same_with_and_without_it(monkeypatch):
    data = encoded((500, 375), quality=90)
    for size in (224, 60):
        stage = image.random_resized_crop(size)
        found = [stage(data, rng=np.random.default_rng(seed)) for seed in range(10)]
        with monkeypatch.context() as without:
            without.setattr(image, "decode_region", lambda *arguments: None)
            expected = [stage(data, rng=np.random.default_rng(seed)) for seed in range(10)]
        np.testing.assert_allclose(np.stack(found).astype(int), np.stack(expected), rtol=0, atol=1)


@pytest.mark.parametrize("region", [(0, 0, 33, 8), (-1, 0, 8, 8), (8, 8, 8, 9), (0, 0, 8, 33)])
def test_a_region_outside_is_refused(region):
    assert image_region.decode_region(encoded((32, 32)), 1, (32, 32), region) is None


def test_what_is_damaged_or_no_jpeg_is_left_to_pillow():
    data = encoded((64, 64))
    assert image_region.decode_region(data[:-40], 1, (64, 64), (0, 0, 8, 8)) is None
    assert image_region.decode_region(data[:300] + b"\xff\xd9", 1, (64, 64), (0, 50, 8, 64)) is None
    assert image_region.decode_region(b"text\xff\xd9", 1, (64, 64), (0, 0, 8, 8)) is None
    assert image_region.decode_region(data, 1, (63, 64), (0, 0, 8, 8)) is None
    assert image_region.decode_region(encoded((64, 64), "CMYK"), 1, (64, 64), (0, 0, 8, 8)) is None
