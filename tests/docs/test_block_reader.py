"""The reader of blocks: what it takes for a block, a command, a match."""

import pytest

PAGE = """\
# A page

```python
# train.py
x = 1
print(x)
```

```text
1
```

<!-- not run: needs a network -->

```console
$ pip install headrace
```

```console
$ echo one \\
    two
one two
$ false # exit 1
$ true
```
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_blocks_come_in_order_with_their_lines(blocks, page):
    lines = PAGE.splitlines()
    found = blocks.read_blocks(page)
    assert [block.language for block in found] == ["python", "text", "console", "console"]
    for block in found:
        assert lines[block.line - 1] == block.body.splitlines()[0]


def test_a_block_knows_its_file_its_neighbour_and_why_it_is_not_run(blocks, page):
    python, text, skipped, console = blocks.read_blocks(page)
    assert python.file_name == "train.py"
    assert text.follows_python
    assert not console.follows_python
    assert [block.not_run for block in (python, skipped, console)] == [None, "needs a network", None]


def test_a_comment_without_a_reason_skips_nothing(blocks, tmp_path):
    path = tmp_path / "page.md"
    path.write_text("<!-- not run: -->\n\n```python\nx = 1\n```\n")
    assert blocks.read_blocks(path)[0].not_run is None


def test_commands_carry_output_status_and_line(blocks, page):
    console = blocks.read_blocks(page)[3]
    echo, false, true = blocks.read_commands(console)
    assert (echo.text, echo.shown, echo.status) == ("echo one \\\n    two", "one two\n", 0)
    assert (false.text, false.shown, false.status) == ("false", "", 1)
    assert (true.text, true.line) == ("true", console.line + 4)


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\nb", "a  \nb\n", True),
        ("a\n...\nz", "a\nb\nc\nz", True),
        ("took ... s", "took 0.31 s", True),
        ("took ... s", "took 0.31 ms", False),
        ("a", "a\nb", False),
        ("a (b)*", "a (b)*", True),
    ],
)
def test_dots_stand_for_anything_and_everything_else_for_itself(blocks, shown, printed, expected):
    assert blocks.matches(shown, printed) is expected


def test_hidden_code_is_a_block_of_its_own(blocks, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "Text.\n\n<!-- run first: make demo -->\n<!-- run first, in python: x = 1 -->\n\n```python\nx\n```\n"
    )
    command, code, shown = blocks.read_blocks(path)
    assert (command.language, command.body, command.line) == ("console", "$ make demo\n", 3)
    assert (code.language, code.body, code.line) == ("python", "x = 1\n", 4)
    assert (shown.language, shown.not_run) == ("python", None)
