"""The demo's files are what they claim: the originals, once each; four faults and no more; mended to the byte."""

import csv

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits as load_originals

from headrace.cli.demo import data, faults
from headrace.errors import ConfigurationError


@pytest.fixture(scope="module")
def digits():
    return data.load_digits()


@pytest.fixture
def root(tmp_path, digits):
    data.claim_folder(tmp_path / "demo")
    list(data.write_digits(tmp_path / "demo", digits))
    data.write_labels(tmp_path / "demo", digits)
    return tmp_path / "demo"


def pixels_of(path):
    with Image.open(path) as image:
        return np.array(image)


def content(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_original_is_written_once_and_can_be_read_back(root, digits):
    originals = load_originals()
    paths = sorted([*root.glob("train/*/*.png"), *root.glob("test/*/*.png")], key=lambda path: path.name)
    assert len(paths) == len(originals.target) == 1797
    for path, levels, label in zip(paths, originals.images, originals.target, strict=True):
        pixels = pixels_of(path)
        assert pixels.shape == (16, 16, 3)
        assert path.parent.name == str(label)
        assert np.array_equal(np.rint(pixels[::2, ::2, 0] * (16 / 255)), levels)


def test_held_out_digits_are_a_fifth_and_apart(root, digits):
    names = [{path.name for path in root.glob(f"{part}/*/*.png")} for part in ("train", "test")]
    assert not names[0] & names[1]
    assert len(names[1]) == 1797 // 5


def test_the_label_table_has_a_row_per_training_digit_in_order(root, digits):
    with (root / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected = [index for index in range(len(digits)) if not digits.is_held_out(index)]
    assert [row["path"] for row in rows] == [digits.path(index) for index in expected]
    assert [int(row["label"]) for row in rows] == [digits.labels[index] for index in expected]
    assert [digits.row(index) for index in expected] == list(range(len(expected)))


def test_crops_are_pieces_of_the_photographs(tmp_path):
    paths = list(data.write_photographs(tmp_path))
    assert len(paths) == len(set(paths)) == data.NUM_CROPS
    assert {path.parent.name for path in paths} == {"china", "flower"}
    assert {pixels_of(path).shape for path in paths} == {(data.CROP, data.CROP, 3)}


def test_four_faults_touch_four_digits_and_mending_restores_every_byte(root, digits):
    before = content(root)
    faults.break_data(root, digits)
    broken = content(root)
    changed = {name for name in before if before[name] != broken[name]}
    in_files = {digits.path(index) for index in faults.FAULTY if index != faults.MISTYPED}
    assert changed == {*in_files, "labels.csv"}

    assert pixels_of(root / digits.path(faults.GREY)).shape == (16, 16)
    with pytest.raises(OSError, match=r"truncated|Truncated"):
        pixels_of(root / digits.path(faults.TRUNCATED))
    assert broken[digits.path(faults.POINTER)].startswith(b"version https://git-lfs.github.com/spec/v1\noid sha256:")
    before_rows, broken_rows = (files["labels.csv"].splitlines() for files in (before, broken))
    slips = [row for row, (old, new) in enumerate(zip(before_rows, broken_rows, strict=True)) if old != new]
    assert slips == [1 + digits.row(faults.MISTYPED)]
    assert int(broken_rows[slips[0]].split(b",")[1]) > 9

    faults.mend_data(root, digits)
    assert content(root) == before


def test_faults_are_in_training_digits_only(digits):
    assert not any(map(digits.is_held_out, faults.FAULTY))


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ConfigurationError, match=r"is not empty and was not written by this command"):
        data.claim_folder(tmp_path)
    assert content(tmp_path) == {"thesis.tex": b"precious"}


def test_a_folder_of_an_earlier_demo_is_used_again(root):
    data.claim_folder(root)


def test_the_scripts_in_the_folder_are_those_of_the_package(root):
    for name in ("broken.py", "photos.py"):
        assert (root / name).read_text() == (data.SCRIPTS / name).read_text()
