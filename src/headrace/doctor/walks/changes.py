"""Finds what a training loop may change in a data set between epochs: methods and attributes that samples depend on.

Reads source; runs nothing. What is found is only a candidate: whether samples follow it is tried afterwards.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pathlib
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from headrace.doctor.probes.graph_walk import walk
from headrace.doctor.stacks import is_user_code

__all__ = ["Change", "find_changes"]

BETWEEN_EPOCHS = re.compile(r"epoch|resampl|reshuffl|curricul|progress|difficult|level|stage|step|advance|refresh|^on_")
"""Names of what is done again and again; others (train, eval, set_transform) may be done once, before workers start."""
MAX_DEPTH = 4
_STARTS = frozenset({"__getitem__", "__getitems__", "__iter__", "__call__", "__next__"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that can be done to an object that the data set holds, or to the data set itself."""

    holder: Any
    path: str
    """How the holder is reached: `dataset`, `dataset.transform`."""
    name: str
    """Method, or attribute."""
    is_call: bool
    takes_argument: bool
    attributes: tuple[str, ...]
    """Attributes that it writes and that samples are made with."""
    at: str | None
    is_between_epochs: bool


@dataclasses.dataclass(slots=True)
class _Use:
    """What one method does with `self`."""

    node: ast.FunctionDef
    file: str
    line: int
    reads: set[str] = dataclasses.field(default_factory=set)
    writes: set[str] = dataclasses.field(default_factory=set)
    calls: set[str] = dataclasses.field(default_factory=set)


def find_changes(dataset: Any, script: pathlib.Path | None = None) -> list[Change]:
    """Returns the candidates, those of the data set itself first.

    Args:
        dataset: The data set; objects that it holds are looked at, too.
        script: File of the user's in which loops are searched for what they call and set.
    """
    called, written = _in_loops(script)
    found: list[Change] = []
    for path, holder in walk(dataset, max_depth=MAX_DEPTH):
        uses = _methods(type(holder))
        if uses:
            found += _of_methods(path, holder, uses, called)
            found += _of_loops(path, holder, uses, written)
    return found


def _of_methods(path: str, holder: Any, uses: dict[str, _Use], called: set[str]) -> Iterator[Change]:
    reading = _reached(uses, _STARTS)
    needed = set().union(*(uses[name].reads for name in reading)) if reading else set()
    for name, use in uses.items():
        arguments = use.node.args
        num_required = len(arguments.posonlyargs) + len(arguments.args) - 1 - len(arguments.defaults)
        written = use.writes.union(*(uses[other].writes for other in _reached(uses, {name}))) & needed
        is_public = not name.startswith("_") and name not in reading
        if is_public and written and num_required <= 1 and not use.node.decorator_list:
            yield Change(
                holder=holder,
                path=path,
                name=name,
                is_call=True,
                takes_argument=num_required == 1,
                attributes=tuple(sorted(written)),
                at=f"{pathlib.Path(use.file).name}:{use.line}",
                is_between_epochs=name in called or bool(BETWEEN_EPOCHS.search(name)),
            )


def _of_loops(path: str, holder: Any, uses: dict[str, _Use], written: dict[str, str]) -> Iterator[Change]:
    reading = _reached(uses, _STARTS)
    needed = set().union(*(uses[name].reads for name in reading)) if reading else set()
    for name in sorted(needed & written.keys()):
        if isinstance(getattr(holder, "__dict__", {}).get(name), (int, float)):
            yield Change(
                holder=holder,
                path=path,
                name=name,
                is_call=False,
                takes_argument=True,
                attributes=(name,),
                at=written[name],
                is_between_epochs=True,
            )


def _reached(uses: dict[str, _Use], starts: set[str] | frozenset[str]) -> set[str]:
    """Methods that are called from these, and these."""
    pending, seen = [name for name in starts if name in uses], set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += [called for called in uses[name].calls | uses[name].reads if called in uses]
    return seen


def _methods(kind: type) -> dict[str, _Use]:
    """What each method of the user's own classes does, the nearest class first."""
    found: dict[str, _Use] = {}
    for parent in kind.__mro__:
        try:
            file = inspect.getsourcefile(parent)
            if file is None or not is_user_code(file):
                continue
            lines, first = inspect.getsourcelines(parent)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (TypeError, OSError, SyntaxError):
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.args.args and node.name not in found:
                found[node.name] = _use(node, file, first + node.lineno - 1)
    return found


def _use(node: ast.FunctionDef, file: str, line: int) -> _Use:
    me = node.args.args[0].arg
    use = _Use(node, file, line)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            name = _attribute_of(inner.func, me)
            if isinstance(inner.func, ast.Attribute) and name is not None:
                is_own = isinstance(inner.func.value, ast.Name)
                # self.resample() is a call; self.order.sort() or self.epoch.fill_(1) may write.
                (use.calls if is_own else use.writes).add(name)
        if isinstance(inner, (ast.Attribute, ast.Subscript)):
            name = _attribute_of(inner, me)
            if name is not None:
                (use.reads if isinstance(inner.ctx, ast.Load) else use.writes).add(name)
        if isinstance(inner, ast.AugAssign):
            name = _attribute_of(inner.target, me)
            if name is not None:
                use.writes.add(name)
    return use


def _attribute_of(node: ast.expr, me: str) -> str | None:
    """`x` of `self.x`, `self.x.value`, `self.x[3].y`."""
    name = None
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        name = node.attr if isinstance(node, ast.Attribute) else name
        node = node.value
    return name if isinstance(node, ast.Name) and node.id == me else None


def _in_loops(script: pathlib.Path | None) -> tuple[set[str], dict[str, str]]:
    """Names of methods that loops of a file call, and of attributes that they set, with the place."""
    called: set[str] = set()
    written: dict[str, str] = {}
    if script is None:
        return called, written
    try:
        tree = ast.parse(script.read_text())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return called, written
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))]
    for inner in (inner for loop in loops for inner in ast.walk(loop)):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            called.add(inner.func.attr)
        targets = (
            inner.targets
            if isinstance(inner, ast.Assign)
            else [inner.target]
            if isinstance(inner, ast.AugAssign)
            else []
        )
        for target in targets:
            is_own = (
                isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
            )
            if isinstance(target, ast.Attribute) and not is_own:
                written[target.attr] = f"{script.name}:{target.lineno}"
    return called, written
