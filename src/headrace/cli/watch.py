"""`headrace watch SCRIPT`: runs a training script unchanged, and says at its end what it saw."""

from __future__ import annotations

import os
import pathlib
import shlex
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from headrace.cli.options import Format, FormatOption, IgnoreOption, OutputFile, SelectOption, parse_codes
from headrace.cli.output import write_result

__all__ = ["WatchCommand", "command"]


class WatchCommand(TyperCommand):
    """Reads headrace's options up to the script; everything from there on belongs to the script, also `-m` and `-h`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts `--` in front of the script."""
        takes_value = {
            name: not getattr(option, "is_flag", False) and name not in ctx.help_option_names
            for option in self.params
            for name in (*option.opts, *option.secondary_opts)
            if name.startswith("-")
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-m", "-c", "-", "--"):
            name, equals, _ = args[at].partition("=")
            at += 2 if takes_value.get(name, False) and not equals else 1
        if at < len(args) and args[at] != "--":
            args = [*args[:at], "--", *args[at:]]
        return super().parse_args(ctx, args)


def command(
    script: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT [ARGS]",
            help="train.py, -m package.module, or a launcher such as torchrun, with whatever belongs to it.",
            show_default=False,
        ),
    ],
    output_format: FormatOption = Format.text,
    output: OutputFile = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no verdict if nothing was found.")] = False,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit as the script does, whatever was found.")
    ] = False,
) -> None:
    """Runs a training script as Python would, looks on, and prints a verdict on stderr at its end.

    Options of headrace come before the script. Its output, its terminal, its signals and its exit status are its own;
    if it ends well and something was found, the exit status is 1.
    """
    from headrace.doctor.watch.running import run_watched
    from headrace.doctor.watch.verdict import make_report, watched_rules

    rules = watched_rules(parse_codes(select), parse_codes(ignore))
    run = run_watched(script)
    report = make_report(
        run.seen, rules, spec=_named(script), command=_typed(), ending=run.ending, could_watch=run.could_watch
    )
    is_told = not _is_other_rank() and not (quiet and report.verdict != "findings")
    if is_told or output is not None:
        _tell(report, output_format, output)
    if run.exit_status:
        raise typer.Exit(run.exit_status)
    # A rank that failed would make its launcher end the others.
    raise typer.Exit(0 if exit_zero or _is_rank() or report.exit_status != 1 else 1)


def _tell(report: Any, output_format: Format, output: pathlib.Path | None) -> None:
    from headrace.doctor.report.json import to_json
    from headrace.doctor.report.text import render
    from headrace.doctor.watch.summary import render_summary

    if output_format is Format.json:
        text = to_json(report).decode()
    else:
        is_coloured = output is None and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        text = f"{render_summary(report.target)}\n{render(report, color=is_coloured)}"
    if output is not None:
        write_result(text, output)
    else:
        sys.stderr.write(f"\n{text}" if output_format is Format.text else text)


def _is_rank() -> bool:
    """True if a launcher started this command once for each rank."""
    return int(os.environ.get("WORLD_SIZE", "1") or 1) > 1 and "RANK" in os.environ


def _is_other_rank() -> bool:
    return _is_rank() and os.environ["RANK"] != "0"


def _named(script: list[str]) -> str:
    """The script in a few words, for the report."""
    if script[0] in ("-m", "-c"):
        return " ".join(script[:2])
    inner = [word for word in script if word.endswith(".py")]
    return script[0] if script[0].endswith(".py") or not inner else f"{pathlib.Path(script[0]).name} {inner[0]}"


def _typed() -> str:
    """What was typed, as it can be typed again."""
    return shlex.join(["headrace", *sys.argv[1:]])
