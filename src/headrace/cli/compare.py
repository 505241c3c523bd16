"""`headrace compare TARGET_A TARGET_B`: do two loaders, or one under two settings, deliver the same data, and how fast?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Format, FormatOption, OutputFile, parse_duration
from headrace.cli.output import check_output, terminal_style, write_result
from headrace.cli.progress import spinner

if TYPE_CHECKING:
    from headrace.doctor.evidence.equivalence import Equivalence, Level

__all__ = ["command"]


def command(
    target_a: Annotated[
        str,
        typer.Argument(
            metavar="TARGET_A", help="What is right by definition: train.py:make_loader.", show_default=False
        ),
    ],
    target_b: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET_B", help="What should deliver the same. Default: TARGET_A again, see --workers."
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Workers of each, or of both: --workers 0,2. Default: as they are set."),
    ] = None,
    level: Annotated[
        str,
        typer.Option(
            metavar="LEVELS",
            help="Up to this level, or only these, with commas. E0 samples, E1 order and batches, E2 targets, E3 fixed "
            "fields, E4 random fields, E5 delivered batches.",
        ),
    ] = "E4",
    seed: Annotated[int, typer.Option(help="Seed of both, before each epoch.")] = 0,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Epochs to walk.")] = 2,
    samples: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the first N samples of each epoch.")
    ] = None,
    one_in: Annotated[
        int, typer.Option("--one-in", metavar="M", min=1, help="Compare the fields of one in M samples; ids of all.")
    ] = 1,
    speed: Annotated[
        bool,
        typer.Option("--speed", help="Unless the data differ, also time both in turn, alone, while the budget lasts."),
    ] = False,
    budget_s: Annotated[
        float,
        typer.Option(
            "--budget", parser=parse_duration, metavar="DURATION", show_default=False, help="For everything (90s)."
        ),
    ] = 90.0,
    output_format: FormatOption = Format.text,
    output: OutputFile = None,
) -> None:
    """Walks both loaders from one seed and says whether they deliver the same data; if not, which sample differs first.

    Exit status: 0 the same, 1 not the same, 2 wrong usage, 3 inconclusive. It is about the data, whatever the speeds.
    """
    numbers = _parse_workers(workers)
    if target_b is None and numbers[0] == numbers[1]:
        raise typer.BadParameter("one TARGET is compared under two settings: --workers 0,2; or name a second TARGET")
    levels = _parse_levels(level)
    if output is not None:
        check_output(output)
    from headrace.doctor.sameness.compare import Options, compare
    from headrace.doctor.speeds.compare import compare_with_speed

    options = Options(
        levels=levels, seed=seed, num_epochs=epochs, max_samples=samples, one_in=one_in, budget_s=budget_s
    )
    with spinner(f"loading {target_a}", budget_s=budget_s) as progress:
        run = compare_with_speed if speed else compare
        found = run(target_a, target_b or target_a, options, workers=numbers, progress=progress)
    write_result(_written(found, output_format), output)
    raise typer.Exit(found.exit_status)


def _written(found: Equivalence, output_format: Format) -> str:
    from headrace.doctor.sameness.text import render, verdict_line

    if output_format is Format.text:
        from headrace.doctor.speeds.text import render_speed

        width = terminal_style()[0]
        return render(found, width=width) + ("" if found.speed is None else "\n" + render_speed(found.speed, width))
    import msgspec

    told = {"schema": 1, "verdict": found.verdict, "summary": verdict_line(found), **msgspec.to_builtins(found)}
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _parse_workers(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    found = re.fullmatch(r"\s*(\d+)\s*(?:,\s*(\d+)\s*)?", text)
    if found is None:
        raise typer.BadParameter(f"--workers {text}: expected one number, or two with a comma, such as 0,2")
    return int(found[1]), int(found[2] or found[1])


def _parse_levels(text: str) -> tuple[Level, ...]:
    from headrace.doctor.evidence.equivalence import LEVELS

    named = [part for part in re.split(r"[,\s]+", text.upper()) if part]
    if not named or any(part not in LEVELS for part in named):
        raise typer.BadParameter(f"--level {text}: there are {', '.join(LEVELS)}")
    if len(named) == 1:
        return tuple(level for level in LEVELS if level <= named[0])
    return tuple(level for level in LEVELS if level in named)
