"""The text of a Python file as bytes, and places in it as the parser names them. Encoding and line ends stay as they are."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import io
import tokenize

__all__ = ["Place", "SourceText", "read_text"]


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Place:
    """Line from 1, column in bytes of UTF-8 from 0, as in `ast`."""

    line: int
    column: int

    @classmethod
    def start_of(cls, node: ast.expr | ast.keyword) -> Place:
        """Where a node begins."""
        return cls(node.lineno, node.col_offset)

    @classmethod
    def end_of(cls, node: ast.expr | ast.keyword) -> Place:
        """Behind its last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return cls(node.end_lineno, node.end_col_offset)


@dataclasses.dataclass(frozen=True)
class SourceText:
    """One file."""

    raw: bytes
    text: str
    """Decoded, with its own line ends."""
    encoding: str

    @property
    def digest(self) -> str:
        """Of the bytes, to see whether somebody else has changed the file."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def newline(self) -> str:
        """That of its first line."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def offset(self, place: Place) -> int:
        """Index in `text`."""
        lines = self.text.split("\n")
        before = sum(len(line) + 1 for line in lines[: place.line - 1])
        return before + len(lines[place.line - 1].encode()[: place.column].decode())

    def between(self, start: Place, end: Place) -> str:
        """The text from one place to another."""
        return self.text[self.offset(start) : self.offset(end)]

    def line(self, number: int) -> str:
        """One line without its end."""
        return self.text.split("\n")[number - 1].rstrip("\r")

    def spliced(self, changes: list[tuple[int, int, str]]) -> bytes:
        """Returns the bytes with stretches (from, to, new text) replaced; stretches do not overlap."""
        text = self.text
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        return text.encode(self.encoding)


def read_text(raw: bytes) -> SourceText | None:
    """Returns the text of a file; None: it is no Python text whose lines can be counted."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        return None
    # A carriage return alone ends a line for Python and for hardly anything else.
    if "\r" in text.replace("\r\n", ""):
        return None
    if text.encode(encoding) != raw:
        return None
    return SourceText(raw, text, encoding)
