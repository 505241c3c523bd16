"""Files as they are stored, and whether they end before their image does."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFile

from headrace.doctor.probes.raw_files import is_cut_off, open_raw

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 56, 3), dtype=np.uint8)


def encoded(kind, pixels=PIXELS, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.4, 0.7, 0.95])
def test_a_cut_off_file_is_seen_also_while_truncated_loading_is_on(kind, share, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    whole = encoded(kind)
    assert not is_cut_off(whole)
    assert is_cut_off(whole[: int(share * len(whole))])
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_bytes_after_the_end_of_the_image_do_no_harm(kind, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(encoded(kind) + b"trailing" * 100)
    assert not is_cut_off(str(path))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, bool])
def test_single_channel_files_keep_every_value(dtype, tmp_path):
    values = (np.arange(60 * 50).reshape(60, 50) % (2 if dtype is bool else 200 if dtype is np.uint8 else 3000)).astype(
        dtype
    )
    path = tmp_path / "a.png"
    Image.fromarray(values).save(path)
    np.testing.assert_array_equal(open_raw(str(path)).array, values)


def test_a_palette_file_is_its_indices_and_its_colours(tmp_path):
    image = Image.fromarray(np.array([[0, 1], [2, 1]], np.uint8))
    image.putpalette([9, 8, 7, 60, 50, 40, 1, 2, 3])
    image.save(tmp_path / "a.png")
    raw = open_raw(str(tmp_path / "a.png"))
    assert raw.mode == "P"
    assert raw.array.tolist() == [[0, 1], [2, 1]]
    assert raw.palette[:3].tolist() == [[9, 8, 7], [60, 50, 40], [1, 2, 3]]


@pytest.mark.parametrize("content", [b"", b"no image", b"\xff\xd8\xff" + b"\0" * 50, encoded("PNG")[:20]])
def test_what_cannot_be_opened_is_no_error(content, tmp_path):
    (tmp_path / "a.png").write_bytes(content)
    assert open_raw(str(tmp_path / "a.png")) is None
    assert open_raw(str(tmp_path / "missing.png")) is None
    assert open_raw(content) is None


def test_colour_that_lies_upright_is_not_decoded():
    raw = open_raw(encoded("JPEG"))
    assert (raw.format, raw.mode, raw.size, raw.orientation, raw.array) == ("JPEG", "RGB", (56, 40), 1, None)


def test_a_nonsensical_orientation_is_upright():
    exif = Image.Exif()
    exif[0x0112] = 77
    assert open_raw(encoded("JPEG", exif=exif)).orientation == 1
