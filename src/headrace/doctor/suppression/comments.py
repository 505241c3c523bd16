"""Reads `# headrace: ignore[HR205] the reason` out of Python source, and knows which lines each comment speaks for."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pathlib
import re
import tokenize

__all__ = ["Comment", "read_comments"]

_IGNORE = re.compile(r"#\s*headrace:\s*ignore\b\s*(?:\[(?P<codes>[^\]]*)\])?(?P<reason>[^#]*)", re.IGNORECASE)
_NO_CODE = {tokenize.ENCODING, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One ignore comment."""

    file: str
    line: int
    codes: tuple[str, ...]
    """As written, in upper case."""
    reason: str
    """Empty: none is given, so it is not honoured."""
    covers: range
    """Lines of the statement that it stands on, in or directly above; empty: a blank line follows it."""

    @property
    def at(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"


def read_comments(file: str) -> list[Comment]:
    """Returns the ignore comments of a file, in order; none for a file that cannot be read as Python."""
    try:
        data = pathlib.Path(file).read_bytes()
    except (OSError, ValueError):  # not there, or a name that no file can have
        return []
    found: list[Comment] = []
    waiting: list[tuple[int, re.Match[str]]] = []
    start: int | None = None  # of the statement that is being read
    last_comment = 0

    def settle(covers: range) -> None:
        found.extend(_comment(file, line, match, covers) for line, match in waiting)
        waiting.clear()

    # What stands before the place where a file stops being Python has been read all the same.
    with contextlib.suppress(SyntaxError, tokenize.TokenError, UnicodeDecodeError):
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            row = token.start[0]
            if token.type == tokenize.COMMENT:
                last_comment = row
                if match := _IGNORE.search(token.string):
                    waiting.append((row, match))
            elif token.type == tokenize.NL:
                if start is None and row != last_comment:
                    settle(range(0))
            elif token.type == tokenize.NEWLINE:
                settle(range(row if start is None else start, row + 1))
                start = None
            elif token.type not in _NO_CODE and start is None:
                start = row
    settle(range(0))
    return found


def _comment(file: str, line: int, match: re.Match[str], covers: range) -> Comment:
    codes = tuple(code.upper() for code in re.split(r"[,\s]+", match["codes"] or "") if code)
    return Comment(file=file, line=line, codes=codes, reason=match["reason"].strip(" \t-:;,."), covers=covers)
