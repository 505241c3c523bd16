"""Decoding only what a crop needs gives the pixels of decoding everything; crops have the distribution they should."""

import io
import math
import pickle

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

import headrace as hr
from headrace.engine.transform import image
from headrace.engine.transform.image_crop import Box, draw_box, reduction
from headrace.errors import ConfigurationError, DataError


def picture(width=331, height=247, seed=0):
    """A smooth picture with edges, no two of whose corners are alike."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / (17 + 9 * k + seed)) + np.cos(y / (23 - 5 * k)) for k in range(3)]
    pixels = np.stack(waves, -1) * 50 + 120
    pixels[height // 3 : height // 2, width // 4 : width // 2] += 40
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def encoded(form="JPEG", orientation=None, size=(331, 247), mode="RGB", **options):
    stream = io.BytesIO()
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    picture(*size).convert(mode).save(stream, form, exif=exif, **options)
    return stream.getvalue()


def rng(seed=0):
    return np.random.default_rng(seed)


def psnr(a, b):
    return 10 * math.log10(255**2 / np.mean((a.astype(float) - b) ** 2))


@given(
    seed=st.integers(0, 2**32),
    size=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    form=st.sampled_from(["JPEG", "PNG", "WEBP", "GIF"]),
    layout=st.sampled_from(["CHW", "HWC"]),
    mode=st.sampled_from(["RGB", "L"]),
    orientation=st.sampled_from([None, *range(1, 9)]),
)
@settings(max_examples=30)
def test_without_reduction_pixels_are_those_of_decode_crop_resize(seed, size, form, layout, mode, orientation):
    orientation = orientation if form in {"JPEG", "PNG", "WEBP"} else None
    data = encoded(form, orientation)
    options = {"mode": mode, "layout": layout}
    whole = image.decode(exif=True, **options)(data)
    expected = image.random_resized_crop(size, **options)(whole, rng=rng(seed))
    found = image.random_resized_crop(size, exif=True, reduce=False, **options)(data, rng=rng(seed))
    assert found.dtype == np.uint8
    assert found.shape == ((whole.shape[0], *size) if layout == "CHW" else (*size, whole.shape[2]))
    np.testing.assert_array_equal(found, expected)


@given(
    seed=st.integers(0, 2**32),
    size=st.tuples(st.integers(8, 40), st.integers(8, 40)),
    orientation=st.sampled_from([None, *range(1, 9)]),
    shape=st.sampled_from([(640, 480), (643, 479), (331, 500)]),
)
@settings(max_examples=20)
def test_with_reduction_pixels_are_close(seed, size, orientation, shape):
    data = encoded("JPEG", orientation, shape, quality=95)
    plain = image.random_resized_crop(size, exif=True, reduce=False)(data, rng=rng(seed))
    reduced = image.random_resized_crop(size, exif=True)(data, rng=rng(seed))
    assert reduced.shape == plain.shape
    assert psnr(plain, reduced) > 30


def test_reduction_is_used_only_where_the_crop_is_twice_as_large():
    assert [reduction(Box(0, 0, side, side), (100, 100)) for side in (100, 199, 200, 399, 400, 800, 5000)] == [
        1, 1, 2, 2, 4, 8, 8,
    ]  # fmt: skip
    assert reduction(Box(0, 0, 1000, 150), (100, 100)) == 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_respected_when_asked(orientation):
    data = encoded("JPEG", orientation)
    stored = Image.open(io.BytesIO(data))
    np.testing.assert_array_equal(image.decode(layout="HWC")(data), np.asarray(stored))
    np.testing.assert_array_equal(
        image.decode(layout="HWC", exif=True)(data), np.asarray(ImageOps.exif_transpose(stored))
    )


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK", "LA"])
def test_pictures_of_every_mode_come_out_in_the_one_asked_for(mode):
    form = "TIFF" if mode == "CMYK" else "PNG"
    data = encoded(form, mode=mode)
    assert image.decode()(data).shape == (3, 247, 331)
    assert image.decode("L")(data).shape == (1, 247, 331)
    assert image.random_resized_crop((5, 7))(data, rng=rng()).shape == (3, 5, 7)


def test_crops_fit_and_have_the_shares_and_aspects_asked_for():
    generator = rng()
    boxes = [draw_box(400, 400, (0.1, 0.4), (0.5, 2.0), generator) for _ in range(4000)]
    assert all(0 <= box.left < box.right <= 400 and 0 <= box.top < box.bottom <= 400 for box in boxes)
    shares = [box.width * box.height / 400**2 for box in boxes]
    aspects = [math.log(box.width / box.height) for box in boxes]
    assert scipy.stats.kstest(shares, "uniform", (0.1, 0.3)).pvalue > 1e-3
    assert scipy.stats.kstest(aspects, "uniform", (math.log(0.5), math.log(4.0))).pvalue > 1e-3
    lefts = [(box.left + 0.5) / (400 - box.width + 1) for box in boxes]
    assert scipy.stats.kstest(lefts, "uniform").pvalue > 1e-3


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 2**32))
def test_a_crop_of_any_picture_lies_inside_it(width, height, seed):
    box = draw_box(width, height, (0.08, 1.0), (3 / 4, 4 / 3), rng(seed))
    assert 0 <= box.left < box.right <= width
    assert 0 <= box.top < box.bottom <= height


def test_a_picture_that_no_aspect_fits_gives_its_centre():
    assert draw_box(1000, 10, (1.0, 1.0), (3 / 4, 4 / 3), rng()) == (493, 0, 506, 10)
    assert draw_box(10, 1000, (1.0, 1.0), (3 / 4, 4 / 3), rng()) == (0, 493, 10, 506)


def test_the_stages_work_in_a_plan_with_labels_and_kept_pictures(tmp_path):
    for name in ("cat/1", "cat/2", "dog/1"):
        path = tmp_path / f"{name}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded())
    plan = hr.folder(tmp_path).map(image.random_resized_crop(32))
    assert plan.stages[0].takes_rng
    assert plan[2]["image"].shape == (3, 32, 32)
    assert plan[2]["label"] == 1
    two = hr.folder(tmp_path).map(image.decode(), name="decode").map(image.random_resized_crop(32, reduce=False))
    two = two.cache(max_bytes=10**7)
    batch = next(iter(hr.DataLoader(two, batch_size=3)))
    assert batch["image"].shape == (3, 3, 32, 32)
    assert batch["label"].tolist() == [0, 0, 1]
    assert pickle.loads(pickle.dumps(plan))[0]["image"].tobytes() == plan[0]["image"].tobytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "^cannot decode an empty file as a picture"),
        (b"not a picture", "^cannot decode 13 bytes as a picture: no known format begins with 6e 6f 74 20 61 20 70 69"),
        (encoded()[:3000], r"^cannot decode 3,000 bytes as a picture: image file is truncated"),
        (7, r"^expected a picture, or a mapping with one, and got int"),
        ({"photo": b""}, r"^the sample has no field 'image'; it has 'photo'"),
        (np.zeros((4, 4, 3), np.uint8), r"^expected"),
    ],
)
def test_what_is_no_picture_is_refused_by_name(data, message):
    for stage in (image.decode(), lambda sample: image.random_resized_crop(8)(sample, rng=rng())):
        with pytest.raises(DataError, match=message):
            stage(data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "^size=.0, 0."),
        ({"size": 8, "scale": (0.5, 0.1)}, "^scale="),
        ({"size": 8, "scale": (0.5, 1.1)}, "^scale="),
        ({"size": 8, "ratio": (0.0, 1.0)}, "^ratio="),
        ({"size": 8, "mode": "HSV"}, "^mode='HSV': expected one of 'RGB', 'L'"),
        ({"size": 8, "layout": "NHWC"}, "^layout='NHWC'"),
    ],
)
def test_arguments_that_cannot_work_are_refused_when_the_stage_is_made(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        image.random_resized_crop(**arguments)
