"""The chosen change as a line to paste, with its way back, and as a diff of the user's file where that is certain."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from headrace.doctor.lab.launch import launcher_for
from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.round import told
from headrace.doctor.subject.target import check_spec
from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.asking import AskLoader, module_of
from headrace.doctor.tuning.facts import LoaderNow, changes_of
from headrace.doctor.tuning.model import Edit, Tuning
from headrace.doctor.tuning.source_edit import ARGUMENT, Edited, NotFound, arguments_of, edit
from headrace.doctor.tuning.writing import write_and_verify
from headrace.errors import ConfigurationError

__all__ = ["apply", "edit_of"]

LOAD_S = 120.0
"""Seconds to load the target once more, after its file was changed."""


def edit_of(facts: LoaderNow, change: Setting, spec: str | None) -> Edit:
    """Returns the change as text.

    Args:
        facts: The loader as it is.
        change: What was chosen.
        spec: TARGET as typed; None: an object, which has no file.
    """
    line, back = _lines(facts, change)
    if spec is None:
        return Edit(line=line, back=back, refused="the loader was given as an object, not by its file")
    try:
        file, edited = _edited(facts, change, spec)
    except NotFound as error:
        return Edit(line=line, back=back, refused=str(error))
    return Edit(line=line, back=back, where=f"{file}:{edited.line}", diff=edited.diff)


def apply(tuning: Tuning) -> Tuning:
    """Changes the user's file, loads the target again and returns the result as applied.

    Raises:
        ConfigurationError: there is nothing that could be applied, the file has changed meanwhile, or the loader is not set
            as wanted afterwards; then the file is as it was.
    """
    change = tuning.choice.setting
    if change is None or tuning.edit is None:
        raise ConfigurationError("there is no change to apply")
    if tuning.edit.refused:
        raise ConfigurationError(f"the file cannot be changed by headrace: {tuning.edit.refused}", do=tuning.edit.line)
    try:
        file, edited = _edited(tuning.facts, change, tuning.spec)
    except NotFound as error:
        raise ConfigurationError(f"the file cannot be changed any more: {error}") from None
    if edited.diff != tuning.edit.diff:
        raise ConfigurationError(f"{file} has changed since it was examined", do="headrace tune ... again")
    wanted = tuning.facts.under(change)
    write_and_verify(file, edited, lambda: _wrong(tuning, wanted))
    return dataclasses.replace(tuning, applied=True)


def _wrong(tuning: Tuning, wanted: Setting) -> str:
    """Loads the target once more: why it is not set as wanted."""
    launcher = launcher_for(tuning.spec, seed=tuning.seed)
    with Lab(tuning.spec, budget=Budget(LOAD_S), per_sample_s=LOAD_S, launcher=launcher) as lab:
        records: list[LoaderNow] = []
        ending = lab.run(AskLoader(module_of(tuning.spec)), records.append)
    if not records:
        return f"it could not be loaded again: {told(ending)}"
    for name, is_set, should_be in changes_of(records[0].present, wanted):
        if is_set != should_be:
            return f"after the change the loader has {name}={is_set!r}, not {should_be!r}"
    return ""


def _edited(facts: LoaderNow, change: Setting, spec: str) -> tuple[str, Edited]:
    place, attribute = check_spec(spec)
    file = facts.file if module_of(spec) else place
    if file is None or not file.endswith(".py"):
        raise NotFound(f"there is no source file of {place}")
    if facts.num_siblings > 1:
        raise NotFound(f"{attribute} gives {facts.num_siblings} loaders, of which the first was looked at")
    arguments = arguments_of(facts, change)
    try:
        raw = pathlib.Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}") from None
    return file, edit(raw, attribute, arguments, name=_shown(file))


def _shown(file: str) -> str:
    """Its name in the diff: from the current folder, if it lies below it."""
    path = pathlib.Path(file).resolve()
    here = pathlib.Path.cwd().resolve()
    return str(path.relative_to(here) if path.is_relative_to(here) else path).lstrip(os.sep)


def _lines(facts: LoaderNow, change: Setting) -> tuple[str, str]:
    """(what to write, what stood there)."""
    change = facts.difference(change)
    told_new, told_old = [], []
    for name, old, new in changes_of(facts.present, change):
        if name in {"loader", "reads_batches"}:
            continue
        argument = ARGUMENT.get(name, name)
        told_new.append(f"{argument}={new!r}")
        told_old.append(f"{argument}={old!r}" if old is not None else f"no {argument}")
    new, old = ", ".join(told_new), ", ".join(told_old)
    if change.loader is not None:
        return f"headrace.DataLoader(the same arguments{', ' if new else ''}{new})", "torch.utils.data.DataLoader" + (
            f", {old}" if old else ""
        )
    if change.reads_batches:
        more = f", {new}" if new else ""
        line = (
            "DataLoader(dataset, sampler=BatchSampler(sampler, batch_size, drop_last), batch_size=None, "
            f"collate_fn=torch.utils.data.default_convert{more})"
        )
        return line, f"the call as it stands{', with ' + old if old else ''}"
    return new, old
