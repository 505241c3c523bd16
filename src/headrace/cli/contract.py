"""`headrace contract TARGET`: what the samples are, as a contract; or whether they are still what a contract says."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import OutputFile, Target
from headrace.cli.output import write_result
from headrace.cli.progress import bar, spinner
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.contract import Contract
    from headrace.engine.plan import Plan

__all__ = ["command"]

NUM_CHECKED = 100
"""Samples that are checked unless all are asked for: some seconds of decoding, spread from the first to the last."""
NUM_SHOWN = 20
"""Lines of violations that fit on one screen."""


def command(
    target: Target,
    check: Annotated[
        pathlib.Path | None, typer.Option("--check", metavar="FILE", help="Contract to hold the samples against.")
    ] = None,
    output: OutputFile = None,
    full: Annotated[bool, typer.Option("--full", help="Check every sample, not a spread of 100.")] = False,
) -> None:
    """Infers the contract of a data set, or checks the samples against one and shows what changed.

    The samples are loaded in this process. Exit status: 0 fine, 1 samples break the contract.
    """
    from headrace.contract import Contract
    from headrace.doctor.subject import Subject
    from headrace.doctor.subject.target import load_target
    from headrace.engine.plan import Plan

    # The file is read first: a misspelt key should not have to wait for a large data set.
    agreed = None if check is None else Contract.load(check)
    plan = Plan.of(Subject(load_target(target)).dataset)
    if agreed is None:
        write_result(_infer(plan).to_toml(), output)
        return
    rows = _spread(len(plan), is_full=full)
    violations = [breach.message for breach in agreed.check_size(len(plan))]
    violations += [text for index in bar(rows, "checking", len(rows)) for text in _check(plan, index, agreed)]
    checked = f"{len(rows):,} of {len(plan):,} samples checked against {check}"
    write_result(
        "\n".join([f"{checked}: {_counted(violations)}", *_listed(violations), _changes(plan, agreed)]), output
    )
    raise typer.Exit(1 if violations else 0)


def _infer(plan: Plan) -> Contract:
    """Infers a contract; a sample that fails ends the command, with the traceback of the user's code."""
    from headrace.contract import Contract
    from headrace.doctor.stacks import user_traceback

    try:
        with spinner("looking at samples"):
            return Contract.infer(plan)
    except HeadraceError:
        raise
    except Exception as error:
        sys.stderr.write(user_traceback(error) + "\n")
        raise typer.Exit(2) from None


def _spread(num_samples: int, *, is_full: bool) -> list[int]:
    """Row numbers from the first to the last, evenly."""
    if is_full or num_samples <= NUM_CHECKED:
        return list(range(num_samples))
    return [round(k * (num_samples - 1) / (NUM_CHECKED - 1)) for k in range(NUM_CHECKED)]


def _check(plan: Plan, index: int, agreed: Contract) -> Iterator[str]:
    """Yields what is wrong with one sample; one that cannot be loaded breaks every contract."""
    sample_id = plan.sample_id(index)
    try:
        sample = plan.sample(index)
    except Exception as error:
        yield f"sample {sample_id}: cannot be loaded: {_first_line(error)}"
        return
    yield from (breach.message for breach in agreed.check_sample(sample, sample_id))


def _counted(violations: list[str]) -> str:
    return f"{len(violations):,} violation{'s' * (len(violations) != 1)}" if violations else "all as agreed"


def _listed(violations: list[str]) -> Iterator[str]:
    yield from (f"  {violation}" for violation in violations[:NUM_SHOWN])
    if len(violations) > NUM_SHOWN:
        yield f"  ... and {len(violations) - NUM_SHOWN:,} more"


def _changes(plan: Plan, agreed: Contract) -> str:
    """What would be inferred today, as a diff against what was agreed."""
    from headrace.contract import Contract

    try:
        changes = agreed.diff(Contract.infer(plan))
    except Exception as error:  # the violations above say the same of more samples
        return f"nothing can be inferred today: {_first_line(error)}"
    return f"\nwhat the data set would infer today (+) and the contract says (-):\n{changes}" if changes else ""


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]
