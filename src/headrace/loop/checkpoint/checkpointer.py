"""`headrace.Checkpointer`: a run that can be killed at any moment and goes on as if it had not been."""

from __future__ import annotations

import datetime as dt
import logging
import os
import pathlib
import secrets
import signal
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headrace.errors import CheckpointError, CheckpointWarning, ConfigurationError
from headrace.loop.checkpoint import tree
from headrace.loop.checkpoint.agreed import contract_differences, contract_of
from headrace.loop.checkpoint.cadence import Cadence
from headrace.loop.checkpoint.copies import Copier
from headrace.loop.checkpoint.environment import environment_here, git_revision, numerical_differences
from headrace.loop.checkpoint.folder import CheckpointFolder
from headrace.loop.checkpoint.loading import load_parts
from headrace.loop.checkpoint.manifest import FORMAT, Manifest
from headrace.loop.checkpoint.parts import (
    Metrics,
    Models,
    Modes,
    Objects,
    Optimizers,
    OwnBuffers,
    Part,
    PendingGradients,
    Randomness,
    Values,
)
from headrace.loop.checkpoint.parts.names import optimizer_within
from headrace.loop.checkpoint.place import Place
from headrace.loop.checkpoint.position import position_of
from headrace.loop.checkpoint.promise import Restored, promise_of
from headrace.loop.checkpoint.ranks import Ranks
from headrace.loop.checkpoint.repeat import Repeat, repeat
from headrace.loop.checkpoint.saved import Saved, write_checkpoint, write_part
from headrace.loop.checkpoint.shards import Piece, layout
from headrace.loop.checkpoint.signals import Signals
from headrace.loop.checkpoint.trial import Trial
from headrace.loop.checkpoint.writer import Writer
from headrace.loop.versions.same_data import as_plain, differences
from headrace.loop.versions.version import DataVersion

if TYPE_CHECKING:
    import torch

__all__ = ["Checkpointer"]

log = logging.getLogger("headrace.checkpoint")


