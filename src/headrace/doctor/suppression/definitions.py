"""Finds, in source that is read and never executed, where the TARGET and the class of its data set are defined."""

from __future__ import annotations

import ast
import dataclasses
import importlib.machinery
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.doctor.stacks import is_user_code

__all__ = ["Definition", "definitions"]


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """Where a function, a class or a module's variable is defined."""

    file: str
    header: range
    """Lines from the first decorator to the colon; of a variable: the whole statement."""


def definitions(target: dict[str, Any]) -> list[Definition]:
    """Returns where the TARGET of a report and the classes of its data set, and of those inside it, are defined.

    What is not found is left out: an installed library, an object without a name.
    """
    place, _, attribute = str(target.get("spec") or "").rpartition(":")
    found = []
    file = place if place.endswith(".py") else _file_of_module(place, [])
    if file is not None and not os.path.isfile(file):  # noqa: PTH113 - this one takes names that no file can have
        file = None
    if file is not None:
        found.append(_find(file, attribute.split(".")))
    found += [_find_class(str(name), file) for name in (target.get("dataset") or "", *(target.get("inside") or ()))]
    return [one for one in found if one is not None]


def _find_class(name: str, target_file: str | None) -> Definition | None:
    """The class `module.Class`, whose module may be the file of TARGET."""
    parts = name.split(".")
    folder = [] if target_file is None else [str(pathlib.Path(target_file).parent)]
    for size in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:size])
        if target_file is not None and module.removeprefix("target_") == pathlib.Path(target_file).stem:
            file: str | None = target_file
        else:
            file = _file_of_module(module, folder)
        if file is not None and is_user_code(str(pathlib.Path(file).resolve())):
            return _find(file, parts[size:])
    return None


def _file_of_module(name: str, folders: Sequence[str]) -> str | None:
    """The source file of a module, found as Python would find it, without importing its packages."""
    path: list[str] | None = [*folders, str(pathlib.Path.cwd()), *sys.path]
    spec = None
    for number, part in enumerate(name.split(".")):
        if not part.isidentifier() or (number and path is None):
            return None
        spec = importlib.machinery.PathFinder.find_spec(part, path)
        if spec is None:
            loaded = getattr(sys.modules.get(name), "__file__", None)  # one that was imported in a way of its own
            return _shown(loaded) if isinstance(loaded, str) else None
        path = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    origin = None if spec is None else spec.origin
    return _shown(origin) if origin is not None and origin.endswith(".py") else None


def _shown(file: str) -> str:
    """The file relative to the current folder if it lies below it."""
    try:
        return str(pathlib.Path(file).relative_to(pathlib.Path.cwd()))
    except ValueError:
        return file


def _find(file: str, names: Sequence[str]) -> Definition | None:
    """The definition of a dotted name; of one that is defined several times, the last, which is the one that counts."""
    try:
        node: ast.AST = ast.parse(pathlib.Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for name in names:
        if name == "<locals>":
            continue
        inner = [one for one in _statements(node) if name in _names(one)]
        if not inner:
            return None
        node = inner[-1]
    return Definition(file, _header(node)) if isinstance(node, ast.stmt) else None


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Statements inside a node, also under `if`, `try` and `with`, but not those of inner functions and classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)) and not _is_scope(child):
            yield from _statements(child)


def _is_scope(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _names(node: ast.stmt) -> set[str]:
    """Names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return {part.id for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)}


def _header(node: ast.stmt) -> range:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        return range(first, max(node.lineno + 1, node.body[0].lineno))
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
