"""Decisions that one example cannot show: several causes, several rules over one cause, who is to blame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor import catalogue
from headrace.doctor.evidence import WorkerStreams
from headrace.doctor.made_up import collated, failed, file, image, label, loader, ok, opened, reads, values
from headrace.doctor.questions.samples import blame, ended_early


def judge(code, *evidence):
    return catalogue.rule(code).judge(*evidence)


def test_each_cause_of_an_unreadable_record_is_a_finding_of_its_own():
    cut = {"files": (opened("a.jpg"),)}
    seen = reads(
        failed("OSError", "image file is truncated (3 bytes not processed)", stage="decode", **cut),
        ok(image(3, 8, 8)),
        failed("OSError", "image file is truncated (9 bytes not processed)", stage="decode", **cut),
        failed("UnidentifiedImageError", files=(opened("b.jpg", size_bytes=0, head=b""),)),
        failed("FileNotFoundError", "[Errno 2] No such file or directory: 'c.jpg'"),
        failed("ValueError", "no box", stage="transform", error_at="aug.py:3 in crop"),
        failed("ValueError", "no box", stage="transform", error_at="aug.py:9 in flip"),
        failed("OSError", "broken data stream when reading image file", stage="decode", **cut),
        ok(image(3, 8, 8)),
    )
    found = judge("HR101", seen)
    assert [finding.sample_ids for finding in found] == [(0, 2), (3,), (4,), (5,), (6,), (7,)]
    assert "the file is empty (0 bytes)" in found[1].message
    assert "the file is not there" in found[2].message
    assert [finding.where for finding in found[3:5]] == ["aug.py:3 in crop", "aug.py:9 in flip"]
    assert "the decoder refuses the file" in found[5].message


def test_an_empty_annotation_file_is_not_blamed_for_an_error_in_the_users_code():
    seen = reads(
        ok(image(3, 8, 8)),
        failed(
            "ValueError",
            "need at least one box",
            error_at="data.py:8 in load",
            files=(opened("a.jpg"), opened("a.txt", size_bytes=0, head=b"")),
        ),
    )
    (found,) = judge("HR101", seen)
    assert found.where == "data.py:8 in load"
    assert "empty (0 bytes)" not in found.message


def test_an_index_error_before_the_end_is_a_fault_of_the_code_and_not_of_the_length():
    (found,) = judge("HR101", reads(ok(label(0)), failed("IndexError", "list index out of range"), ok(label(0))))
    assert "raises IndexError" in found.message
    (found,) = judge("HR101", reads(ok(label(0)), failed("IndexError"), num_samples=9))
    assert "raises IndexError" in found.message, "the last row was not among those examined"


def test_sizes_that_differ_beside_modes_that_differ_are_both_named_each_once():
    evidence = (
        reads(
            ok(image(3, 8, 8), images=(file("RGB"),)),
            ok(image(3, 8, 8), images=(file("RGB"),)),
            ok(image(1, 8, 8), images=(file("L"),)),
            ok(image(3, 9, 8), images=(file("RGB"),)),
        ),
        collated(ids=(0, 1, 2, 3), error_type="RuntimeError", odd_ids=(2, 3)),
    )
    assert [finding.sample_ids for finding in judge("HR106", *evidence)] == [(2,)]
    assert [finding.sample_ids for finding in judge("HR301", *evidence, loader())] == [(3,)]


def test_shapes_of_a_bare_data_set_are_a_warning():
    evidence = reads(ok(image(3, 8, 8)), ok(image(3, 9, 8))), collated(error_type="RuntimeError", odd_ids=(1,))
    (found,) = judge(
        "HR301", *evidence, loader(kind="__main__.Photos", batch_size=None, num_batches=None, collate=None)
    )
    assert (found.severity, found.confidence) == ("warning", 0.7)


@pytest.mark.parametrize("value", [-100, -1, 0, 9, 255])
def test_values_that_mean_ignore_are_accepted_in_masks(value):
    low, high = min(value, 0), max(value, 5)
    mask = values("mask", 8, 8, dtype="int64", minimum=low, maximum=high, is_whole=True)
    assert judge("HR304", reads(ok(mask), num_classes=10, target_fields=("mask",))) == []


@pytest.mark.parametrize(
    ("value", "is_named"), [(-100, False), (0, False), (9, False), (10, True), (255, True), (-2, True)]
)
def test_a_single_class_id_has_no_other_way_to_say_ignore_than_the_default(value, is_named):
    seen = reads(ok(label(0)), ok(label(1)), ok(label(value)), num_classes=10, target_fields=("label",))
    assert [finding.sample_ids for finding in judge("HR304", seen)] == ([(2,)] if is_named else [])


@given(st.lists(st.integers(0, 4), min_size=2, max_size=8))
def test_class_ids_within_range_get_silence_from_every_rule_of_targets(labels):
    seen = reads(*(ok(image(3, 8, 8), label(value)) for value in labels), num_classes=5, target_fields=("label",))
    trial = collated(image(2, 3, 8, 8), values("label", 2, dtype="int64"))
    assert judge("HR304", seen) == []
    assert judge("HR305", seen, trial) == []


@pytest.mark.parametrize(
    ("trial", "ids", "sure"),
    [
        (collated(), {1}, 0.0),  # it was joined with another, and a batch came out
        (collated(), {7}, 1.0),  # the default rules refuse it, although it was not tried
        (collated(own="pad"), {7}, 0.0),
        (collated(error_type="RuntimeError"), {1}, 1.0),
        (collated(own="pad", error_type="RuntimeError", odd_ids=(1,)), {1}, 0.9),
        (collated(own="pad", error_type="KeyError", odd_ids=(1,)), {0}, 0.0),
        (collated(own="pad", error_type="KeyError", odd_ids=(1,), ids=(0, 1, 2, 3)), {1, 2, 3}, 0.0),
        (collated(own="pad", error_type="KeyError"), {1}, 0.7),
        (collated(own="pad", error_type="stuck"), {1}, 0.0),
    ],
)
def test_a_collate_function_of_the_users_own_is_blamed_only_for_what_it_was_seen_to_do(trial, ids, sure):
    assert blame(trial, ids) == sure


@pytest.mark.parametrize(
    ("error_type", "is_early"),
    [("stuck", True), ("SIGSEGV", True), ("exit status 1", True), ("RuntimeError", False), (None, False)],
)
def test_a_hang_or_a_crash_in_collate_is_told_from_an_exception(error_type, is_early):
    assert ended_early(collated(error_type=error_type)) is is_early


def streams(per_worker, num_single, num_duplicated, *, is_complete=True):
    return WorkerStreams(
        num_workers=len(per_worker),
        per_worker=per_worker,
        num_single=num_single,
        num_duplicated=num_duplicated,
        first_duplicate=None,
        is_complete=is_complete,
    )


@given(st.integers(2, 8), st.integers(1, 1000))
def test_a_stream_that_every_worker_repeats_is_named_for_any_number_of_workers(num_workers, size):
    (found,) = judge("HR601", streams((size,) * num_workers, size, size * (num_workers - 1)))
    assert (found.severity, found.confidence) == ("error", 1.0)


@given(st.integers(2, 8), st.integers(0, 1000))
def test_a_stream_that_is_split_is_never_named(num_workers, size):
    parts = tuple(len(range(worker, size, num_workers)) for worker in range(num_workers))
    assert judge("HR601", streams(parts, size, 0)) == []


def test_shards_that_overlap_are_named_and_chance_meetings_are_not():
    assert judge("HR601", streams((60, 60), 100, 20))
    assert judge("HR601", streams((501, 500), 1_000, 230)) == []
    assert judge("HR601", streams((64, 64), 64, 5, is_complete=False)) == []
