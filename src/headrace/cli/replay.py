"""`headrace replay TARGET ID`: loads one sample here, as the loader would, and shows what comes out or what goes wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Target
from headrace.cli.output import terminal_style

if TYPE_CHECKING:
    from headrace.contract.view import ValueView

__all__ = ["command"]


def command(
    target: Target,
    sample_id: Annotated[
        str, typer.Argument(metavar="ID", help="Which sample, as reports name it.", show_default=False)
    ],
    epoch: Annotated[int, typer.Option(min=0, help="Random stages draw as they do in this epoch.")] = 0,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the run to replay. Default: the loader's own, 0 for a data set.")
    ] = None,
) -> None:
    """Loads one sample in this process and prints its fields, or the whole traceback if it fails.

    Exit status: 0 it came out, 1 it failed, 2 there is no such target or sample.
    """
    from headrace.contract.view import view_sample
    from headrace.doctor.stacks import user_traceback
    from headrace.doctor.subject import Subject
    from headrace.doctor.subject.target import load_target
    from headrace.engine.loader import DataLoader
    from headrace.engine.plan import Plan

    found = load_target(target)
    loader: DataLoader[Any]
    if isinstance(found, DataLoader):
        loader = found
        loader.seed = loader.seed if seed is None else seed
    else:
        loader = DataLoader(Subject(found).dataset, seed=seed or 0)
    plan = Plan.of(loader.dataset)
    index = plan.index_of(sample_id)
    named = plan.sample_id(index)
    try:
        sample = loader.replay(named, epoch)
    except Exception as error:
        sys.stderr.write(user_traceback(error) + "\n")
        raise typer.Exit(1) from None
    print(f"sample {named} (index {index:,}), epoch {epoch}, seed {loader.seed}")
    _print_fields(view_sample(sample))


def _print_fields(views: tuple[ValueView, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("field", "kind", "dtype", "shape", "values", box=None, pad_edge=False)
    for view in views:
        shape = "" if view.shape is None else str(list(view.shape))
        table.add_row(view.field, view.kind, view.dtype or "", shape, _values(view))
    width, is_coloured = terminal_style()
    Console(width=width, no_color=not is_coloured, highlight=False).print(table)


def _values(view: ValueView) -> str:
    """Range and oddities of the values; never the values of text."""
    parts = []
    if view.minimum is not None and view.maximum is not None:
        is_one = view.minimum == view.maximum
        parts.append(f"{view.minimum:g}" if is_one else f"{view.minimum:g} to {view.maximum:g}")
    parts += [f"{count:,} {word}" for count, word in ((view.num_nan, "NaN"), (view.num_inf, "infinite")) if count]
    return ", ".join(parts)
