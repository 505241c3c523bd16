"""Reads the user's own files without running them: what workers would do on a device, what runs while importing."""

from __future__ import annotations

import ast
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.objects import SourceLine, SourceLines
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.stacks import user_sources
from headrace.doctor.subject import Subject

__all__ = ["STEP", "ReadSource", "find_lines"]

MAX_FILES = 40
MAX_BYTES = 400_000
"""A file longer than this is generated."""
TEXT_CHARS = 80
_WORKER_METHODS = {"__getitem__", "__getitems__", "__iter__", "__call__", "collate_fn", "collate"}
_ACCELERATORS = ("cuda", "mps", "xpu", "hpu")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadSource:
    """The experiment; yields one SourceLines."""

    name: ClassVar[str] = "reading the source"
    starts_processes: ClassVar[bool] = False

    num_workers: int
    start_method: str | None

    def run(self, subject: Subject, bench: Bench) -> Iterator[SourceLines]:
        """Parses the files of every module of the user's that TARGET has imported."""
        collate = getattr(getattr(subject.loader, "collate_fn", None), "__name__", None)
        with bench.holding(None, None, stage="read the source"):
            files = user_sources()[:MAX_FILES]
            lines = [line for file in files for line in _lines_of(file, collate)]
        yield SourceLines(
            num_workers=self.num_workers,
            start_method=self.start_method,
            pin_memory=bool(getattr(subject.loader, "pin_memory", False)),
            num_files=len(files),
            lines=tuple(lines),
        )


def _lines_of(file: pathlib.Path, collate: str | None) -> list[SourceLine]:
    try:
        if file.stat().st_size > MAX_BYTES:
            return []
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return []
    shown = os.path.relpath(file)
    return find_lines(text, str(file) if shown.startswith("..") else shown, collate)


def find_lines(text: str, file: str, collate: str | None = None) -> list[SourceLine]:
    """Returns the lines of one file that a rule may care about, in order.

    Args:
        text: The source.
        file: How to name it.
        collate: Name of the loader's collate function, whose body workers run.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found = [
        *_device_lines(tree, file, collate),
        *_unguarded_loops(tree, file),
        *_non_blocking(tree, file),
    ]
    return sorted(found, key=lambda line: int(line.where.rpartition(":")[2]))


# What workers would do on a device.


def _device_lines(tree: ast.Module, file: str, collate: str | None) -> Iterator[SourceLine]:
    devices = _device_names(tree)
    for function in _worker_functions(tree, collate):
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _moves_to_device(node, devices):
                yield SourceLine(
                    topic="device-in-worker",
                    where=f"{file}:{node.lineno}",
                    text=_shortened(node),
                    function=function.name,
                )


def _worker_functions(tree: ast.Module, collate: str | None) -> Iterator[ast.FunctionDef]:
    """Methods of data sets and transforms that prepare samples, and what they call in their own class; collate."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not _is_model(node):
            methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
            if {"__getitem__", "__getitems__", "__iter__"} & set(methods) or "__call__" in methods:
                pending = [name for name in methods if name in _WORKER_METHODS]
                seen: set[str] = set()
                while pending:
                    name = pending.pop()
                    if name in seen or name not in methods or name == "__init__":
                        continue
                    seen.add(name)
                    yield methods[name]
                    pending += _own_calls(methods[name])
        elif isinstance(node, ast.FunctionDef) and node.name == collate:
            yield node


def _is_model(node: ast.ClassDef) -> bool:
    return any("Module" in ast.unparse(base) or "Trainer" in ast.unparse(base) for base in node.bases)


def _own_calls(function: ast.FunctionDef) -> list[str]:
    return [
        node.func.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    ]


def _device_names(tree: ast.Module) -> set[str]:
    """Names and attributes that are given something that speaks of an accelerator: `DEVICE`, `device`, `self.device`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _speaks_of_accelerator(node.value):
            names.update(ast.unparse(target) for target in node.targets)
    return names


def _speaks_of_accelerator(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith(_ACCELERATORS)
        for part in ast.walk(node)
    )


def _moves_to_device(call: ast.Call, devices: set[str]) -> bool:
    arguments: Sequence[ast.AST] = [
        *call.args,
        *(keyword.value for keyword in call.keywords if keyword.arg == "device"),
    ]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return not (isinstance(call.func.value, ast.Name) and call.func.value.id == "torch")
    is_move = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
    makes_tensor = isinstance(call.func, ast.Attribute) and any(keyword.arg == "device" for keyword in call.keywords)
    if not (is_move or makes_tensor):
        return False
    if makes_tensor and not is_move:
        arguments = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    return any(_speaks_of_accelerator(argument) or ast.unparse(argument) in devices for argument in arguments)


# What runs while the module is imported.


def _unguarded_loops(tree: ast.Module, file: str) -> Iterator[SourceLine]:
    """Loops over a loader with workers in the body of the module, or in a function that the body calls."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    loaders = {name for node in ast.walk(tree) for name in _loaders_with_workers(node)}
    called = {
        node.func.id
        for statement in _unguarded(tree.body)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
    }
    bodies: list[tuple[str | None, list[ast.stmt]]] = [(None, list(_unguarded(tree.body)))]
    bodies += [(name, functions[name].body) for name in sorted(called)]
    for name, body in bodies:
        for statement in body:
            for node in ast.walk(statement):
                walked = _walked(node)
                if walked is not None and _is_loader(walked, loaders):
                    yield SourceLine(
                        topic="unguarded-loop",
                        where=f"{file}:{walked.lineno}",
                        text=_shortened(walked),
                        function=name,
                    )


def _unguarded(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported: no definitions, nothing under the main guard."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            continue
        yield statement


def _walked(node: ast.AST) -> ast.expr | None:
    """What a loop, or `next(iter(...))`, goes through."""
    if isinstance(node, (ast.For, ast.comprehension)):
        return node.iter
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "iter" and node.args:
        return node.args[0]
    return None


def _loaders_with_workers(node: ast.AST) -> Iterator[str]:
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and "DataLoader" in ast.unparse(node.value.func)
    ):
        workers = next((keyword.value for keyword in node.value.keywords if keyword.arg == "num_workers"), None)
        if workers is not None and not (isinstance(workers, ast.Constant) and workers.value == 0):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _is_loader(walked: ast.expr, loaders: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in loaders for part in ast.walk(walked))


# Copies.


def _non_blocking(tree: ast.Module, file: str) -> Iterator[SourceLine]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        is_asked = any(
            keyword.arg == "non_blocking" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in node.keywords
        )
        if is_asked and node.func.attr in {"to", "cuda"}:
            yield SourceLine(topic="non-blocking", where=f"{file}:{node.lineno}", text=_shortened(node))


def _shortened(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS - 3]}..."


class _Step:
    place = 105
    gives: tuple[type[Evidence], ...] = (SourceLines,)
    every_split = False

    def run(self, round_: Round) -> None:
        facts = round_.facts
        round_.gather(ReadSource(num_workers=facts.num_workers, start_method=facts.start_method), SourceLines)


STEP: Any = _Step()
