"""What a checkpoint says of itself: `manifest.json`, written last, so a folder that has one is whole."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headrace.errors import CheckpointError

__all__ = ["FORMAT", "NAME", "FileRecord", "Manifest", "decode", "encode"]

FORMAT: Final = "headrace-checkpoint-1"
"""Name of this layout of files; a version reads only what it knows."""
NAME: Final = "manifest.json"


class FileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a checkpoint, and how to tell whether it is as it was written."""

    name: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint, without its content.

    JSON, for people and for scripts: `files` can be checked with `sha256sum`.
    """

    format: str
    step: int
    """Optimizer steps done."""
    epoch: int
    """Epoch that the run goes on in, from 0."""
    reason: str
    """Why it was saved: "due", "asked", "SIGTERM", "end of training", ..."""
    created: str
    """Time of saving, ISO 8601 with offset."""
    files: tuple[FileRecord, ...]
    parts: tuple[str, ...]
    """What it holds: model, optimizer, random, ..."""
    environment: dict[str, Any]
    """What exactness depends on; see `environment.py`."""
    world_size: int = 1
    metric: float | None = None
    """Value given with it, by which the best one is kept. None: none was given."""
    repeats: bool | None = None
    """Whether steps of the run, tried twice, gave the same bits. None: that was not tried."""
    config: Any = None
    """The run's configuration, as it was given."""
    data: dict[str, Any] = {}
    """Identity of the data: the loader's `fingerprint`, and the `version` that was given."""
    contract: dict[str, Any] | None = None
    """What the loader was to deliver: digest of its contract, and the form of each field. None: it had no contract."""


def encode(manifest: Manifest) -> bytes:
    """Returns it as JSON, indented for people."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def decode(text: bytes, where: str) -> Manifest:
    """Returns what `encode` wrote.

    Raises:
        CheckpointError: it is no such text, or of a format that this version does not know.
    """
    try:
        said = msgspec.json.decode(text)
        form = said.get("format") if isinstance(said, dict) else None
        if form != FORMAT:
            raise _of_another_format(said, form, where)
        return msgspec.convert(said, Manifest)
    except msgspec.MsgspecError as error:
        raise CheckpointError(f"{where} cannot be read: {error}") from error


def _of_another_format(said: Any, form: Any, where: str) -> CheckpointError:
    """What to say of it: by the version that saved it, if it is one of headrace's."""
    what = (
        f"{where} has {'no format' if form is None else f'format {form!r}'}; this version of headrace reads {FORMAT!r}"
    )
    if not str(form).startswith(FORMAT.rpartition("-")[0]):
        return CheckpointError(what, why="it is no checkpoint of headrace", do="restore from another folder")
    environment = said.get("environment")
    version = environment.get("headrace") if isinstance(environment, dict) else None
    return CheckpointError(
        what,
        why="another version of headrace saved it" + (f": {version}" if version else ""),
        do=(
            f"pip install headrace{f'=={version}' if version else ' --upgrade'}    to go on from it",
            "move its folder away    to go on from an older one, or to begin anew",
        ),
    )
