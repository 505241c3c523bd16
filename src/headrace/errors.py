"""Every exception that headrace raises itself, and where it happened.

The tree:

    HeadraceError
    ├── ConfigurationError        an argument, or two together, cannot work            (also ValueError)
    ├── StateMismatch             a saved state does not fit what it is loaded into    (also ValueError)
    ├── CheckpointError           a checkpoint cannot be written or read
    │   └── DamagedCheckpoint     a file of it is missing, cut short or changed
    ├── ContractError
    │   ├── ContractFileError     a contract file cannot be read as a contract         (also ValueError)
    │   └── ContractViolation     a sample or a batch breaks the contract
    ├── DataError
    │   ├── SourceError           the data set itself cannot be used (empty, hidden class folder, ...)
    │   ├── CollateError          samples do not join into one batch
    │   ├── TooManyRefused        the budget of an error policy is spent
    │   ├── EmptyBatch            every sample of a batch was refused
    │   ├── LedgerError           the epoch equation does not hold
    │   └── DataVersionError      the data on the disk are not the version that is recorded
    ├── NonFiniteLoss             the loss of a training step is NaN or infinite        (also ArithmeticError)
    ├── GlobalRandomness          code that draws from global generators met threads
    ├── WorkerFailure
    │   ├── WorkerDied            a worker process ended without an answer
    │   ├── StuckWorker           a worker gave no answer before the deadline
    │   └── RemoteError           a worker's exception that cannot be rebuilt here
    ├── TargetError               a TARGET of the command line cannot be loaded
    └── MissingExtra              an optional library is needed and not installed      (also ImportError)

Warnings (the engine goes on, but the data may not be what is wanted):

    CheckpointWarning             a checkpoint was passed over, or could not be written   (UserWarning)
    LoopWarning                   a training run lacks something that most need          (UserWarning)
    DuplicateDataWarning          workers of a stream begin with the same batch           (UserWarning)
    TrackerWarning                a history is not kept where, or as, it was meant        (UserWarning)

A failure of the user's own code is *not* in this tree: it keeps its own type and gains a note (`annotate`) that says
where it happened and how to replay it. Every message has up to four parts: what (first line), where, why, do.

All exceptions here are rebuilt from one message plus fields, so they survive pickling between processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "CollateError",
    "ConfigurationError",
    "ContractError",
    "ContractFileError",
    "ContractViolation",
    "DamagedCheckpoint",
    "DataError",
    "DataVersionError",
    "DuplicateDataWarning",
    "EmptyBatch",
    "GlobalRandomness",
    "HeadraceError",
    "LedgerError",
    "LoopWarning",
    "MissingExtra",
    "NonFiniteLoss",
    "RemoteError",
    "SourceError",
    "StateMismatch",
    "StuckWorker",
    "TargetError",
    "TooManyRefused",
    "TrackerWarning",
    "Where",
    "WorkerDied",
    "WorkerFailure",
    "annotate",
    "nearest",
]

SampleId = str | int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The place of a fault, as far as it is known; None = not known."""

    sample_id: SampleId | None = None
    """Identity of the sample in its data set."""
    index: int | None = None
    """Row number of the sample in its data set."""
    path: str | None = None
    """What the record was read from, for people: a file path, `shard#key`, ..."""
    stage: str | None = None
    """Name of the stage that failed, with file and line of the user's function if there is one."""
    field: str | None = None
    """Name of the field of the sample or batch."""
    epoch: int | None = None
    """Epoch, from 0."""
    position: int | None = None
    """Position of the sample within the epoch, from 0."""
    rank: int | None = None
    """Rank of the process that loads, from 0."""
    worker: int | None = None
    """Worker of that rank, from 0; None = the main process."""
    seed: int | None = None
    """Seed of the loader; needed to replay a random stage."""

    def __str__(self) -> str:
        sample = ""
        if self.sample_id is not None:
            sample = f"sample {self.sample_id}"
            if self.index is not None and self.index != self.sample_id:
                sample += f" (index {self.index:,})"
            if self.path is not None and self.path != self.sample_id:
                sample += f", {self.path}"
        parts = [
            sample,
            f"stage {self.stage}" if self.stage is not None else "",
            f"field {self.field}" if self.field is not None else "",
            ", ".join(
                f"{name} {value:,}"
                for name, value in (("epoch", self.epoch), ("position", self.position))
                if value is not None
            ),
            ", ".join(
                f"{name} {value}" for name, value in (("rank", self.rank), ("worker", self.worker)) if value is not None
            ),
        ]
        return " | ".join(part for part in parts if part)

    @property
    def replay(self) -> str | None:
        """What to paste to run this one sample again with the same draws; None if the sample is not known."""
        if self.sample_id is None:
            return None
        epoch = 0 if self.epoch is None else self.epoch
        shell_id = "'" + str(self.sample_id).replace("'", "'\\''") + "'"
        return (
            f"loader.replay({self.sample_id!r}, epoch={epoch})    # here: the same sample, the same random draws\n"
            f"         headrace replay TARGET {shell_id} --epoch {epoch}"
            f"{'' if self.seed is None else f' --seed {self.seed}'}"
            "    # from a shell; TARGET is train.py:make_loader"
        )


