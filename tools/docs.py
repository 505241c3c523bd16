"""Writes what the catalogue says into docs/: a page per rule, their index, and the JSON schema of the report.

python tools/docs.py            writes what has changed
python tools/docs.py --check    writes nothing; exit status 1 if a file is stale, and names it
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from headrace.contract import view
from headrace.doctor import catalogue, evidence
from headrace.doctor.report.json import schema
from headrace.doctor.rule import Example, Fix, Rule

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDTH = 120
"""Columns of made-up evidence in an example."""


def main(arguments: list[str]) -> int:
    """Writes or checks the generated files; returns the exit status."""
    if unknown := [argument for argument in arguments if argument != "--check"]:
        print(f"unknown argument {unknown[0]!r}; the only one is --check", file=sys.stderr)
        return 2
    stale = list(changed(ROOT / "docs"))
    for path, text in stale:
        print(f"{'stale' if '--check' in arguments else 'wrote'}: {path.relative_to(ROOT)}")
        if "--check" in arguments:
            continue
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


def changed(docs: pathlib.Path) -> Iterator[tuple[pathlib.Path, str | None]]:
    """Yields each file below `docs` that differs, with its right text; None for a page that has lost its rule."""
    wanted = {docs / name: text for name, text in pages().items()}
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text
    for path in sorted((docs / "rules").glob("HR*.md")):
        if path not in wanted:
            yield path, None


def pages() -> dict[str, str]:
    """Returns every generated file: name below docs/ -> text."""
    rules = catalogue.rules()
    return {
        **{f"rules/{rule.code}.md": rule_page(rule) for rule in rules},
        "rules/index.md": index_page(rules),
        "report.schema.json": json.dumps(schema(), indent=2) + "\n",
    }


def index_page(rules: tuple[Rule, ...]) -> str:
    """The table of all rules."""
    rows = "\n".join(f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.summary} |" for rule in rules)
    return (
        "# Rules\n\n"
        "Codes follow the data: 1 source and read, 2 transform and randomness, 3 contract and collate, 4 transfer,\n"
        "5 workers, 6 order and sharding, 7 memory, 8 speed, 9 training loop. A code is never used again.\n"
        "`headrace explain CODE` prints the same in a terminal.\n\n"
        f"| code | name | looks for |\n|---|---|---|\n{rows}\n"
    )


def rule_page(rule: Rule) -> str:
    """The page of one rule."""
    source = f"../../src/headrace/doctor/rules/{type(rule).__module__.rpartition('.')[2]}.py"
    parts = [
        f"# {rule.code} {rule.name}",
        rule.summary,
        f"*{rule.status}, since {rule.since}. [Source]({source}).*",
        f"## Why it hurts\n\n{inspect.cleandoc(rule.rationale)}",
        f"## What is run to see it\n\n{inspect.cleandoc(rule.experiment)}",
        f"## How to mend it\n\n{_fix(rule.fix)}",
        f"## When it speaks\n\n{_example(rule, rule.sick[0])}",
        _titles("It also speaks for:", rule.sick[1:]),
        f"## When it is silent\n\n{_example(rule, rule.healthy[0])}",
        _titles("It is also silent for:", rule.healthy[1:]),
        "## Evidence it needs\n\n" + "\n\n".join(evidence_table(record) for record in records_of(rule.needs)),
        "## Met in\n\n" + "\n".join(f"- {reference}" for reference in rule.references),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _fix(fix: Fix) -> str:
    text = f"{fix.text}\n\nWhat that may change: {fix.safety}."
    if fix.snippet is None:
        return text
    language = "console" if fix.snippet.startswith("$ ") else "python"
    return f"{text}\n\n```{language}\n{fix.snippet}\n```"


def _example(rule: Rule, example: Example) -> str:
    says = f"\n\nIt says: *{example.message}.*" if example.message else ""
    records = "\n".join(
        f"{name} = {literal(record)}" for name, record in zip(_parameters(rule), example.evidence, strict=True)
    )
    return f"{example.title}:{says}\n\n```python\n{records}\n```"


def _titles(lead: str, examples: tuple[Example, ...]) -> str:
    lines = [f"- {example.title}" + (f": *{example.message}*" if example.message else "") for example in examples]
    return f"{lead}\n\n" + "\n".join(lines) if lines else ""


def _parameters(rule: Rule) -> list[str]:
    """The names under which `judge` takes its evidence."""
    return list(inspect.signature(rule.judge).parameters)


def literal(value: Any, indent: int = 0) -> str:
    """Writes a record as the Python that makes it, without the fields that have their default value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = [
            (field.name, getattr(value, field.name))
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != field.default
        ]
        parts = [f"{name}={literal(part, indent + 4)}" for name, part in given]
        return _bracketed(f"{type(value).__name__}(", parts, ")", indent)
    if isinstance(value, tuple):
        return _bracketed("(", [literal(part, indent + 4) for part in value], ",)" if len(value) == 1 else ")", indent)
    return repr(value)


def _bracketed(opening: str, parts: list[str], closing: str, indent: int) -> str:
    line = f"{opening}{', '.join(parts)}{closing}"
    if "\n" not in line and len(line) + indent <= WIDTH:
        return line
    margin = " " * (indent + 4)
    inner = "".join(f"{margin}{part},\n" for part in parts)
    return f"{opening}\n{inner}{' ' * indent}{closing.lstrip(',')}"


def evidence_table(record: type[Any]) -> str:
    """The fields of one record, with the words of the docstrings below them."""
    tree = _class_tree(record)
    rows = "\n".join(f"| `{name}` | `{annotation}` | {text} |" for name, annotation, text in _fields(tree))
    words = " ".join((ast.get_docstring(tree) or "").split())
    return f"`{record.__name__}`: {words}\n\n| field | type | meaning |\n|---|---|---|\n{rows}"


def records_of(kinds: Iterable[type[Any]]) -> list[type[Any]]:
    """The kinds of evidence and the records that their fields hold, each once, outermost first."""
    known = known_records()
    found = list(kinds)
    for record in found:
        for field in dataclasses.fields(record):
            inner = [known[word] for word in re.findall(r"\w+", str(field.type)) if word in known]
            found += [kind for kind in inner if isinstance(kind, type) and kind not in found]
    return found


def known_records() -> dict[str, type[Any]]:
    """Every public record that evidence is made of, by name."""
    topics = [
        importlib.import_module(f"{evidence.__name__}.{found.name}")
        for found in pkgutil.iter_modules(evidence.__path__)
    ]
    return {name: getattr(module, name) for module in (*topics, view) for name in module.__all__}


def _class_tree(record: type[Any]) -> ast.ClassDef:
    tree = _module_tree(inspect.getsourcefile(record) or "")
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == record.__name__)


@functools.cache
def _module_tree(path: str) -> ast.Module:
    return ast.parse(pathlib.Path(path).read_text(encoding="utf-8"))


def _fields(tree: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """Yields (name, type, docstring below it) for each field of a record, fit for a table."""
    for place, node in enumerate(tree.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            after = tree.body[place + 1] if place + 1 < len(tree.body) else None
            text = ast.literal_eval(after.value) if isinstance(after, ast.Expr) else ""
            words = " ".join(text.split()).replace("|", "\\|")
            yield node.target.id, ast.unparse(node.annotation).replace("|", "\\|"), words


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
