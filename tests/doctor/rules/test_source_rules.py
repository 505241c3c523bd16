"""Where the rules on sources and decoding draw their lines."""

import dataclasses

import pytest

from headrace.doctor.catalogue import rule
from headrace.doctor.evidence.source import ClassFolder, ClassFolders
from headrace.doctor.made_up.decoding import decoded, decoding, mask, picture, step, swallowed


def codes(name, *evidence):
    return [(finding.severity, finding.sample_ids) for finding in rule(name).judge(*evidence)]


REPLACED = {
    "another row": {"answered_row": 5},
    "another file": {"answered_path": "data/5.jpg"},
    "a constant": {"is_placeholder": True},
    "the content of another sample": {"equal_to": 5},
}


@pytest.mark.parametrize("instead", REPLACED.values(), ids=REPLACED)
@pytest.mark.parametrize("error", ["OSError", "ValueError", "MyOwnError"])
@pytest.mark.parametrize("by_decoder", [True, False])
def test_an_error_after_which_something_else_was_delivered_is_one(instead, error, by_decoder):
    one = swallowed(1, error, by_decoder=by_decoder, **instead)
    assert codes("HR103", decoding(swallowed=(one,), num_examined=9)) == [("error", (1,))]


@pytest.mark.parametrize("instead", REPLACED.values(), ids=REPLACED)
def test_what_was_read_in_the_end_was_not_papered_over(instead):
    one = swallowed(1, recovered=True, **instead)
    assert codes("HR103", decoding(swallowed=(one,), num_examined=9)) == []


def test_a_refusal_without_a_known_replacement_is_less_sure():
    assert codes("HR103", decoding(swallowed=(swallowed(1),), num_examined=9)) == [("warning", (1,))]


@pytest.mark.parametrize("error", ["KeyError", "AttributeError", "IndexError", "TypeError"])
def test_questions_need_both_another_row_and_its_content(error):
    def judged(**more):
        return codes("HR103", decoding(swallowed=(swallowed(1, error, by_decoder=False, **more),), num_examined=9))

    assert judged(answered_row=5) == judged(equal_to=5) == judged(is_placeholder=True) == judged() == []
    assert judged(answered_row=5, equal_to=5) == [("warning", (1,))]


def test_a_missing_file_needs_a_replacement_for_the_sample():
    def judged(**more):
        one = swallowed(1, "FileNotFoundError", is_missing=True, **more)
        return codes("HR103", decoding(swallowed=(one,), num_examined=9))

    assert judged() == judged(answered_path="data/5.jpg") == judged(equal_to=5) == []
    assert judged(answered_row=5) == judged(is_placeholder=True) == [("error", (1,))]


def test_a_sample_that_says_itself_that_it_is_not_valid_is_only_mentioned():
    one = swallowed(1, is_placeholder=True, flagged_by="valid")
    assert codes("HR103", decoding(swallowed=(one,), num_examined=9)) == [("info", (1,))]


def test_one_sample_is_told_once_and_one_place_makes_one_finding():
    several = (swallowed(1, answered_row=5), swallowed(1, "ValueError", answered_row=5), swallowed(2, answered_row=5))
    assert codes("HR103", decoding(swallowed=several, num_examined=9)) == [("error", (1, 2))]


