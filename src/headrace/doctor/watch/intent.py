"""Whether a script's text shows that it goes on from the checkpoints that it saves. Nothing is executed.

A first run loads nothing, since there is no checkpoint yet: only the text says what a second run would do. It goes on
if it loads a file before its training loop, and either reads back a counter that it saved, or loads from the very
expression under which it saves. Loading the best weights after training, to test them, is no such thing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

__all__ = ["goes_on"]

_LOADERS = {"load", "load_file", "load_model"}
_LIBRARIES = {"torch", "safetensors", "st"}
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


def goes_on(source: str, *, save_line: int, step_line: int, counters: Collection[str]) -> tuple[int, str] | None:
    """Returns (line, what it does there) if the text goes on from what it saves.

    Args:
        source: Text of the file that saves.
        save_line: Line of the call that saves.
        step_line: Line of the optimizer's step, if that is in this file; else that of the save.
        counters: Keys of the saved mapping that hold plain integers.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    loads = [call for call in _calls(tree) if _is_load(call)]
    early = [call for call in loads if _is_before(tree, call, step_line)]
    for call in early:
        key = next((key for key in counters if _reads(tree, key)), None)
        if key is not None:
            return call.lineno, f"reads {key!r} back"
    saved = {ast.dump(path) for call in _calls(tree) if _spans(call, save_line) for path in call.args[1:2]}
    for call in early:
        if call.args and ast.dump(call.args[0]) in saved and not _is_parameter(tree, call.args[0]):
            return call.lineno, f"loads {ast.unparse(call.args[0])}, which it saves"
    return None


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _is_load(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in _LOADERS - {"load"}
    if not isinstance(function, ast.Attribute) or function.attr not in _LOADERS:
        return False
    base: ast.expr = function.value
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and base.id in _LIBRARIES


def _spans(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _reads(tree: ast.AST, key: str) -> bool:
    """True if an entry of a mapping is read under this key: by brackets, `get` or `pop`."""
    read: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            read.append(node.slice)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in {"get", "pop"}:
            read += node.args[:1]
    return any(isinstance(part, ast.Constant) and part.value == key for part in read)


def _is_parameter(tree: ast.AST, path: ast.expr) -> bool:
    """True for a bare name that is a parameter of some function: `path` in `save(path)` and in `load(path)` may differ."""
    if not isinstance(path, ast.Name):
        return False
    return any(
        path.id in {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    )


def _is_before(tree: ast.Module, load: ast.Call, step_line: int) -> bool:
    """True if a load runs before the training loop: earlier in the same function, or called from there earlier."""
    for scope, line in _runs_in(tree, load.lineno):
        for loop_scope, loop_line in _runs_in(tree, step_line):
            if scope is loop_scope and line < _loop_start(scope, loop_line):
                return True
    return False


def _runs_in(tree: ast.Module, line: int, depth: int = 4) -> list[tuple[_Scope, int]]:
    """The function that a line is in, and those that call this one, each with the line where that happens."""
    scope = _scope_of(tree, line)
    places = [(scope, line)]
    if depth and not isinstance(scope, ast.Module):
        for call in _calls(tree):
            name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", None)
            if name == scope.name and not (scope.lineno <= call.lineno <= (scope.end_lineno or 0)):
                places += _runs_in(tree, call.lineno, depth - 1)
    return places


def _scope_of(tree: ast.Module, line: int) -> _Scope:
    found: _Scope = tree
    for node in ast.walk(tree):  # outer functions come before inner ones
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0):
            found = node
    return found


def _loop_start(scope: _Scope, line: int) -> int:
    """The first line of the outermost loop of a function around a line; the line itself if there is none."""
    starts = [
        node.lineno
        for node in ast.walk(scope)
        if isinstance(node, (ast.For, ast.While)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return min(starts, default=line)