class Checkpointer:
    """Saves all that a training run is made of, and brings it back: for loops of one's own.

        checkpoint = hr.Checkpointer("runs/digits", model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
        for epoch in checkpoint.epochs(10):
            for batch in checkpoint.batches():
                ...                                     # forward, backward, optimizer.step(), scheduler.step()
                checkpoint.step()

    The first start begins at epoch 0; every later start of the same program goes on behind the newest checkpoint.

    Saved are: parameters, buffers, training modes and frozen parameters; optimizers by parameter name; schedulers,
    scaler; gradients that were not used yet; random state of Python, numpy and torch on every device, of each rank; the
    loader's place; steps, epoch, best metric; what `extra` and `generators` name. Files hold data only: reading them
    runs no code.

    Of a model that ranks share (`fully_shard`, tensor parallelism: parameters are DTensor) each rank writes its pieces,
    of replicas one does, and none ever holds the whole. Any number of ranks loads them, sharded or not; the same number,
    sharded the same way, goes on exactly. Shard it before the optimizer and the checkpointer are made.

    Args:
        folder: Folder of the run's checkpoints; made if it is not there.
        model: The module that is trained; or several, by name. Wrapped ones (DistributedDataParallel, torch.compile) are
            saved as what they wrap.
        optimizer: The optimizer; or several, by name. Default none.
        scheduler: Learning-rate scheduler; or several, by name.
        scaler: A GradScaler.
        loader: What `batches` goes through. `headrace.DataLoader` and loaders with a `state_dict` go on at once; torch's
            own loads the used batches of the epoch again.
        extra: Further state by name: modules (an average of the weights, a metric of torchmetrics), objects with
            `state_dict`, or dictionaries of plain values, which are filled in place.
        generators: Random generators of one's own by name: torch, numpy or Python.
        every: Optimizer steps between two saves. Default: not by steps.
        every_s: Seconds between two saves. Default 600: at most ten minutes are lost. None: not by time.
        keep: Newest checkpoints to keep. Default 2, so that one is left if the newest is damaged.
        best: "max" or "min": also keep the checkpoint whose `save(metric=...)` was best so far.
        background: Write beside the training, from a copy in main memory. Default True; False blocks, without a copy.
        signals: Signals after which a save is made at the next `step`. SIGTERM then ends the process as usual.
        config: The run's settings, as plain values; kept in the manifest for people.
        data: Version of the data: what `headrace.data_version` returned, several of them by name, or plain values of one's
            own. Kept in the manifest; a run that goes on with other data is told so, and is CLOSE. So is one whose loader
            has a contract of other shapes or dtypes.

    Raises:
        ConfigurationError: an argument cannot work; an optimizer trains parameters of no model given.
        CheckpointError: another process writes to the folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        model: torch.nn.Module | Mapping[str, torch.nn.Module],
        optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer] | None = None,
        scheduler: Any = None,
        scaler: Any = None,
        loader: Any = None,
        extra: Mapping[str, Any] | None = None,
        generators: Mapping[str, Any] | None = None,
        every: int | None = None,
        every_s: float | None = 600.0,
        keep: int = 2,
        best: str | None = None,
        background: bool = True,
        signals: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGUSR1),
        config: Any = None,
        data: DataVersion | Mapping[str, Any] | None = None,
    ) -> None:
        if keep < 1:
            raise ConfigurationError(f"keep={keep}: at least the newest checkpoint must stay")
        if best not in {None, "max", "min"}:
            raise ConfigurationError(
                f"best={best!r}: say whether a greater or a smaller metric is better", do='best="max"'
            )
        self._ranks = Ranks()
        self._folder = CheckpointFolder(folder, keep=keep)
        self._cadence = Cadence(every=every, every_s=every_s)
        self._place = Place(None if loader is None else position_of(loader), best=best)
        models = Models(_named(model))
        optimizers = {name: optimizer_within(one) for name, one in _named(optimizer).items()}
        self._gradients = PendingGradients(models, optimizers)
        modules = {name: one for name, one in (extra or {}).items() if hasattr(one, "named_buffers")}
        further = Models(modules, "extra_models")
        objects = {
            name: one for name, one in (extra or {}).items() if not isinstance(one, dict) and name not in modules
        }
        values = {name: one for name, one in (extra or {}).items() if isinstance(one, dict)}
        self._models = (models, further)
        own_buffers = (OwnBuffers(models), OwnBuffers(further, "extra_own_buffers")) if self._sharding else ()
        metrics = Metrics(models, further)
        # In the order of loading: what others hold on to comes first, random state last.
        self._parts: tuple[Part, ...] = (
            models,
            Modes(models),
            Optimizers(optimizers, models),
            Objects("scheduler", _named(scheduler)),
            Objects("scaler", _named(scaler)),
            further,
            Modes(further, "extra_modes"),
            *([metrics] if metrics else []),
            Objects("extra", objects),
            Values(values),
            *own_buffers,
            self._gradients,
            self._place,
            Randomness(generators or {}),
        )
        self._writer = Writer() if background else None
        self._copier = Copier()
        self._config = config
        self._data = {} if data is None else as_plain(data)
        self.git = git_revision()  # when it begins: the files may be edited while it runs
        """Commit of the code that runs, and whether files differ from it; None: no repository."""
        self._loader = loader
        self._restored: Restored | None = None
        self._looked = False
        self._saved: Saved | None = None
        self._attempted: int | None = None
        self._attempts = 0
        self._repeats: bool | None = None
        # Last: from here on `close` is owed.
        self._word = self._ranks.from_first(self._opened() if self._ranks.is_first else None)
        if isinstance(self._word, CheckpointError):
            raise self._word
        self._signals = Signals(signals)

    # Where the run is.

    @property
    def steps(self) -> int:
        """Optimizer steps done."""
        return self._place.steps

    @property
    def epoch(self) -> int:
        """The epoch at hand, from 0."""
        return self._place.epoch

    @property
    def next_epoch(self) -> int:
        """The epoch with which a run that is restored from here goes on: the one at hand, or the next if its batches are over."""
        return self._place.next_epoch

    @property
    def batch(self) -> int:
        """Batches of this epoch that were handed out by `batches`; the one at hand counts."""
        return self._place.batches

    @property
    def best_metric(self) -> float | None:
        """Best value that was given to `save(metric=...)`; None: none was."""
        return self._place.best_metric

    @property
    def data(self) -> dict[str, Any]:
        """Identity of the data: the loader's fingerprint, and the version that was given."""
        return {**self._place.data(), **({"version": self._data} if self._data else {})}

    @property
    def ranks(self) -> Ranks:
        """The ranks of the run."""
        return self._ranks

    def is_better(self, metric: float) -> bool:
        """Whether a metric is better than the best that was saved so far; NaN never is."""
        return self._place.is_better(metric)

    @property
    def restored(self) -> Restored | None:
        """What `restore` did; None: this run began at its beginning."""
        return self._restored

    @property
    def saved(self) -> Saved | None:
        """The checkpoint that was written last by this process: its path, bytes and costs. None: none yet."""
        return self._saved

    # The loop.

    def epochs(self, num: int) -> Generator[int]:
        """Yields the epochs still to do, of `num` in all; restores first. Saves at the end of the last one.

        An epoch that was interrupted is yielded again, and `batches` hands out what was left of it.
        """
        if not self._looked:
            self.restore()
        while self._place.begin_epoch(num):
            yield self._place.epoch
            if self._place.is_tail:
                self.save_if_due()
            self._place.end_epoch()
        if self._attempted != self.steps or self._place.is_changed:
            self.save(reason="end of training", wait=True)

    def batches(self) -> Iterator[Any]:
        """Returns the batches of this epoch: all of them, or what was left of an interrupted one."""
        if not self._looked:
            self.restore()
        return self._place.batches_of_epoch()

    def step(self) -> None:
        """Counts an optimizer step, and saves if it is time to or a signal asks for it. Call it at the end of each."""
        self.count_step()
        if not self._place.is_tail:
            self.save_if_due()

    def count_step(self) -> None:
        """Counts an optimizer step, as `step` does, and saves nothing: `save_if_due` follows, when all else is done."""
        self._place.count_step(self._loader is not None)

    def save_if_due(self, *, only_asked: bool = False) -> None:
        """Saves if it is time to or a signal asks for it. Every rank calls it as often as the others.

        Args:
            only_asked: Not because of the time: only if a signal asks. Default False.
        """
        is_due = not only_asked and self._cadence.is_due(self.steps)
        here = 2 if self._signals.asked is not None else int(is_due)
        urgency = self._ranks.most_urgent_before(here)
        if urgency == 0:
            return
        wanted = self._signals.asked
        self.save(reason="due" if wanted is None else wanted.name, wait=urgency == 2)
        if wanted is not None:
            self._signals.done()

    # Saving.

    def save(
        self, *, metric: float | None = None, reason: str = "asked", epoch_done: bool = False, wait: bool = False
    ) -> None:
        """Saves now. After the batches of an epoch it is the last thing to do in it: the run goes on with the next one.

        Args:
            metric: A value of this checkpoint, by which the best one is kept if `best` was given.
            reason: A word for the manifest.
            epoch_done: The epoch is done with, though its batches were left early, by `break`. Default: what was not handed
                out of them is still to come.
            wait: Return when it is on the disk. Default: when it is copied.

        Raises:
            CheckpointError: a state is no data; or, with `wait`, it could not be written. Without `wait` a failure is
                told by a CheckpointWarning at the next save: training goes on, and what was saved before is kept.
        """
        started = time.perf_counter()
        self._tell_failure()
        self._looked = True
        if epoch_done:
            self._place.leave_batches()
        metric_is_best = self._place.note_metric(metric)
        # Of what all ranks have in common rank 0 writes all, the others their pieces of tensors that ranks share.
        writes_shared = self._ranks.is_first or self._sharding is not None  # once: it looks at every parameter
        here = [part for part in self._parts if part.is_per_rank or writes_shared]
        splits = {part.name: self._to_write(part) for part in here}
        if self._writer is not None:
            self._writer.wait()
            splits = self._copied(splits)
        shared = {part.name: splits[part.name] for part in here if not part.is_per_rank}
        mine = {part.name: splits[part.name] for part in here if part.is_per_rank}
        manifest = self._manifest(metric, reason)
        self._cadence.note_saved()
        self._attempted, self._place.is_changed = self.steps, False
        pause_s = time.perf_counter() - started

        self._attempts += 1
        word = f"{self._word}-{self._attempts}"

        def write() -> None:
            if self._ranks.is_first:
                self._saved = write_checkpoint(
                    self._folder, manifest, word=word, shared=shared, mine=mine, is_best=metric_is_best, pause_s=pause_s
                )
            else:
                write_part(self._folder, word=word, shared=shared, mine=mine, rank=self._ranks.rank)

        if self._writer is None:
            self._write_here(write)
            return
        self._writer.start(write)
        if wait:
            self.wait()
            self._ranks.wait_for_all()

    def check(self, step: Callable[[Any], Any], batches: Sequence[Any]) -> Repeat:
        """Runs steps twice from one state and says whether they gave the same bits; then all is as it was before.

        On a GPU they often do not, until `torch.use_deterministic_algorithms(True)`. What is found is kept in later checkpoints,
        and `restore` says it: BIT-EXACT holds only for steps that repeat.

        Args:
            step: One training step on one batch: forward, backward, optimizer step. Not `checkpoint.step()`.
            batches: A batch for each step; ten are enough for most.

        Returns:
            Whether they repeat; if not, the first item that differs and, if torch knows it, the operation.
        """
        found = repeat([part for part in self._parts if part is not self._place], step, batches)
        self._repeats = found.is_exact
        return found

    def trial(self) -> Trial:
        """Returns what remembers all parts as they are now, and puts them back."""
        return Trial(self._parts)

    def note_repeats(self, *, is_exact: bool) -> None:
        """Keeps in later checkpoints whether steps repeat."""
        self._repeats = is_exact

    def wait(self) -> None:
        """Returns when the checkpoint that is being written is on the disk.

        Raises:
            CheckpointError: it could not be written.
        """
        if self._writer is not None:
            self._writer.wait()
            if (failure := self._writer.failure()) is not None:
                raise self._not_written(failure)

    def close(self) -> None:
        """Waits for the writing, gives signals and folder back. May be called twice."""
        try:
            self.wait()
        finally:
            self._signals.close()
            self._gradients.close()
            self._ranks.close()
            self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Bringing back.

    def restore(self, which: str | os.PathLike[str] = "newest", *, quiet: bool = False) -> Restored | None:
        """Brings the newest good checkpoint back into model, optimizer and all else, and says what that promises.

        Args:
            which: "newest", "best", or the folder of one checkpoint.
            quiet: Do not print what was done to stderr. Default: rank 0 prints.

        Returns:
            What was done; None if there is no checkpoint, and the run begins at its beginning.

        Raises:
            CheckpointError: there are checkpoints, and none of them is good; or the one asked for is not.
            StateMismatch: it is of another model, optimizer or loader.
        """
        self._looked = True
        if self._writer is not None:
            self._writer.wait()  # what is being written is the newest
        refused: list[str] = []
        found = self._ranks.from_first(self._find(which, refused) if self._ranks.is_first else None)
        if isinstance(found, CheckpointError):
            raise found
        if found is None:
            return None
        path, manifest = found
        self._place.check_ranks(manifest.world_size, self._ranks.world_size)
        lost = differences(manifest.data.get("version") or {}, self._data)
        lost += contract_differences(manifest.contract, contract_of(self._loader))
        loaded = load_parts(self._parts, path, manifest, self._ranks, is_sharded=self._sharding is not None)
        lost += loaded.lost
        self._repeats = manifest.repeats
        differs = ["the steps do not repeat: tried twice, they gave other bits"] if manifest.repeats is False else []
        differs += numerical_differences(manifest.environment, self._environment())
        differs += loaded.begun_anew
        self._place.again_after_start(self._parts[-1], loaded.random)
        self._cadence.note_saved()
        self._attempted = self.steps
        self._restored = Restored(
            path=str(path),
            step=self.steps,
            epoch=self.epoch,
            batch=self._place.batches_used,
            promise=promise_of(lost, differs),
            lost=tuple(lost),
            differs=tuple(differs),
            is_checked=manifest.repeats is not None,
            refused=tuple(refused),
        )
        if not quiet and self._ranks.is_first:
            print(self._restored, file=sys.stderr, flush=True)
        return self._restored

    # Within.

    def _opened(self) -> Any:
        """Takes the folder; returns a word of this process's own for what it writes, or what is wrong, for all ranks."""
        try:
            self._folder.open()
        except CheckpointError as error:
            return error
        return secrets.token_hex(4)

    def _find(self, which: str | os.PathLike[str], refused: list[str]) -> Any:
        def note(path: pathlib.Path, error: CheckpointError) -> None:
            refused.append(f"{path.name}: {error.what}")
            warnings.warn(f"{path.name} is passed over: {error.what}", CheckpointWarning, stacklevel=4)

        try:
            if which == "newest":
                return self._folder.newest_good(note)
            path = self._folder.best() if which == "best" else pathlib.Path(which)
            return path, self._folder.good(path)
        except CheckpointError as error:
            return error

    @property
    def _sharding(self) -> str | None:
        """How ranks share the parameters of models, in words; None: each rank has all of them."""
        return layout(parameter for models in self._models for _, parameter in models.parameters())

    def _environment(self) -> dict[str, Any]:
        here, sharding = environment_here(self._ranks.world_size), self._sharding
        return {**here, "sharding": sharding} if sharding else here

    def _to_write(self, part: Part) -> tree.Split:
        """The state of a part, without tensors that another rank writes."""
        skeleton, tensors = tree.split(part.state(), part.name)
        is_all = part.is_per_rank or self._ranks.is_first
        return skeleton, {
            name: one for name, one in tensors.items() if (one.is_written if isinstance(one, Piece) else is_all)
        }

    def _copied(self, splits: Mapping[str, tree.Split]) -> dict[str, tree.Split]:
        """The same with copies of the tensors, whose names begin with that of their part."""
        together = self._copier.copied({name: one for _, tensors in splits.values() for name, one in tensors.items()})
        return {
            part: (skeleton, {name: together[name] for name in tensors}) for part, (skeleton, tensors) in splits.items()
        }

    def _manifest(self, metric: float | None, reason: str) -> Manifest:
        return Manifest(
            format=FORMAT,
            step=self.steps,
            epoch=self._place.next_epoch,
            reason=reason,
            created=dt.datetime.now().astimezone().isoformat(timespec="seconds"),
            files=(),
            parts=tuple(part.name for part in self._parts),
            environment={**self._environment(), "git": self.git},
            world_size=self._ranks.world_size,
            metric=metric,
            repeats=self._repeats,
            config=self._config,
            data=self.data,
            contract=contract_of(self._loader),
        )

    def _write_here(self, write: Any) -> None:
        try:
            write()
        except OSError as error:
            raise self._not_written(error) from error

    def _tell_failure(self) -> None:
        if self._writer is not None and (failure := self._writer.failure()) is not None:
            error = self._not_written(failure)
            log.error("%s", error)
            warnings.warn(str(error), CheckpointWarning, stacklevel=3)

    def _not_written(self, failure: BaseException) -> CheckpointError:
        if isinstance(failure, CheckpointError):
            return failure
        newest = max(self._folder.steps(), default=None)
        error = CheckpointError(
            f"the checkpoint of step {self._attempted} could not be written to {self._folder.path}: {failure}",
            why="training goes on; "
            + ("nothing has been saved yet" if newest is None else f"the newest one is of step {newest}"),
            do="make room on the disk, or keep fewer: Checkpointer(..., keep=1)",
        )
        error.__cause__ = failure
        return error


def _named(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else {"": given}
