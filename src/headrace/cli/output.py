"""Where results go: stdout, or a file that the user names."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

from headrace.errors import ConfigurationError

__all__ = ["check_output", "terminal_style", "write_result"]

NARROW, WIDE = 60, 120
"""Columns: below, lines break in the middle of paths; above, the eye loses the line."""


def terminal_style() -> tuple[int, bool]:
    """Returns (width in columns, whether to colour) for what goes to stdout. Without a terminal: 80 columns, plain."""
    if not sys.stdout.isatty():
        return 80, False
    width = min(max(shutil.get_terminal_size().columns, NARROW), WIDE)
    # https://no-color.org: set and not empty means no colour.
    return width, not os.environ.get("NO_COLOR")


def check_output(output: pathlib.Path) -> None:
    """Refuses a file that could not be written: before an examination of minutes, not after it.

    Raises:
        ConfigurationError: its folder is not there, or it is a folder itself.
    """
    if output.is_dir():
        raise ConfigurationError(f"cannot write {output}: it is a folder")
    if not output.parent.is_dir():
        raise ConfigurationError(f"cannot write {output}: there is no folder {output.parent}")


def write_result(text: str, output: pathlib.Path | None) -> None:
    """Writes a result to the file, or to stdout if there is none.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    text = text.rstrip("\n") + "\n"
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write {output}: {error.strerror or error}") from None
    sys.stderr.write(f"headrace: wrote {output}\n")
