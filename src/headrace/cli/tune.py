"""`headrace tune TARGET`: the simplest setting that meets the need and is proven to deliver the same data."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Format, FormatOption, OutputFile, Target, parse_duration
from headrace.cli.output import check_output, terminal_style, write_result
from headrace.cli.progress import spinner

if TYPE_CHECKING:
    from headrace.doctor.tuning.model import Tuning

__all__ = ["command"]

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def _parse_rate(text: str | float) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:/\s*s)?\s*", str(text))
    if found is None or not float(found[1]):
        raise typer.BadParameter(f"{text!r} is no rate; write 800/s: samples per second")
    return float(found[1])


def _parse_share(text: str | float) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", str(text))
    if found is None:
        raise typer.BadParameter(f"{text!r} is no share; write 25%, or 0.25")
    return float(found[1]) / (100 if found[2] else 1)


def _parse_bytes(text: str | float) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(text).lower())
    if found is None or found[2] not in UNITS or not float(found[1]):
        raise typer.BadParameter(f"{text!r} is no amount of memory; write 4GiB, 500MB")
    return int(float(found[1]) * UNITS[found[2]])


def command(
    target: Target,
    need: Annotated[
        float | None,
        typer.Option(
            parser=_parse_rate, metavar="RATE", show_default=False, help="What it has to supply: 800/s, in samples."
        ),
    ] = None,
    step_ms: Annotated[
        float | None,
        typer.Option("--step-ms", metavar="N", show_default=False, help="Milliseconds of an emulated training step."),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:FUNCTION", show_default=False, help="The training step: train.py:train_step takes a batch."
        ),
    ] = None,
    watched: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            show_default=False,
            help="Instead of a training step: as long as the loop of a script took with a batch, from a report of headrace "
            "watch --format json.",
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            parser=_parse_share, metavar="SHARE", show_default=False, help="Supply beyond the training step (25%)."
        ),
    ] = 0.25,
    budget_s: Annotated[
        float,
        typer.Option(
            "--budget", parser=parse_duration, metavar="DURATION", show_default=False, help="For everything (5m)."
        ),
    ] = 300.0,
    memory: Annotated[
        int | None,
        typer.Option(
            parser=_parse_bytes,
            metavar="SIZE",
            show_default=False,
            help="Memory it may take (half of what is free): 4GiB.",
        ),
    ] = None,
    workers_max: Annotated[
        int | None, typer.Option("--workers-max", metavar="N", min=0, show_default=False, help="Most workers to try.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the loader and of the order of rounds.")] = 0,
    apply: Annotated[bool, typer.Option("--apply", help="Write the change into the file, after asking.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --apply: do not ask.")] = False,
    output_format: FormatOption = Format.text,
    output: OutputFile = None,
) -> None:
    """Finds the simplest setting that meets the need, proves that it delivers the same data, and shows the change.

    Exit status: 0 keep what you have, or applied, 1 there is a better setting, 2 wrong usage, 3 inconclusive.
    """
    if yes and not apply:
        raise typer.BadParameter("--yes answers the question of --apply, which is not given")
    if apply and not yes and not sys.stdin.isatty():
        raise typer.BadParameter("--apply asks before it writes, and there is nobody to ask: --apply --yes")
    if output is not None:
        check_output(output)
    from headrace.doctor.tuning.tune import Options, tune

    options = Options(
        need_per_s=need,
        step_ms=step_ms,
        train=train,
        watched=None if watched is None else str(watched),
        margin=margin,
        budget_s=budget_s,
        memory_bytes=memory,
        workers_max=workers_max,
        seed=seed,
    )
    with spinner(f"loading {target}", budget_s=budget_s) as progress:
        found = tune(target, options, progress=progress, command=_typed())
    if apply and found.choice.outcome == "change":
        found = _applied(found, is_asked=not yes)
    write_result(_written(found, output_format), output)
    raise typer.Exit(found.exit_status)


def _applied(found: Tuning, *, is_asked: bool) -> Tuning:
    """Shows the diff, asks, and writes; what headrace cannot write is left to the reader of the result."""
    from headrace.doctor.tuning.editing import apply
    from headrace.doctor.tuning.text import verdict_line

    if found.edit is None or found.edit.refused:
        return found
    # To stderr: stdout holds the result and nothing else.
    sys.stderr.write(f"{verdict_line(found)}\n\n{found.edit.diff}\n")
    if is_asked and not typer.confirm(f"Change {found.edit.where}?", err=True):
        return found
    return apply(found)


def _written(found: Tuning, output_format: Format) -> str:
    from headrace.doctor.tuning.text import render, verdict_line

    if output_format is Format.text:
        return render(found, width=terminal_style()[0])
    import msgspec

    told = {"verdict": found.choice.outcome, "summary": verdict_line(found), **msgspec.to_builtins(found)}
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _typed() -> str:
    """What was typed, as it can be typed again."""
    return shlex.join(["headrace", *sys.argv[1:]])
