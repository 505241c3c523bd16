"""Pickles each part of the loader apart from the others, and finds the innermost object that refuses."""

from __future__ import annotations

import dataclasses
import inspect
import io
import os
import pathlib
import pickle
import time
import types
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.objects import PartPickle, PartPickles
from headrace.doctor.experiments.held_objects import parts_of
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.graph_walk import walk
from headrace.doctor.round import Round
from headrace.doctor.stacks import is_user_code
from headrace.doctor.subject import Subject

__all__ = ["STEP", "PickleParts", "find_culprit", "try_pickling"]

MESSAGE_CHARS = 200
MAX_TRIED = 400
"""Objects inside a part that are pickled one by one in search of the one that refuses."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PickleParts:
    """The experiment; yields one PartPickles. Runs the user's `__getstate__` and the like."""

    name: ClassVar[str] = "pickling of each part"
    starts_processes: ClassVar[bool] = False

    num_workers: int
    start_method: str | None
    persistent_workers: bool

    def run(self, subject: Subject, bench: Bench) -> Iterator[PartPickles]:
        """Pickles and unpickles, under the deadline of a sample each."""
        parts = []
        for name, part in parts_of(subject):
            with bench.holding(None, None, stage=f"pickle {name}"):
                parts.append(try_pickling(name, part))
        yield PartPickles(
            num_workers=self.num_workers,
            start_method=self.start_method,
            persistent_workers=self.persistent_workers,
            parts=tuple(parts),
        )


def try_pickling(name: str, part: Any) -> PartPickle:
    """Pickles as multiprocessing does for a worker that is not a fork, and reads it back."""
    started = time.perf_counter()
    size, error = _pickled_size(part)
    wall_s = time.perf_counter() - started
    if error is None:
        return PartPickle(part=name, size_bytes=size, wall_s=wall_s)
    path, culprit = find_culprit(name, part)
    return PartPickle(
        part=name,
        size_bytes=None,
        wall_s=wall_s,
        culprit=path,
        culprit_kind=_describe(culprit),
        error=f"{type(error).__name__}: {error}".partition("\n")[0][:MESSAGE_CHARS],
        where=_where(culprit),
    )


def _pickled_size(value: Any) -> tuple[int | None, BaseException | None]:
    """Size, or why not. Tensors travel by shared memory, as they do to a worker: their bytes are not in the pickle."""
    buffer = io.BytesIO()
    try:
        ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    except BaseException as error:
        return None, error
    return buffer.getbuffer().nbytes, None


def find_culprit(name: str, part: Any) -> tuple[str, Any]:
    """Returns (path, object) of the innermost object that cannot be pickled by itself."""
    refused: list[tuple[str, Any]] = []
    for number, (path, value) in enumerate(walk(part, name)):
        if number >= MAX_TRIED:
            break
        # What only a module or a class reaches is not part of the pickle.
        if not path.startswith(name) or isinstance(value, (types.ModuleType, type)):
            continue
        if not any(path.startswith(outer) for outer, _ in refused) and refused:
            continue
        if _pickled_size(value)[1] is not None:
            refused.append((path, value))
    return max(refused, key=lambda found: _depth(found[0]), default=(name, part))


def _depth(path: str) -> int:
    return path.count(".") + path.count("[")


def _describe(value: Any) -> str:
    if isinstance(value, types.FunctionType):
        return "a lambda" if value.__name__ == "<lambda>" else f"the function {value.__qualname__}"
    kind = type(value)
    if "<locals>" in kind.__qualname__:
        return f"an object of the class {kind.__qualname__}, which is defined inside a function"
    return f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__


def _where(value: Any) -> str | None:
    thing = value if isinstance(value, types.FunctionType) else type(value)
    try:
        file = inspect.getsourcefile(thing)
        _, line = inspect.getsourcelines(thing)
    except (OSError, TypeError):
        return None
    if file is None or not is_user_code(file):
        return None
    shown = os.path.relpath(file)
    return f"{file if shown.startswith('..') else pathlib.Path(shown)}:{line}"


class _Step:
    place = 210
    gives: tuple[type[Evidence], ...] = (PartPickles,)
    every_split = False

    def run(self, round_: Round) -> None:
        facts = round_.facts
        experiment = PickleParts(
            num_workers=facts.num_workers,
            start_method=facts.start_method,
            persistent_workers=facts.persistent_workers,
        )
        round_.gather(experiment, PartPickles)


STEP = _Step()
