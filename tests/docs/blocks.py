"""Reads the fenced blocks of a Markdown page, and compares printed text with what a page shows.

    ```python     run, in order, in one namespace per page; one whose first line is `# some_name.py` is saved first
                  under that name, so that commands can load it
    ```text       right after a python block: what that block prints
    ```console    lines that start with `$ ` are run by bash, the lines below each are what it prints; `# exit 1` at the
                  end of a command says its exit status where it is not 0
    <!-- not run: reason -->    above a block: it is skipped
    <!-- run first: command -->    run by bash like a console block: makes the files that a page takes for granted
    <!-- run first, in python: code -->    likewise, in the page's namespace

In shown text `...`, with the blanks before it, stands for anything, also for several lines or for nothing. Blocks in
other languages are for reading only.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
RUN_FIRST = re.compile(r"<!-- run first(?P<in_python>, in python)?: (?P<code>\S.*?) -->", re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>\S.*?) -->\s*\Z", re.DOTALL)
FILE_NAME = re.compile(r"# (?P<name>[\w./-]+\.\w+)\n")
EXIT = re.compile(r"\s+# exit (?P<status>\d+)$")


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    body: str
    line: int
    """Line of the page on which the body starts, from 1."""
    not_run: str | None
    """Why it is not run; None = it is."""
    follows_python: bool
    """True if nothing but blank lines stands between it and a python block that was run."""

    @property
    def file_name(self) -> str | None:
        """Name under which a python block is saved, if its first line is one."""
        match = FILE_NAME.match(self.body)
        return match["name"] if match else None


@dataclasses.dataclass(frozen=True)
class Command:
    """One command of a console block with what it must print."""

    line: int
    text: str
    shown: str
    status: int


def read_blocks(page: Path) -> list[Block]:
    """Returns the blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    blocks: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        before = text[end : match.start()]
        blocks += [_hidden(comment, text, end) for comment in RUN_FIRST.finditer(before)]
        reason = NOT_RUN.search(before)
        previous = blocks[-1] if blocks else None
        blocks.append(
            Block(
                language=match["language"],
                body=_dedent(match["body"], match["indent"]),
                line=text.count("\n", 0, match.start("body")) + 1,
                not_run=reason["reason"] if reason else None,
                follows_python=bool(
                    previous and previous.language == "python" and previous.not_run is None and not before.strip()
                ),
            )
        )
        end = match.end()
    return blocks


def read_commands(block: Block) -> Iterator[Command]:
    """Yields the commands of a console block; a line that ends in a backslash goes on in the next one."""
    for part in re.split(r"^(?=\$ )", block.body, flags=re.MULTILINE)[1:]:
        command = re.match(r"\$ (?P<text>(?:.*\\\n)*.*)\n?", part)
        line = block.line + block.body[: block.body.index(part)].count("\n")
        text = command["text"]
        status = EXIT.search(text)
        yield Command(
            line=line,
            text=EXIT.sub("", text),
            shown=part[command.end() :],
            status=int(status["status"]) if status else 0,
        )


def matches(shown: str, printed: str) -> bool:
    """True if `printed` is what `shown` says; ends of lines are not compared as to blanks.

    >>> matches("a ... c", "a b c"), matches("a ... c", "a b")
    (True, False)
    """
    pattern = r"[\s\S]*?".join(re.escape(part) for part in re.split(r" *\.\.\.", _trim(shown)))
    return re.fullmatch(pattern, _trim(printed)) is not None


def _hidden(comment: re.Match[str], text: str, offset: int) -> Block:
    return Block(
        language="python" if comment["in_python"] else "console",
        body=f"{comment['code']}\n" if comment["in_python"] else f"$ {comment['code']}\n",
        line=text.count("\n", 0, offset + comment.start()) + 1,
        not_run=None,
        follows_python=False,
    )


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _dedent(body: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))
