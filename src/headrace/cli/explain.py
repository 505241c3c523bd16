"""`headrace explain CODE`: the whole story of one rule."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.output import terminal_style, write_result

if TYPE_CHECKING:
    from headrace.doctor.rule import Example, Rule

__all__ = ["command", "explain"]


def command(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="A code or a name: HR301, shape-mismatch.", show_default=False)
    ],
) -> None:
    """Explains one rule: why it hurts, what is run to see it, how to mend it, and examples."""
    from headrace.doctor import catalogue

    width, _ = terminal_style()
    write_result(explain(catalogue.rule(code), width), None)


def explain(rule: Rule, width: int) -> str:
    """Returns the rule's own words, wrapped to `width` columns."""
    fix = f"{rule.fix.text}\n\nSafety: {rule.fix.safety}."
    parts = [
        f"{rule.code} {rule.name}  ({rule.status}, since {rule.since})",
        _wrap(rule.summary, width),
        _section("Why it hurts", rule.rationale, width),
        _section("What is run to see it", rule.experiment, width),
        _section("How to mend it", fix, width),
        textwrap.indent(rule.fix.snippet, "      ") if rule.fix.snippet else "",
        "What it says\n" + "\n".join(_verdict(example, width) for example in rule.sick),
        "When it is silent\n" + "\n".join(_verdict(example, width) for example in rule.healthy),
        "Met in\n" + "\n".join(f"  {reference}" for reference in rule.references) if rule.references else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title: str, text: str, width: int) -> str:
    return f"{title}\n{textwrap.indent(_wrap(text, width - 2), '  ')}"


def _wrap(text: str, width: int) -> str:
    """Wraps each paragraph; those that are code, a table or a list stay as they are."""
    paragraphs = textwrap.dedent(text).strip().split("\n\n")
    return "\n\n".join(
        paragraph if paragraph.startswith((" ", "|", "- ", "```")) else _fill(" ".join(paragraph.split()), width)
        for paragraph in paragraphs
    )


def _verdict(example: Example, width: int) -> str:
    text = example.title if example.message is None else f"{example.title}: {example.message}"
    return textwrap.indent(_fill(text, width - 4), "    ").replace("    ", "  - ", 1)


def _fill(text: str, width: int) -> str:
    """Wraps at spaces only: a path or a name broken at a hyphen cannot be searched for or pasted."""
    return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)
