"""The command `headrace`: the list of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import compare, contract, demo, diagnose, explain, measure, replay, rules, tune, watch

__all__ = ["app"]

app = typer.Typer(
    name="headrace",
    help="Finds what is wrong with a data loader, names the sample, and loads data exactly, repeatably, resumably.",
    no_args_is_help=True,
    add_completion=False,
    # Errors of the user's code are shown as Python shows them, without the values of variables: those are data.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 clean, 1 findings, 2 wrong usage or a crash, 3 inconclusive.",
)

app.command("diagnose")(diagnose.command)
app.command("watch", cls=watch.WatchCommand)(watch.command)
app.command("measure")(measure.command)
app.command("tune")(tune.command)
app.command("compare")(compare.command)
app.command("contract")(contract.command)
app.command("replay")(replay.command)
app.command("rules")(rules.command)
app.command("explain")(explain.command)
app.command("demo")(demo.command)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from headrace import __version__

        typer.echo(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
