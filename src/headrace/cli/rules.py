"""`headrace rules`: the faults that headrace knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.cli.options import Format, FormatOption, IgnoreOption, OutputFile, SelectOption, parse_codes
from headrace.cli.output import terminal_style, write_result

if TYPE_CHECKING:
    from headrace.doctor.rule import Rule

__all__ = ["command"]


def command(
    output_format: FormatOption = Format.text,
    output: OutputFile = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
) -> None:
    """Lists the rules: code, name, and what each looks for."""
    from headrace.doctor import catalogue

    rules = catalogue.rules(parse_codes(select), parse_codes(ignore))
    if output_format is Format.json:
        write_result(_as_json(rules), output)
        return
    width, is_coloured = terminal_style()
    write_result(_as_table(rules, width, is_coloured=is_coloured and output is None), output)


def _as_json(rules: Sequence[Rule]) -> str:
    rows = [
        {"code": rule.code, "name": rule.name, "status": rule.status, "since": rule.since, "summary": rule.summary}
        for rule in rules
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _as_table(rules: Sequence[Rule], width: int, *, is_coloured: bool) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table("Code", "Name", "Looks for", box=box.SIMPLE_HEAD, width=width, pad_edge=False)
    for rule in rules:
        table.add_row(rule.code, rule.name, rule.summary)
    console = Console(width=width, no_color=not is_coloured, force_terminal=is_coloured)
    with console.capture() as captured:
        console.print(table)
        console.print("headrace explain CODE tells the whole story of one.")
    return captured.get()
