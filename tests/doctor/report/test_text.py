"""The text as a stranger reads it: short where there is nothing to say, safe for a terminal whatever the data hold."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.report.model import IgnoredRow, KnownRow, SkippedRow
from headrace.doctor.report.text import render

DATA = st.data()


@given(DATA)
def test_no_text_of_a_report_reaches_the_terminal_as_a_command(made_up, data):
    text = render(data.draw(made_up.reports))
    assert not [one for one in text if ord(one) < 32 and one not in "\n\t"]


def skipped(number, num_reasons):
    return [
        SkippedRow(code=f"HR{100 + one}", name="rule", reason=f"reason {one % num_reasons}") for one in range(number)
    ]


def test_sixty_skipped_rules_take_few_lines(report, row):
    lines = render(report(row(), skipped=skipped(60, 9))).splitlines()
    start = next(number for number, line in enumerate(lines) if "60 skipped" in line)
    told = lines[start + 1 : lines.index("", start)]
    assert len(told) <= 5
    assert told[-1] == "  and 32 checks for 5 other reasons (--format json)"
    assert max(map(len, lines)) <= 80


def test_a_healthy_loader_with_sixty_skipped_rules_takes_six_lines(report):
    assert len(render(report(skipped=skipped(60, 9))).splitlines()) <= 6


def test_the_split_stands_before_the_message(report, row):
    assert "  [val] 1 of 4 samples" in render(report(row(split="val")))


def test_what_does_not_count_is_one_line_each(report, row):
    gone = KnownRow(code="HR302", place=None, field=None, sample_ids=[], message="x")
    told = report(
        known=[row(), row()],
        ignored=[IgnoredRow(finding=row("HR101"), reason="cannot be fetched", at="train.py:3")],
        vanished=[gone],
        notes=["1 ignore matches nothing in this run: HR601 at train.py:9"],
    )
    text = render(told)
    assert "has no finding that counts; 1 is ignored and 2 are known." in " ".join(text.split())
    for line in (
        "2 known findings (in the baseline).",
        "ignored: HR101 at train.py:3: cannot be fetched",
        "note: 1 ignore matches nothing in this run: HR601 at train.py:9",
    ):
        assert line in text.splitlines()
    assert "1 finding of the baseline no longer seen: HR302" in text
