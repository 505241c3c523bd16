"""`headrace diagnose TARGET`: what is wrong with this loader, at which stage, for which sample, and how to mend it."""

from __future__ import annotations

import pathlib
import shlex
import sys
from typing import Annotated

import typer

from headrace.cli.options import (
    Format,
    FormatOption,
    IgnoreOption,
    OutputFile,
    SelectOption,
    Target,
    parse_codes,
    parse_duration,
)
from headrace.cli.output import terminal_style, write_result
from headrace.cli.progress import spinner

__all__ = ["command"]


def command(
    target: Target,
    output_format: FormatOption = Format.text,
    output: OutputFile = None,
    budget_s: Annotated[
        float,
        typer.Option(
            "--budget", parser=parse_duration, metavar="DURATION", show_default=False, help="For all experiments (90s)."
        ),
    ] = 90.0,
    per_sample_s: Annotated[
        float,
        typer.Option(
            "--per-sample",
            parser=parse_duration,
            metavar="DURATION",
            show_default=False,
            help="Then a sample is stuck (10s).",
        ),
    ] = 10.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer samples: the first, the last and a few between.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Every sample.")] = False,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    contract: Annotated[
        pathlib.Path | None, typer.Option(metavar="FILE", help="Contract to hold the samples against.")
    ] = None,
    num_classes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of classes, if the data set does not say it.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="TARGET trains (folder, max_steps): is it exact after an interruption?"),
    ] = False,
) -> None:
    """Examines a loader without changing it, and names each fault with its sample.

    The loader runs in a process of its own, so a hang or a crash in it is a finding and not the end.
    """
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    from headrace.doctor.diagnose import Options, diagnose
    from headrace.doctor.report.json import to_json
    from headrace.doctor.report.text import render

    options = Options(
        budget_s=budget_s,
        per_sample_s=per_sample_s,
        quick=quick,
        full=full,
        select=parse_codes(select),
        ignore=parse_codes(ignore),
        contract=contract,
        num_classes=num_classes,
    )
    with spinner(f"examining {target}") as progress:
        if resume:
            from headrace.doctor.resume.check import check_resume

            report = check_resume(target, options, command=_typed(), progress=progress)
        else:
            report = diagnose(target, options, command=_typed(), progress=progress)
    if output_format is Format.json:
        write_result(to_json(report).decode(), output)
    else:
        width, is_coloured = terminal_style()
        write_result(render(report, width=width, color=is_coloured and output is None), output)
    raise typer.Exit(report.exit_status)


def _typed() -> str:
    """What was typed, as it can be typed again."""
    return shlex.join(["headrace", *sys.argv[1:]])
