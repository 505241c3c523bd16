"""Exceptions that stay inside the user's code, and rows that it asks itself for."""

import sys
import textwrap

import pytest

from headrace.doctor.lab.sightings import Sightings
from headrace.doctor.probes.kept_inside import watching

pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or a coverage tool traces already")


def watch(code, tmp_path, call):
    """Runs `call` in a module of the user's; returns the watch."""
    path = tmp_path / "data.py"
    path.write_text(textwrap.dedent(code))
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    with watching(Sightings()) as seen:
        eval(call, namespace)
    assert sys.gettrace() is None
    return seen


ROWS = """
class Rows:
    def __len__(self):
        return 9
    def load(self, row):
        if row in (3, 4):
            raise ValueError("bad row")
        return row
    def __getitem__(self, row):
        try:
            return self.load(row)
        except ValueError:
            return self[row + 1]
"""


def test_each_error_is_seen_once_where_it_was_kept_and_the_rows_that_followed(tmp_path):
    seen = watch(ROWS, tmp_path, "Rows()[3]")
    assert [(one.type_names[0], one.message, one.is_explicit) for one in seen.raised] == [
        ("ValueError", "bad row", True),
        ("ValueError", "bad row", True),
    ]
    assert {one.at.rpartition("/")[2] for one in seen.raised} == {"data.py:11 in __getitem__"}
    assert [(one.row, one.num_raised) for one in seen.asked] == [(3, 0), (4, 1), (5, 2)]
    assert len({one.holder for one in seen.asked}) == 1


PARTNERS = """
class Vocabulary:
    def __getitem__(self, number):
        if number > 5:
            raise ValueError("unknown word")
        return "word"

class Rows:
    words = Vocabulary()
    def load(self, row):
        if row == 3:
            raise ValueError("bad row")
        return [row]
    def __getitem__(self, row):
        if row >= 100:
            return self.load(row)
        try:
            number = int("x")
        except ValueError:
            number = 0
        try:
            self.words[9]
        except ValueError:
            self.words[0]
        if row == 50:
            return self[101] + self[102]
        if row == 60:
            try:
                return self[103 - 100 + 100] if number else self.bad()
            except ValueError:
                return self[104]
        return [row]
    def bad(self):
        raise ValueError("bad row")
"""


@pytest.mark.parametrize(("row", "expected"), [(1, [None, None]), (50, [None, None]), (60, [None, None, 104])])
def test_only_an_answer_that_is_handed_on_stands_for_another_row(tmp_path, row, expected):
    seen = watch(PARTNERS, tmp_path, f"Rows()[{row}]")
    answers = [seen.answer_instead(one) for one in seen.raised]
    assert [None if answer is None else answer.row for answer in answers] == expected


def test_a_row_without_an_error_shows_nothing(tmp_path):
    seen = watch(ROWS, tmp_path, "Rows()[0]")
    assert seen.raised == []
    assert [(one.row, one.num_raised) for one in seen.asked] == [(0, 0)]


@pytest.mark.parametrize(
    "call",
    ["[x for x in iter([1, 2])]", "next(iter([]), None)", "list(x for x in 'ab')", "optional()", "getattr(3, 'x', 1)"],
)
def test_loops_and_optional_libraries_are_no_errors(tmp_path, call):
    code = """
    def optional():
        try:
            import nobody_has_this
        except ImportError:
            return None
    """
    assert watch(code, tmp_path, call).raised == []


def test_an_error_inside_a_library_is_the_librarys_own_affair(tmp_path):
    seen = watch("import json\ndef read():\n    return json.dumps({'a': 1}), 'a'.isdigit()\n", tmp_path, "read()")
    assert seen.raised == []


def test_an_error_of_the_interpreter_is_not_one_that_somebody_raised(tmp_path):
    code = """
    def number(text):
        try:
            return int(text)
        except ValueError:
            return 0
    """
    (one,) = watch(code, tmp_path, "number('seven')").raised
    assert (one.type_names[0], one.is_explicit) == ("ValueError", False)


def test_a_tool_that_traces_already_keeps_its_place(tmp_path):
    def tool(frame, event, argument):
        return None

    sys.settrace(tool)
    try:
        with watching(Sightings()) as seen:
            held = sys.gettrace()
        assert sys.gettrace() is tool
    finally:
        sys.settrace(None)
    assert held is tool
    assert seen.raised == []
