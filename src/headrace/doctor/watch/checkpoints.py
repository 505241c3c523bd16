"""Watches checkpoints: what is saved, how, and whether it is meant to be gone on from."""

from __future__ import annotations

import importlib
import os
import pathlib
from collections.abc import Callable
from typing import Any

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.training import CheckpointTrace, CheckpointTraces
from headrace.doctor.watch.contents import holds, integers, keys
from headrace.doctor.watch.frames import user_place
from headrace.doctor.watch.intent import goes_on
from headrace.doctor.watch.taps import listen, quietly
from headrace.doctor.watch.timeline import Timeline

__all__ = ["CheckpointObserver"]

MOST_SAVED = 100
STATE_LOOKS = 3
"""Steps of each optimizer after which it is asked whether it keeps anything."""


class _Saved:
    def __init__(self, path: str, where: str | None, step: int) -> None:
        self.path, self.where, self.step = path, where, step
        self.files = {path}
        self.keys: tuple[str, ...] = ()
        self.counters: tuple[str, ...] = ()
        self.holds: set[str] = set()
        self.is_renamed = False


class CheckpointObserver:
    """Observes `torch.save` and `torch.load`, and safetensors where it is installed. Costs nothing per step."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._saved: list[_Saved] = []
        self._loaded: list[tuple[str, int, tuple[str, ...]]] = []
        """(path, optimizer steps at that time, what it holds)."""
        self._needed: set[str] = set()
        self._step_place: str | None = None
        self._looks: dict[int, int] = {}
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Sets the hooks."""
        import torch
        from torch.optim import optimizer as hooks
        from torch.optim.lr_scheduler import LRScheduler

        self._undo = [
            listen(torch, "save", after=self._saves),
            listen(torch, "load", after=self._loads),
            listen(os, "replace", after=self._renames),
            listen(os, "rename", after=self._renames),
            listen(LRScheduler, "__init__", after=lambda *_: self._needed.add("scheduler")),
            hooks.register_optimizer_step_post_hook(quietly(self._stepped)).remove,
        ]
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
        if scaler is not None:
            self._undo.append(listen(scaler, "step", after=self._scaler_steps))
        if (safetensors := _safetensors()) is not None:
            self._undo.append(listen(safetensors, "save_file", after=self._saves))

    def uninstall(self) -> None:
        """Takes the hooks away; what was seen stays."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    def seen(self) -> tuple[Evidence, ...]:
        """Returns a CheckpointTraces, once something was saved."""
        if not self._saved:
            return ()
        paths = {path for one in self._saved for path in one.files}
        trained = self._timeline.num_steps > 0
        return (
            CheckpointTraces(
                saved=tuple(_trace(one) for one in self._saved),
                needed=("model", *sorted(self._needed)),
                is_resumed=trained
                and any(step == 0 and (path in paths or "optimizer" in held) for path, step, held in self._loaded),
                goes_on=self._intent(),
                num_steps=self._timeline.num_steps,
            ),
        )

    def _saves(self, args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> None:
        value = args[0] if args else kwargs.get("obj", kwargs.get("tensors"))
        path = _path(args[1] if len(args) > 1 else kwargs.get("f", kwargs.get("filename")))
        if path is None or not (held := holds(value)):
            return
        last = self._saved[-1] if self._saved else None
        step = self._timeline.num_steps
        # Several files of one moment in one folder are one checkpoint.
        if last is None or last.step != step or pathlib.Path(last.path).parent != pathlib.Path(path).parent:
            if len(self._saved) >= MOST_SAVED:
                return
            last = _Saved(path, user_place(), step)
            self._saved.append(last)
        last.files.add(path)
        last.keys += keys(value)
        last.counters += integers(value)
        last.holds |= set(held)

    def _loads(self, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        path = _path(args[0] if args else kwargs.get("f"))
        if path is not None and len(self._loaded) < MOST_SAVED:
            self._loaded.append((path, self._timeline.num_steps, holds(value)))

    def _renames(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        source, target = map(_path, args[:2])
        for one in self._saved[-4:]:
            if source in one.files and target is not None:
                one.files.add(target)
                one.is_renamed = True
                one.path = target if one.path == source else one.path

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        looks = self._looks.get(id(optimizer), 0)
        if looks >= STATE_LOOKS:
            return
        self._looks[id(optimizer)] = looks + 1
        self._step_place = self._step_place or user_place()
        if any(optimizer.state.values()):
            self._needed.add("optimizer")

    def _scaler_steps(self, args: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        if args[0].is_enabled():
            self._needed.add("scaler")

    def _intent(self) -> str | None:
        """What the text of the script says, for the first checkpoint; texts are short, and this is asked seldom."""
        one = self._saved[0]
        if one.where is None:
            return None
        file, _, line = one.where.rpartition(":")
        step_file, _, step_line = (self._step_place or one.where).rpartition(":")
        try:
            source = pathlib.Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
        found = goes_on(
            source,
            save_line=int(line),
            step_line=int(step_line if step_file == file else line),
            counters=one.counters,
        )
        return None if found is None else f"{file}:{found[0]} {found[1]}"


def _trace(one: _Saved) -> CheckpointTrace:
    return CheckpointTrace(
        path=one.path,
        where=one.where,
        step=one.step,
        keys=one.keys[:40],
        holds=tuple(sorted(one.holds)),
        is_complete_write=one.is_renamed,
    )


def _path(file: Any) -> str | None:
    """The path of what is written to or read from; None for a file in memory."""
    name = getattr(file, "name", file) if not isinstance(file, (str, os.PathLike)) else file
    if not isinstance(name, (str, os.PathLike)):
        return None
    return os.path.abspath(os.fspath(name))  # noqa: PTH100 - a text to compare; must not touch the disk


def _safetensors() -> Any:
    try:
        return importlib.import_module("safetensors.torch")
    except ImportError:
        return None
