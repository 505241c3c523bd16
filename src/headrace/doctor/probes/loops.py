"""Finds, in source, loops that run over an object of a class until it ends by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["find_loops"]

_EXHAUSTING = frozenset({"list", "tuple", "set", "sorted", "sum", "max", "min", "Counter"})
_PASSING = frozenset({"enumerate", "tqdm", "iter", "reversed", "map", "filter", "track", "trange"})
"""Calls that yield as long as what they are given does."""


def find_loops(tree: ast.Module, kind: str) -> list[int]:
    """Returns the lines that iterate over what was made by calling `kind`, or over a loader's `.dataset`.

    A loop that leaves by `break`, `return` or `raise` may have an end of its own and is not counted.
    """
    names = _names_of(tree, kind)
    names |= _parameters(tree, names)
    lines = set()
    for node in ast.walk(tree):
        if (isinstance(node, (ast.For, ast.AsyncFor)) and _is_over(node.iter, names) and not _leaves(node)) or (
            isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)) and _is_over(node.generators[0].iter, names)
        ):
            lines.add(node.lineno)
        elif isinstance(node, ast.Call) and _called(node) in _EXHAUSTING and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.GeneratorExp):
                argument = argument.generators[0].iter
            if _is_over(argument, names):
                lines.add(node.lineno)
    return sorted(lines)


def _names_of(tree: ast.Module, kind: str) -> set[str]:
    """Names and attributes that are assigned from a call of the class."""
    found = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Assign, ast.AnnAssign))
            and isinstance(node.value, ast.Call)
            and _called(node.value) == kind
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {ast.unparse(target) for target in targets}
    return found


def _parameters(tree: ast.Module, names: set[str]) -> set[str]:
    """Parameters of functions of this file that are called with such a name."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function = functions.get(_called(call))
        if function is None:
            continue
        parameters = [argument.arg for argument in function.args.args]
        found |= {name for name, value in zip(parameters, call.args, strict=False) if ast.unparse(value) in names}
        found |= {word.arg for word in call.keywords if word.arg and ast.unparse(word.value) in names}
    return found


def _is_over(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Call) and _called(node) in _PASSING and node.args:
        return _is_over(node.args[-1] if _called(node) in {"map", "filter"} else node.args[0], names)
    if isinstance(node, ast.Attribute) and node.attr == "dataset" and "loader" in ast.unparse(node.value).lower():
        return True
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in names


def _called(call: ast.Call) -> str:
    """Last word of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]


def _leaves(loop: ast.For | ast.AsyncFor) -> bool:
    return any(isinstance(node, (ast.Break, ast.Return, ast.Raise)) for node in _inside(loop.body))


def _inside(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a body, functions inside it left out."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield from ast.walk(node)
