"""Finds the one call that makes a loader: in the function, class or assignment that TARGET names. Reads text, runs nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["NotFound", "find_call"]

LOADERS = {
    "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
    "headrace.DataLoader",
}
"""Classes whose arguments are known."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class NotFound(Exception):
    """There is no single call that could be changed; the message says why, in a user's words."""


def find_call(tree: ast.Module, attribute: str) -> ast.Call:
    """Returns the call that makes the loader.

    Args:
        tree: The file.
        attribute: What TARGET names in it, dotted inside classes.

    Raises:
        NotFound: none, several, or one in another place.
    """
    meaning = _Meaning(tree)
    holder = _holder(tree, attribute, meaning)
    return _only_call(tree, holder, attribute, meaning, seen=frozenset({attribute}))


class _Meaning:
    """What names in a file stand for, from its imports."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    if one.asname:
                        self.names[one.asname] = one.name
                    else:
                        root = one.name.partition(".")[0]
                        self.names[root] = root
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for one in node.names:
                    if one.name != "*":
                        self.names[one.asname or one.name] = f"{module}.{one.name}"
                    elif f"{module}.DataLoader" in LOADERS:
                        self.names["DataLoader"] = f"{module}.DataLoader"
        self.redefined = {node.name for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, *_FUNCTIONS))}

    def of(self, node: ast.expr) -> str:
        """Dotted name that an expression stands for; empty: it is no name."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        root = node.id if node.id in self.redefined else self.names.get(node.id, node.id)
        return ".".join([root, *reversed(parts)])


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _holder(tree: ast.Module, attribute: str, meaning: _Meaning) -> ast.AST:
    """The function, class, or assigned value that TARGET names."""
    scope: list[ast.stmt] = tree.body
    found: ast.AST | None = None
    for part in attribute.split("."):
        held = [node for node in _statements(scope) if _binds(node, part)]
        if not held:
            moved = meaning.names.get(part)
            if moved and found is None:
                raise NotFound(f"{part} is imported from {moved.rpartition('.')[0]}: name that module in TARGET")
            raise NotFound(f"{attribute} is not defined in this file in a way that can be read")
        if len(held) > 1:
            raise NotFound(
                f"{part} is defined {len(held)} times, in lines {', '.join(str(one.lineno) for one in held)}"
            )
        found = held[0]
        scope = found.body if isinstance(found, (ast.ClassDef, *_FUNCTIONS)) else []
    assert found is not None
    return found


def _statements(scope: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a block, and of the `if`s, `try`s and `with`s in it."""
    for node in scope:
        yield node
        if not isinstance(node, (ast.ClassDef, *_FUNCTIONS)):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            inner += [
                stmt
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.ExceptHandler)
                for stmt in child.body
            ]
            yield from _statements(inner)


def _binds(node: ast.stmt, name: str) -> bool:
    if isinstance(node, (ast.ClassDef, *_FUNCTIONS)):
        return node.name == name
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    return any(isinstance(one, ast.Name) and one.id == name for target in targets for one in ast.walk(target))


def _only_call(tree: ast.Module, holder: ast.AST, attribute: str, meaning: _Meaning, seen: frozenset[str]) -> ast.Call:
    calls = [node for node in ast.walk(holder) if isinstance(node, ast.Call)]
    known = [(one, meaning.of(one.func)) for one in calls]
    found = [one for one, name in known if name in LOADERS]
    if len(found) == 1:
        return found[0]
    if found:
        lines = ", ".join(str(one.lineno) for one in found)
        raise NotFound(f"{attribute} makes {len(found)} loaders, in lines {lines}")
    own = [(one, name) for one, name in known if name.rpartition(".")[2].endswith("DataLoader")]
    if own:
        call, name = own[0]
        raise NotFound(f"the loader is made by {name} in line {call.lineno}, a class that is not PyTorch's own")
    return _in_helper(tree, known, attribute, meaning, seen)


def _in_helper(
    tree: ast.Module,
    calls: list[tuple[ast.Call, str]],
    attribute: str,
    meaning: _Meaning,
    seen: frozenset[str],
) -> ast.Call:
    """The call in a function of this file that TARGET's function calls."""
    functions = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    makers = {
        name: functions[name]
        for _, name in calls
        if name in functions and name not in seen and _makes_loader(functions[name], functions, meaning, {name})
    }
    if not makers:
        away = sorted({name.rpartition(".")[0] for _, name in calls if "load" in name.lower() and "." in name})
        told = f"; perhaps in {', '.join(away)}" if away else ""
        raise NotFound(f"no call of DataLoader stands in {attribute}{told}")
    if len(makers) > 1:
        raise NotFound(f"{attribute} calls several functions that make loaders: {', '.join(makers)}")
    ((name, function),) = makers.items()
    num_uses = sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in ast.walk(tree)
    )
    if num_uses > 1:
        raise NotFound(f"the loader is made in {name}, line {function.lineno}, which is used in {num_uses} places")
    return _only_call(tree, function, name, meaning, seen | {name})


def _makes_loader(function: _Function, functions: dict[str, _Function], meaning: _Meaning, seen: set[str]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = meaning.of(node.func)
            if name in LOADERS or name.rpartition(".")[2].endswith("DataLoader"):
                return True
            if (
                name in functions
                and name not in seen
                and _makes_loader(functions[name], functions, meaning, seen | {name})
            ):
                return True
    return False