def _lines(where: Where | None, why: str | None, do: str | Iterable[str] | None) -> str:
    """Formats the parts of a message below its first line."""
    fixes = [do] if isinstance(do, str) else list(do or ())
    rows = [("where", str(where)) if where is not None and str(where) else None, ("why", why) if why else None]
    rows += [("do", fix) for fix in fixes if fix]
    return "".join(f"\n  {name + ':':<6} {text}" for name, text in filter(None, rows))


class HeadraceError(Exception):
    """Base of all errors that headrace raises itself.

    Args:
        what: First line: what happened, in the user's words, with the offending and the expected value.
        where: The place, as far as it is known.
        why: The reason, only if known; say "probably" if guessed.
        do: What to do next, as something to paste; one line, or several.
    """

    def __init__(
        self,
        what: str = "",
        *,
        where: Where | None = None,
        why: str | None = None,
        do: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.do: tuple[str, ...] = (do,) if isinstance(do, str) else tuple(do or ())

    def __str__(self) -> str:
        return self.what + _lines(self.where, self.why, self.do)

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilt without calling a subclass's __init__, whatever its arguments: the fault of pytorch#30147.
        return _rebuild, (type(self), self.args, self.__dict__.copy())


def _rebuild(kind: type[BaseException], args: tuple[Any, ...], fields: Mapping[str, Any]) -> BaseException:
    """Makes an exception from its parts without running its constructor."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class ConfigurationError(HeadraceError, ValueError):
    """An argument, or two together, cannot work; raised before any worker starts."""


class StateMismatch(HeadraceError, ValueError):
    """A saved state does not fit what it is loaded into (data set, plan, model, optimizer); prints both sides."""


class CheckpointError(HeadraceError):
    """A checkpoint cannot be written or read."""


class DamagedCheckpoint(CheckpointError):
    """A file of a checkpoint is missing, cut short or changed since it was written; names the file."""


class ContractError(HeadraceError):
    """Something about a contract is wrong."""


class ContractFileError(ContractError, ValueError):
    """A contract file cannot be read as a contract; names the key and the nearest known one."""


class ContractViolation(ContractError):
    """A sample or a batch breaks the contract; names the sample, the field and both values."""


class DataError(HeadraceError):
    """The data cannot be delivered as asked."""


class SourceError(DataError):
    """The data set itself cannot be used: it is empty, lies about its length, has a stray class folder, ..."""


class CollateError(DataError):
    """Samples do not join into one batch; names the first one that differs and the field."""

    difference: Any = None
    """What differs, and at which places of the batch (`headrace.engine.collate.Difference`); None = not known."""


class TooManyRefused(DataError):
    """More samples were refused than the error policy allows; lists them."""


class EmptyBatch(DataError):
    """Every sample of a batch was refused, and an empty batch would leave the ranks out of step."""


class LedgerError(DataError):
    """Delivered, skipped and dropped samples do not add up to what was planned."""


class NonFiniteLoss(HeadraceError, ArithmeticError):
    """The loss of a training step is NaN or infinite; names the samples of its batch."""


class DataVersionError(DataError):
    """The data are missing, not fetched, or not the version that DVC or git-lfs record; says the command that mends it."""


class GlobalRandomness(HeadraceError):
    """Code that draws from the global generators of random, numpy or torch cannot be repeatable in threads."""


class WorkerFailure(HeadraceError):
    """A worker could not do its work."""


class WorkerDied(WorkerFailure):
    """A worker process ended without an answer; names the sample it had in hand and the signal or exit status."""


class StuckWorker(WorkerFailure):
    """A worker gave no answer before the deadline; carries the stack of the worker."""


class RemoteError(WorkerFailure):
    """Stands for a worker's exception whose class cannot be found in this process; carries its text."""


class TargetError(HeadraceError):
    """A TARGET of the command line cannot be loaded."""


class MissingExtra(HeadraceError, ImportError):
    """An optional library is needed and not installed; says what to install."""


class CheckpointWarning(UserWarning):
    """A checkpoint was passed over because it is damaged, or one could not be written; training goes on."""


class LoopWarning(UserWarning):
    """A training run lacks something that most need, and did not say that it is meant."""


class DuplicateDataWarning(UserWarning):
    """Workers of a stream begin with the same batch: it probably yields everything in every worker."""


class TrackerWarning(UserWarning):
    """A tracker failed, or keeps the history elsewhere than it was told to; training goes on."""


def annotate(error: BaseException, where: Where, *, do: str | Iterable[str] | None = None) -> None:
    """Adds the place and the way to replay to an exception of the user's own code, whose type stays as it is.

    The note is added once: an exception that already carries one is left alone, because the innermost place is the
    most precise. Notes survive pickling between processes (Python 3.11 and newer).
    """
    if getattr(error, "headrace_where", None) is not None:
        return
    # A class with __slots__ cannot carry the record; its text goes into the note all the same.
    with contextlib.suppress(AttributeError):
        error.headrace_where = where  # type: ignore[attr-defined]
    fixes: list[str] = [where.replay] if where.replay else []
    fixes += [do] if isinstance(do, str) else list(do or ())
    error.add_note("headrace: while loading" + _lines(where, None, fixes))


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?` for the known name closest to `name`, or an empty string."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]!r}?" if found else ""