@pytest.mark.parametrize("orientation", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize(
    ("stored", "upright", "found"), [(0.95, 0.2, 1), (0.2, 0.95, 0), (0.9, 0.88, 0), (None, None, 0)]
)
def test_orientation_is_judged_by_the_picture(orientation, stored, upright, found):
    look = picture("a.jpg", "RGB", step("rotate"), orientation=orientation, like_stored=stored, like_upright=upright)
    assert len(codes("HR104", decoding(decoded(look)))) == found


@pytest.mark.parametrize(
    ("name", "reader", "found"),
    [("resize", "Pillow", 1), ("transpose", "Pillow", 0), ("getexif", "Pillow", 0), ("resize", "imageio", 0)],
)
def test_orientation_is_judged_by_the_steps_where_the_picture_does_not_tell(name, reader, found):
    look = picture("a.jpg", "RGB", step(name), orientation=6, reader=reader)
    assert len(codes("HR104", decoding(decoded(look)))) == found


def test_a_turned_picture_that_was_made_and_not_used():
    look = picture("a.jpg", "RGB", step("exif_transpose"), orientation=6, like_stored=0.99, like_upright=0.1)
    assert codes("HR104", decoding(decoded(look))) == [("warning", (0,))]
    flipped = dataclasses.replace(look, orientation=3)
    assert codes("HR104", decoding(decoded(flipped))) == []


@pytest.mark.parametrize(
    ("clipped", "wrapped", "scaled", "found"),
    [
        (1.0, 0.2, 0.3, 1),
        (0.2, 1.0, 0.3, 1),
        (0.92, 0.2, 0.5, 1),
        (1.0, 0.2, 0.97, 0),
        (0.92, 0.1, 0.8, 0),
        (0.3, 0.3, 1.0, 0),
    ],
)
def test_bit_depth_is_judged_by_what_explains_the_values_best(clipped, wrapped, scaled, found):
    look = picture(
        "a.png", "I;16", maximum=9e3, above_8_bit=0.5, like_clipped=clipped, like_wrapped=wrapped, like_scaled=scaled
    )
    assert len(codes("HR105", decoding(decoded(look)))) == found
    assert codes("HR105", decoding(decoded(dataclasses.replace(look, above_8_bit=0.001)))) == []


def masked(look_values, delivered, *steps, dtype="int64", **more):
    look = picture("m.png", "L", *steps, values=look_values, flat_share=1.0, field="mask", **more)
    return decoding(decoded(look, fields=(mask(*delivered, dtype=dtype),)))


SMOOTHED = step("resize", "BILINEAR", after=(32, 24), smooths=True)


@pytest.mark.parametrize(
    ("stored", "delivered", "steps", "dtype", "found"),
    [
        ((0, 1, 4), (0, 1, 2, 3, 4), (SMOOTHED,), "int64", 1),
        ((0, 1, 4), (0, 1, 2, 3, 4), (), "int64", 1),
        ((0, 1, 4), (0, 1, 4), (SMOOTHED,), "int64", 0),
        ((0, 1, 4), (0, 1, 4, 255), (), "int64", 0),
        ((0, 255), tuple(range(20)), (), "int64", 0),
        ((0, 1, 4), (0, 1, 2, 3, 4), (SMOOTHED,), "float32", 1),
        ((0, 255), (0.0, 0.3, 0.5, 1.0), (SMOOTHED,), "float32", 0),
        ((0, 128, 255), (0, 60, 128, 200, 255), (SMOOTHED,), "float32", 0),
        (tuple(range(100)), tuple(range(200)), (SMOOTHED,), "int64", 0),
    ],
)
def test_a_mask_is_smoothed_if_it_holds_more_numbers_than_its_file(stored, delivered, steps, dtype, found):
    assert len(codes("HR203", masked(stored, delivered, *steps, dtype=dtype))) == found


@pytest.mark.parametrize(("flat", "num_values", "found"), [(0.9, 60, 1), (0.3, 60, 0), (0.9, 5, 0)])
def test_a_mask_in_a_jpeg_is_told_from_a_photograph(flat, num_values, found):
    values = tuple(range(num_values))
    look = picture("m.jpg", "L", format="JPEG", values=values, flat_share=flat, field="mask")
    assert len(codes("HR203", decoding(decoded(look, fields=(mask(*values),))))) == found


@pytest.mark.parametrize(
    ("name", "kind", "num_files", "severity"),
    [
        (".cache", "folder", 0, "warning"),
        (".ipynb_checkpoints", "folder", 3, "error"),
        (".net", "folder", 3, None),
        (".config", "folder", 0, "warning"),
        ("notes.txt", "file", 0, "warning"),
        ("zebra", "folder", 0, "info"),
        (".", "nothing", 0, None),
    ],
)
def test_what_is_no_class(name, kind, num_files, severity):
    others = [ClassFolder(name=letter, number=number, kind="folder", num_files=9) for number, letter in enumerate("ab")]
    odd = ClassFolder(name=name, number=2, kind=kind, num_files=num_files)
    found = rule("HR107").judge(ClassFolders(root="data", said_by=None, classes=(*others, odd)))
    assert [finding.severity for finding in found] == ([] if severity is None else [severity])


def large(decode_s=0.08, wall_s=0.1, decoded_size=(2000, 1500), used=(224, 224)):
    look = picture(
        "a.jpg",
        "RGB",
        step("load", before=decoded_size),
        step("resize", "BILINEAR", before=decoded_size, after=used, smooths=True),
        size=(2000, 1500),
        format="JPEG",
    )
    return decoded(look, decode_s=decode_s, wall_s=wall_s)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, 1),
        ({"decode_s": 0.03}, 0),
        ({"decoded_size": (500, 375)}, 0),
        ({"used": (1000, 750)}, 0),
    ],
    ids=["large", "something else takes the time", "decoded in part", "most of it is used"],
)
def test_decoding_is_oversized_if_it_is_large_and_dominates(options, found):
    assert len(codes("HR812", decoding(*(large(**options) for _ in range(5))))) == found
    assert codes("HR812", decoding(*(large(**options) for _ in range(2)))) == []


@pytest.mark.parametrize(("used", "factor"), [((200, 150), 8), ((300, 200), 4), ((20, 15), 8)])
def test_opencv_is_told_the_smallest_size_that_is_enough(used, factor):
    samples = [large(used=used) for _ in range(4)]
    samples = [
        dataclasses.replace(one, pictures=(dataclasses.replace(one.pictures[0], reader="OpenCV"),)) for one in samples
    ]
    (finding,) = rule("HR812").judge(decoding(*samples))
    assert f"IMREAD_REDUCED_COLOR_{factor})" in finding.fix.snippet
