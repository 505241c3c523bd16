"""Comments are read as Python reads them, and each speaks for the statement that it belongs to."""

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.suppression.comments import read_comments


def read(folder, text):
    path = folder / "source.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_comments(str(path))


def told(folder, text):
    return [(one.line, one.codes, one.reason, tuple(one.covers)) for one in read(folder, text)]


def test_behind_a_statement(tmp_path):
    assert told(tmp_path, "x = 1\ny = 2  # headrace: ignore[HR205] it is meant\n") == [
        (2, ("HR205",), "it is meant", (2,))
    ]


def test_above_a_statement_of_several_lines_with_other_comments_between(tmp_path):
    text = "# headrace: ignore[hr205, HR601] meant\n# something else\ny = f(\n    1,\n)\nz = 3\n"
    assert told(tmp_path, text) == [(1, ("HR205", "HR601"), "meant", (3, 4, 5))]


def test_inside_a_statement(tmp_path):
    assert told(tmp_path, "y = f(\n    1,  # headrace: ignore[HR205] meant\n    2,\n)\n")[0][3] == (1, 2, 3, 4)


def test_a_blank_line_parts_a_comment_from_what_follows(tmp_path):
    assert told(tmp_path, "# headrace: ignore[HR205] meant\n\ny = 2\n")[0][3] == ()


def test_at_the_head_of_a_block(tmp_path):
    text = "def f():\n    # headrace: ignore[HR205] meant\n    return 1\n"
    assert told(tmp_path, text)[0][3] == (3,)


def test_several_above_one_line_all_speak_for_it(tmp_path):
    text = "# headrace: ignore[HR205] one\n# headrace: ignore[HR601] two\ny = 2\n"
    assert [(one[1], one[3]) for one in told(tmp_path, text)] == [(("HR205",), (3,)), (("HR601",), (3,))]


@pytest.mark.parametrize(
    "comment", ["# headrace: ignore[HR205]", "# headrace: ignore[HR205]  # noqa", "#headrace:ignore[HR205] -"]
)
def test_no_reason_is_no_reason(tmp_path, comment):
    assert told(tmp_path, f"x = 1  {comment}\n") == [(1, ("HR205",), "", (1,))]


def test_beside_other_comments_of_the_line(tmp_path):
    assert told(tmp_path, "x = 1  # noqa: E501  # headrace: ignore[HR205] meant  # type: ignore\n") == [
        (1, ("HR205",), "meant", (1,))
    ]


@pytest.mark.parametrize(
    "text",
    [
        'x = "# headrace: ignore[HR205] in a string"\n',
        '"""\n# headrace: ignore[HR205] in a docstring\n"""\n',
        "# headrace ignore[HR205] no colon\nx = 1\n",
    ],
)
def test_what_only_looks_like_one_is_none(tmp_path, text):
    assert read(tmp_path, text) == []


def test_what_cannot_be_read_has_no_comments(tmp_path):
    assert read_comments(str(tmp_path / "missing.py")) == []
    assert read_comments(str(tmp_path)) == []
    assert read(tmp_path, b"\xff\xfe\x00 # headrace: ignore[HR205] x") == []


def test_what_stands_before_a_syntax_error_is_read(tmp_path):
    assert [one.line for one in read(tmp_path, "x = 1  # headrace: ignore[HR205] meant\ny = (\n")] == [1]


NAMES = st.from_regex(r"\A[a-z]{1,8}\Z").filter(lambda name: not keyword.iskeyword(name))


@given(st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=12))
def test_each_statement_with_a_comment_behind_it_is_covered_and_no_other(tmp_path_factory, statements):
    lines = [f"{name} = 1" + "  # headrace: ignore[HR205] meant" * marked for name, marked in statements]
    found = read(tmp_path_factory.mktemp("source"), "\n".join(lines) + "\n")
    assert [tuple(one.covers) for one in found] == [
        (number,) for number, (_, marked) in enumerate(statements, start=1) if marked
    ]
