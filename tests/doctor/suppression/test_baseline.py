"""A baseline knows a finding again when lines, counts and words move, and never hides a new sample."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.report.fingerprint import fingerprint
from headrace.doctor.suppression import apply_baseline, load_baseline, write_baseline
from headrace.errors import ConfigurationError

IDS = st.integers(0, 99) | st.text(max_size=8)
ROWS = st.fixed_dictionaries(
    {
        "code": st.sampled_from(["HR101", "HR205", "HR301"]),
        "where": st.sampled_from([None, "train.py:3 in crop", "train.py:9", "data/7.png", "dataset.rng"]),
        "sample_ids": st.lists(IDS, max_size=4, unique=True),
        "evidence": st.sampled_from([{}, {"field": "image"}, {"field": "mask"}]),
        "split": st.sampled_from([None, "train", "eval"]),
        "severity": st.sampled_from(["error", "info"]),
    }
)


@given(st.lists(ROWS, max_size=6))
def test_what_was_just_written_is_known(tmp_path_factory, row, report, rows):
    rows = [row(**one) for one in rows]
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    before = report(*rows)
    written = write_baseline(before, path)
    assert load_baseline(path) == written
    after = apply_baseline(before, written)
    assert (after.findings, after.known, after.vanished, after.verdict) == ([], rows, [], "clean")
    assert after.exit_status == 0


@given(st.lists(ROWS, max_size=6))
def test_writing_again_over_a_known_report_changes_no_byte(tmp_path_factory, row, report, rows):
    rows = [row(**one) for one in rows]
    path = tmp_path_factory.mktemp("baseline") / "b.json"
    written = write_baseline(report(*rows), path)
    first = path.read_bytes()
    write_baseline(apply_baseline(report(*rows), written), path)
    assert path.read_bytes() == first


@given(ROWS, st.integers(1, 999), st.text(max_size=20))
def test_line_message_confidence_and_order_of_ids_do_not_matter(row, fields, line, message):
    row = row(**fields)
    moved = msgspec.structs.replace(
        row,
        message=message,
        confidence=0.5,
        sample_ids=row.sample_ids[::-1],
        where=row.where.replace(":3", f":{line}") if row.where else None,
    )
    assert fingerprint(moved) == fingerprint(row)


@given(ROWS, st.sampled_from(["code", "split", "field", "ids"]))
def test_what_makes_another_fault_makes_another_fingerprint(row, fields, what):
    row = row(**fields)
    changes = {
        "code": {"code": "HR999"},
        "split": {"split": "test"},
        "field": {"evidence": {"field": "other"}},
        "ids": {"sample_ids": [*row.sample_ids, "another one"]},
    }[what]
    if what == "ids" and not row.sample_ids:
        return  # the place leaves the identity when samples are named; compared elsewhere
    assert fingerprint(msgspec.structs.replace(row, **changes)) != fingerprint(row)


def test_a_number_and_its_text_are_two_ids(row):
    assert fingerprint(row(sample_ids=[1])) != fingerprint(row(sample_ids=["1"]))


def test_one_more_sample_fails_and_is_named(tmp_path, row, report):
    baseline = write_baseline(report(row(sample_ids=["a", "b"])), tmp_path / "b.json")
    after = apply_baseline(report(row(sample_ids=["a", "c"])), baseline)
    assert (len(after.findings), after.known, after.exit_status) == (1, [], 1)
    assert after.notes == ["HR205: not in the baseline yet: c"]


def test_fewer_samples_are_still_known(tmp_path, row, report):
    baseline = write_baseline(report(row(sample_ids=["a", "b"], where="a.png")), tmp_path / "b.json")
    assert not apply_baseline(report(row(sample_ids=["b"], where="b.png")), baseline).findings


def test_what_vanished_is_said_only_if_its_rule_could_judge(tmp_path, row, report):
    baseline = write_baseline(report(row("HR205"), row("HR601")), tmp_path / "b.json")
    after = apply_baseline(report(cleared=["HR205"]), baseline)
    assert [row.code for row in after.vanished] == ["HR205"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"target": 1}', b"\xff"])
def test_what_is_no_baseline_is_refused(tmp_path, content):
    (tmp_path / "b.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"is not a baseline"):
        load_baseline(tmp_path / "b.json")


def test_a_missing_one_says_how_to_write_it(tmp_path):
    with pytest.raises(ConfigurationError, match=r"(?s)cannot read the baseline.*--write-baseline"):
        load_baseline(tmp_path / "b.json")


def test_a_later_form_is_refused(tmp_path):
    (tmp_path / "b.json").write_text('{"headrace_baseline": 2, "target": "", "findings": []}')
    with pytest.raises(ConfigurationError, match=r"has form 2"):
        load_baseline(tmp_path / "b.json")
