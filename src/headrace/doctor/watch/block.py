"""`with hr.watch(): ...`: watches what happens inside a block of a script or notebook, in this process."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from headrace.doctor.report.model import Report
from headrace.doctor.watch import session
from headrace.errors import ConfigurationError

__all__ = ["watch"]

_open: watch | None = None
"""The block that is open: hooks are set once in a process."""


class watch:  # noqa: N801 - used as a verb: `with hr.watch():`
    """Watches the training loop inside a `with` block, and prints a verdict on stderr at its end.

        with hr.watch(model, optimizer) as seen:
            train()
        seen.report.findings

    Loaders, models and optimizers that were made before the block are seen when they are used in it.

    Args:
        model: The model that is trained, if it was made before the block.
        optimizer: Its optimizer, likewise.
        select: Codes, or beginnings of codes, of the only rules to judge; empty = all.
        ignore: Codes, or beginnings of codes, of rules to leave out.
        quiet: True to print nothing.

    Raises:
        ConfigurationError: a block is open already, or `headrace watch` watches the whole script.
    """

    def __init__(
        self,
        model: Any = None,
        optimizer: Any = None,
        *,
        select: tuple[str, ...] = (),
        ignore: tuple[str, ...] = (),
        quiet: bool = False,
    ) -> None:
        from headrace.doctor.watch.verdict import watched_rules

        self._known = tuple(one for one in (model, optimizer) if one is not None)
        self._rules = watched_rules(select, ignore)
        self._quiet = quiet
        self._session: session.Session | None = None
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """The verdict, once the block has ended."""
        if self._report is None:
            raise ConfigurationError("hr.watch: the report is there after the end of the with block")
        return self._report

    def __enter__(self) -> Self:
        global _open
        if session.current is not None:
            raise ConfigurationError(
                "hr.watch: this script is watched as a whole by `headrace watch`",
                do="python train.py    or take hr.watch out",
            )
        if _open is not None:
            raise ConfigurationError(
                "hr.watch: a block is open already",
                why="one process has one set of hooks" if _open is not self else "it cannot be opened twice",
                do="put one block around everything that should be watched",
            )
        if self._report is not None:
            raise ConfigurationError("hr.watch: this block has ended", do="with hr.watch() as seen:    makes a new one")
        self._session = session.Session()
        self._session.begin(self._known)
        _open = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _open
        assert self._session is not None, "entered"
        from headrace.doctor.report.text import render
        from headrace.doctor.watch.summary import render_summary
        from headrace.doctor.watch.verdict import make_report

        _open = None
        outcome = "finished" if kind is None else "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
        seen = self._session.seen(outcome)
        self._session.end()
        self._report = make_report([seen], self._rules, spec="this block", command="hr.watch", ending=outcome)
        if not self._quiet:
            sys.stderr.write(f"{render_summary(self._report.target)}\n{render(self._report)}")
