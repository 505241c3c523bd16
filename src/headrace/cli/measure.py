"""`headrace measure TARGET`: what does a loop wait for, what would help, and by how much?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Format, FormatOption, OutputFile, Target, parse_duration
from headrace.cli.output import check_output, terminal_style, write_result
from headrace.cli.progress import spinner

if TYPE_CHECKING:
    from headrace.doctor.measuring.against import Against
    from headrace.doctor.measuring.model import Measurement

__all__ = ["command"]


def command(
    target: Target,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="STEP",
            help="The training step: train.py:train_step, a function that takes a batch, or one that takes nothing and "
            "returns such a function.",
        ),
    ] = None,
    step_ms: Annotated[
        float | None,
        typer.Option(
            "--step-ms", metavar="N", help="Instead of a training step: N milliseconds of computing per batch."
        ),
    ] = None,
    watched: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Instead of a training step: as long as the loop of a script took with a batch, from a report of headrace "
            "watch --format json.",
        ),
    ] = None,
    asleep: Annotated[
        bool, typer.Option("--asleep", help="With --step-ms or --watched: sleep instead, as while a device computes.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Measure with N workers. Default: as the loader is set.")
    ] = None,
    budget_s: Annotated[
        float,
        typer.Option(
            "--budget", parser=parse_duration, metavar="DURATION", show_default=False, help="For everything (60s)."
        ),
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of each epoch, and of the order of rounds.")] = 0,
    cold: Annotated[
        bool, typer.Option("--cold", help="Files leave the page cache before each round. Default: they are read once.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write a time line of one round, for Perfetto or Chrome."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Also write a page with plots to this file.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An earlier report (--format json) to hold this one against. Exit status then: 0 not worse, 1 worse, 3 not "
            "told.",
        ),
    ] = None,
    output_format: FormatOption = Format.text,
    output: OutputFile = None,
) -> None:
    """Measures a loader alone or under a training step, and says what limits it and what would help.

    Exit status: 0 healthy, 1 limited, 2 wrong usage or a crash, 3 inconclusive. With --baseline: 0 the same or better, 1
    worse, 2 as before, 3 not told.
    """
    if sum(way is not None for way in (train, step_ms, watched)) > 1:
        raise typer.BadParameter(
            "--train, --step-ms and --watched exclude each other: one training step, real or emulated"
        )
    if asleep and step_ms is None and watched is None:
        raise typer.BadParameter("--asleep says how --step-ms passes the time; give that as well, or --watched")
    if step_ms is not None and step_ms <= 0:
        raise typer.BadParameter(f"--step-ms {step_ms:g}: more than 0 milliseconds")
    for path in (output, trace, html):
        if path is not None:
            check_output(path)
    if html is not None:
        from headrace.doctor.report.templating import check_templates

        check_templates()
    from headrace.doctor.measuring.against import compare_with, load
    from headrace.doctor.measuring.measure import Options, measure
    from headrace.doctor.timing.consumer import chosen

    then = None if baseline is None else load(baseline)
    seen = None if watched is None else str(watched)
    with chosen(train=train, step_ms=step_ms, watched=seen, is_busy=not asleep) as consumer:
        options = Options(
            consumer=consumer,
            workers=workers,
            budget_s=budget_s,
            seed=seed,
            is_cold=cold,
            command=" ".join(["headrace", *sys.argv[1:]]),
            trace=None if trace is None else str(trace),
        )
        with spinner(f"loading {target}", budget_s=budget_s) as progress:
            found = measure(target, options, progress=progress)
    against = None if then is None else compare_with(then, found)
    write_result(_written(found, against, output_format), output)
    if html is not None:
        from headrace.doctor.measuring.page.render import render_page

        write_result(render_page(found, against), html)
    raise typer.Exit(found.conclusion.exit_status if against is None else against.exit_status)


def _written(found: Measurement, against: Against | None, output_format: Format) -> str:
    if output_format is Format.text:
        from headrace.doctor.measuring.text import render

        width, color = terminal_style()
        return render(found, width=width, color=color, against=against)
    from headrace.doctor.measuring.json import to_json

    return to_json(found, against)
