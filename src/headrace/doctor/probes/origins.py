"""Hears which operation first gives NaN or infinity from finite numbers, in numpy and in torch, and on which line."""

from __future__ import annotations

import contextlib
import dataclasses
import linecache
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.doctor.stacks import is_user_code

__all__ = ["Origin", "heard_origins"]

MAX_EVENTS = 16
"""The first few are enough: what comes after follows from them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """One operation that gave NaN or infinity."""

    where: str
    """`file.py:12` of the user's line."""
    code: str
    """That line."""


@contextlib.contextmanager
def heard_origins(into: list[Origin]) -> Iterator[None]:
    """Collects origins while it is open. Results are what they would be; numpy's warnings about them stay silent."""

    def note() -> None:
        if len(into) < MAX_EVENTS and (origin := _here()) is not None and origin not in into:
            into.append(origin)

    with np.errstate(divide="call", invalid="call", over="call", call=lambda *_: note()), _torch_mode(note):
        yield


def _here() -> Origin | None:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    name, line = frame.f_code.co_filename, frame.f_lineno
    return Origin(f"{pathlib.Path(name).name}:{line}", linecache.getline(name, line).strip()[:120])


def _torch_mode(note: Any) -> contextlib.AbstractContextManager[Any]:
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "overrides"):
        return contextlib.nullcontext()

    def is_finite(value: Any) -> bool:
        with torch._C.DisableTorchFunction():
            return not value.is_floating_point() or bool(torch.isfinite(value).all())

    class Listening(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Looks at what goes into each operation before it runs, because it may work in place."""

        def __torch_function__(self, function: Any, kinds: Any, arguments: Any = (), options: Any = None) -> Any:
            given = list(_tensors((*arguments, *(options or {}).values()), torch.Tensor))
            was_finite = bool(given) and all(is_finite(value) for value in given)
            result = function(*arguments, **(options or {}))
            if was_finite and not all(is_finite(value) for value in [*_tensors((result,), torch.Tensor), *given]):
                note()
            return result

    return Listening()


def _tensors(values: Any, kind: type, depth: int = 0) -> Iterator[Any]:
    for value in values:
        if isinstance(value, kind):
            yield value
        elif isinstance(value, (list, tuple)) and depth < 2:
            yield from _tensors(value, kind, depth + 1)
