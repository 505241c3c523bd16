"""The command line: one thin file per command; everything they do is done by the doctor, the contract or the engine.

Nothing heavy is imported before a command runs, so `headrace --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    Args:
        argv: The words after `headrace`. Default: those of this process.

    Returns:
        0 clean, 1 findings of severity error or warning, 2 wrong usage or a crash, 3 inconclusive.
    """
    from headrace.cli.app import app
    from headrace.cli.failure import explain_failure

    try:
        app(args=None if argv is None else list(argv), prog_name="headrace")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2 if end.code else 0
    except Exception as error:
        # An uncaught exception would end with Python's status 1, which here means "findings".
        sys.stderr.write(explain_failure(error))
        return 2
    return 0
