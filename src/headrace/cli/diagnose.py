"""`headrace diagnose TARGET`: what is wrong with this loader, at which stage, for which sample, and how to mend it."""

from __future__ import annotations

import pathlib
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import (
    IgnoreOption,
    OutputFile,
    ReportFormat,
    SelectOption,
    Target,
    parse_codes,
    parse_duration,
)
from headrace.cli.output import check_output, terminal_style, write_result
from headrace.cli.progress import spinner
from headrace.cli.settings import read_settings
from headrace.cli.thumbnails import check_thumbnails, take_thumbnails

if TYPE_CHECKING:
    from headrace.doctor.diagnose import Options
    from headrace.doctor.report.model import Report

__all__ = ["command"]

BUDGET_S = 90.0
"""Seconds for all experiments: what one waits for without going away."""


def _file(name: str, text: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(f"--{name}", metavar="FILE", dir_okay=False, help=text)
    return found


def command(
    target: Target,
    output_format: Annotated[
        ReportFormat,
        typer.Option(
            "--format", metavar="FORM", help="text, html: for people. json, sarif, github, junit: for other programs."
        ),
    ] = ReportFormat.text,
    output: OutputFile = None,
    html: Annotated[pathlib.Path | None, _file("html", "Also write a page to this file.")] = None,
    json: Annotated[pathlib.Path | None, _file("json", "Also write JSON to this file.")] = None,
    sarif: Annotated[pathlib.Path | None, _file("sarif", "Also write SARIF 2.1.0 to this file.")] = None,
    junit: Annotated[pathlib.Path | None, _file("junit", "Also write JUnit XML to this file.")] = None,
    thumbnails: Annotated[
        bool, typer.Option("--thumbnails", help="Small pictures of flagged samples in the page: they are data.")
    ] = False,
    budget_s: Annotated[
        float | None,
        typer.Option("--budget", parser=parse_duration, metavar="DURATION", help="For all experiments (90s)."),
    ] = None,
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
    ranks: Annotated[
        int, typer.Option(metavar="N", min=2, help="Ranks to pretend to be, if the source speaks of ranks.")
    ] = 2,
    rank_processes: Annotated[
        bool,
        typer.Option("--rank-processes", help="Run the ranks as processes of one gloo group, and compare them."),
    ] = False,
    num_classes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of classes, if the data set does not say it.")
    ] = None,
    baseline: Annotated[pathlib.Path | None, _file("baseline", "Findings that this file knows do not count.")] = None,
    write_baseline: Annotated[
        pathlib.Path | None, _file("write-baseline", "Write all findings to this file; from now on they are known.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="TARGET trains (folder, max_steps): is it exact after an interruption?"),
    ] = False,
) -> None:
    """Examines a loader without changing it, and names each fault with its sample.

    The loader runs in a process of its own, so a hang or a crash in it is a finding and not the end.
    What the table tool.headrace of pyproject.toml says holds too: select, ignore, num-classes, contract, budget, baseline.
    """
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    if thumbnails and html is None and output_format is not ReportFormat.html:
        raise typer.BadParameter("--thumbnails needs a page to stand in: --html FILE or --format html")
    from headrace.doctor.diagnose import Options, diagnose
    from headrace.doctor.suppression import apply_baseline, apply_comments, load_baseline
    from headrace.doctor.suppression import write_baseline as keep

    settings = read_settings()
    budget_s = budget_s or settings.budget or BUDGET_S
    options = Options(
        budget_s=budget_s,
        per_sample_s=per_sample_s,
        quick=quick,
        full=full,
        select=settings.select if select is None else parse_codes(select),
        ignore=settings.ignore if ignore is None else parse_codes(ignore),
        contract=contract or settings.contract,
        num_classes=num_classes or settings.num_classes,
        ranks=ranks,
        runs_ranks=rank_processes,
    )
    # What would end the command is looked at before the examination.
    files = {ReportFormat.html: html, ReportFormat.json: json, ReportFormat.sarif: sarif, ReportFormat.junit: junit}
    for file in (output, write_baseline, *files.values()):
        if file is not None:
            check_output(file)
    if thumbnails:
        check_thumbnails()
    baseline = baseline or (None if write_baseline is not None else settings.baseline)
    known = None if baseline is None else load_baseline(baseline)
    with spinner(f"loading {target}", budget_s=budget_s) as progress:
        if resume:
            from headrace.doctor.resume.check import check_resume

            report = check_resume(target, options, command=_typed(), progress=progress)
        else:
            report = apply_comments(diagnose(target, options, command=_typed(), progress=progress))
    if write_baseline is not None:
        known = keep(report, write_baseline)
        sys.stderr.write(f"headrace: wrote {write_baseline}\n")
    if known is not None:
        report = apply_baseline(report, known)
    _write(report, target, output_format, output, files, options if thumbnails else None)
    raise typer.Exit(report.exit_status)


def _write(
    report: Report,
    target: str,
    output_format: ReportFormat,
    output: pathlib.Path | None,
    files: Mapping[ReportFormat, pathlib.Path | None],
    pictured: Options | None,
) -> None:
    """Writes the report to where it was asked for, in each of the forms.

    Args:
        report: What was found.
        target: TARGET.
        output_format: Form for stdout or `output`.
        output: File in the place of stdout.
        files: Further files by form.
        pictured: Options of the examination, if pictures of the samples are wanted.
    """
    from headrace.doctor.report.formats import write_as
    from headrace.doctor.report.text import render

    pictures = []
    if pictured is not None:
        with spinner("preparing flagged samples for their pictures"):
            pictures = take_thumbnails(target, report, per_sample_s=pictured.per_sample_s, seed=pictured.seed)
    for form, file in files.items():
        if file is not None:
            write_result(write_as(form, report, pictures), file)
    if output_format is not ReportFormat.text:
        write_result(write_as(output_format, report, pictures), output)
        return
    width, is_coloured = terminal_style()
    write_result(render(report, width=width, color=is_coloured and output is None), output)


def _typed() -> str:
    """What was typed, as it can be typed again."""
    return shlex.join(["headrace", *sys.argv[1:]])
