"""Finds the rules: each module in `rules/` defines exactly one, and its file is named after the rule's code and name.

There is no list to keep. A rule that is not well formed is refused here, at the first look, not when it would judge.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable
from types import ModuleType

from headrace.doctor import rules as _shipped
from headrace.doctor.evidence import Evidence
from headrace.doctor.rule import Rule
from headrace.errors import ConfigurationError, nearest

__all__ = ["load", "rule", "rules"]

CODE = re.compile(r"HR\d{3}")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Returns the rules that are asked for, sorted by code.

    Args:
        select: Codes or beginnings of codes, in any case: `HR301`, `hr3`. Empty: all rules.
        ignore: The same, for rules to leave out; wins over `select`.

    Raises:
        ConfigurationError: no rule has such a code; names the nearest.
    """
    wanted, unwanted = _prefixes(select, "select"), _prefixes(ignore, "ignore")
    return tuple(
        found
        for found in _all()
        if (not wanted or found.code.startswith(wanted)) and not (unwanted and found.code.startswith(unwanted))
    )


def rule(code_or_name: str) -> Rule:
    """Returns the one rule with this code (in any case) or name.

    Raises:
        ConfigurationError: there is none; names the nearest.
    """
    asked = code_or_name.strip()
    for found in _all():
        if asked.upper() == found.code or asked.lower() == found.name:
            return found
    known = [text for found in _all() for text in (found.code, found.name)]
    guess = nearest(asked.upper(), known) or nearest(asked.lower(), known)
    raise ConfigurationError(f"no rule is called {code_or_name!r}{guess}", do="headrace rules    lists them all")


def load(package: ModuleType) -> tuple[Rule, ...]:
    """Imports every module of a package of rules and returns its rules, sorted by code.

    Raises:
        TypeError: a module does not hold exactly one well-formed rule, or two rules share a code or a name.
    """
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    loaded = [_rule_of(importlib.import_module(f"{package.__name__}.{name}")) for name in names]
    for attribute in ("code", "name"):
        values = [getattr(found, attribute) for found in loaded]
        if repeated := sorted({value for value in values if values.count(value) > 1}):
            raise TypeError(f"two rules share the {attribute} {repeated[0]}; codes and names are never reused")
    return tuple(sorted(loaded, key=lambda found: found.code))


@functools.cache
def _all() -> tuple[Rule, ...]:
    return load(_shipped)


def _rule_of(module: ModuleType) -> Rule:
    """The one rule that a module defines, checked."""
    kinds = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__
    ]
    if len(kinds) != 1:
        raise TypeError(f"{module.__name__} defines {len(kinds)} rules, expected exactly one")
    kind = kinds[0]
    if fault := _fault_of(kind, module.__name__.rpartition(".")[2]):
        raise TypeError(f"{module.__name__}.{kind.__name__}: {fault}")
    return kind()


def _fault_of(kind: type[Rule], module_name: str) -> str | None:
    """What is wrong with the form of a rule; None if nothing is."""
    needed = ("code", "name", "summary", "rationale", "experiment", "needs", "fix", "sick", "healthy")
    if missing := [field for field in needed if not getattr(kind, field, None)]:
        return f"{missing[0]} is missing or empty"
    if not CODE.fullmatch(kind.code):
        return f"code {kind.code!r} is not HR and three digits"
    if not NAME.fullmatch(kind.name):
        return f"name {kind.name!r} is not kebab-case"
    if module_name != (expected := f"{kind.code.lower()}_{kind.name.replace('-', '_')}"):
        return f"the file must be called {expected}.py"
    if not all(issubclass(need, Evidence) for need in kind.needs):
        return "needs must name kinds of Evidence"
    for example in (*kind.sick, *kind.healthy):
        if tuple(type(record) for record in example.evidence) != kind.needs:
            return f"example {example.title!r} does not hold one record per entry of needs, in that order"
    return None


def _prefixes(codes: Iterable[str], option: str) -> tuple[str, ...]:
    """Beginnings of codes in upper case, each checked to match at least one rule."""
    known = [found.code for found in _all()]
    asked = tuple(code.strip().upper() for code in codes)
    for code in asked:
        if not code or not any(other.startswith(code) for other in known):
            raise ConfigurationError(
                f"{option}: no rule has the code {code!r}{nearest(code, known)}",
                do="headrace rules    lists them all",
            )
    return asked
