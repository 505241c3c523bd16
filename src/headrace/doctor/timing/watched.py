"""The training step as `headrace watch` saw it: how long a loop worked with a batch before it asked for the next."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

from headrace.doctor.report.json import from_json
from headrace.errors import ConfigurationError

__all__ = ["WatchedStep", "watched_step"]

_COMMAND = "headrace watch --format json --output watched.json train.py"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WatchedStep:
    """What a report says of it."""

    step_s: float
    """Median seconds of the loop's own time with a batch. Workers that took cores from it meanwhile are in it."""
    script: str
    """What was watched."""


def watched_step(path: str) -> WatchedStep:
    """Returns the step of the main loop of a report that `headrace watch --format json` wrote.

    Raises:
        ConfigurationError: it cannot be read, is no report of a watched script, or saw no loop, or too little of one.
    """
    try:
        report = from_json(pathlib.Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}", do=_COMMAND) from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error.what}", why=error.why, do=error.do or _COMMAND) from error
    seen: Any = report.target.get("watch")
    if not isinstance(seen, dict):
        raise ConfigurationError(f"{path} is a report of {report.command!r}, which watched no script", do=_COMMAND)
    loop = seen.get("loop")
    if loop is None:
        raise ConfigurationError(f"{path}: in {report.target.get('spec')} no loop over a loader was seen")
    if not loop["is_long_enough"]:
        raise ConfigurationError(
            f"{path}: only {loop['num_batches']:,} steps were seen in {loop['loop_s']:.1f} s: too few to tell how long one takes",
            do="watch a longer run",
        )
    return WatchedStep(step_s=loop["median_step_s"], script=str(report.target.get("spec")))
