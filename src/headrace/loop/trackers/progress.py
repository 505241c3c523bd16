"""How far the run is: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import pathlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from headrace.loop.trackers.plain import numbers
from headrace.loop.trackers.required import require
from headrace.loop.trackers.tracker import RunInfo

__all__ = ["Progress"]

LAST = ("lr", "grad_norm", "epoch", "samples_per_s", "wait_share")
"""What a loop tells of itself: shown behind the values that a person looks for."""
EVALUATION = "evaluation/"
"""Values of an evaluation begin so. They are few, and a bar soon hides them."""
LEAST_BAR = 10
"""Columns that the values leave to the bar, so that one sees it."""
SPARE = 4
"""Columns by which time and rate may grow before the line is made anew."""


class Progress:
    """Shows the step and the latest values on stderr; keeps nothing.

    On a terminal a bar of tqdm, with as many of the values as there is room for, and a line above it for each evaluation. Elsewhere, where bars fill log files, plain lines: the first values, then every 30 seconds,
    and how the run ended.

    Args:
        total: Steps of the whole run. Default: what the run says, if it knows.
        every_s: Seconds between two plain lines. Default 30: some thousand lines a day.
        file: Where to. Default: stderr as it is when the run starts.
        clock: Seconds; any beginning.

    Raises:
        MissingExtra: it is a terminal, and tqdm is not installed.
    """

    name = "progress"

    def __init__(
        self,
        total: int | None = None,
        *,
        every_s: float = 30.0,
        file: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._given_total = self._total = total
        self._every_s = every_s
        self._file = file
        self._clock = clock
        self._bar: Any = None
        self._latest: dict[str, int | float] = {}
        self._step = 0
        self._run = ""
        self._told_at: float | None = None
        if self._is_terminal():
            require("tqdm", "a progress bar on a terminal")

    def start(self, run: RunInfo) -> None:
        """Shows where the run begins or goes on."""
        self._run, self._step = run.name, run.resumed_at or 0
        self._total = run.num_steps if self._given_total is None else self._given_total
        if self._is_terminal():
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._total,
                initial=self._step,
                desc=run.name,
                unit="step",
                file=self._file or sys.stderr,
                dynamic_ncols=True,
            )
        elif run.resumed_at is not None:
            self._print(f"goes on behind step {run.resumed_at:,}")

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Shows the values with the latest of others, when it is time to."""
        found = numbers(values)
        self._step = step
        if self._bar is not None and found and all(name.startswith(EVALUATION) for name in found):
            self._bar.update(step - self._bar.n)
            self._bar.write(f"{self._run}: step {step:,} | {_told(found)}", file=self._bar.fp)
            return
        self._latest |= found
        if self._bar is not None:
            self._bar.set_postfix_str(self._values(self._room()), refresh=False)
            self._bar.update(step - self._bar.n)
            return
        now = self._clock()
        if self._told_at is None or now - self._told_at >= self._every_s:
            self._told_at = now
            self._print(self._line())

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Shows nothing."""

    def finish(self, status: str) -> None:
        """Ends the bar as it is, or says how the run ended."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        else:
            self._print(f"{status}: {self._line()}")

    def state_dict(self) -> dict[str, Any]:
        """Returns nothing: there is no state."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes nothing."""

    def _is_terminal(self) -> bool:
        return (self._file or sys.stderr).isatty()

    def _line(self) -> str:
        share = f" of {self._total:,} ({self._step / self._total:.0%})" if self._total else ""
        values = self._values()
        return f"step {self._step:,}{share}" + (f" | {values}" if values else "")

    def _room(self) -> int | None:
        """Columns for values beside the bar; None: the width of the terminal is not known."""
        form = self._bar.format_dict
        if not form["ncols"]:
            return None
        without = self._bar.format_meter(
            **{**form, "n": self._step, "postfix": "-", "ncols": None, "bar_format": "{l_bar}{r_bar}"}
        )
        return int(form["ncols"]) - len(without) - LEAST_BAR - SPARE

    def _values(self, room: int | None = None) -> str:
        """The latest values, whole ones only, as many as there is room for."""
        names = sorted(self._latest, key=lambda name: LAST.index(name) if name in LAST else -1)
        texts = [_told({name: self._latest[name] for name in names[:num]}) for num in range(len(names) + 1)]
        return next(text for text in reversed(texts) if room is None or len(text) <= room or not text)

    def _print(self, text: str) -> None:
        print(f"{self._run}: {text}", file=self._file or sys.stderr, flush=True)


def _told(values: Mapping[str, int | float]) -> str:
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:.4g}" for name, value in values.items()
    )
