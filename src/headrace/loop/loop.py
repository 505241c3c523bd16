"""`headrace.Loop`: a training loop whose body is the user's, and whose order, state and books are right."""

from __future__ import annotations

import logging
import os
import pathlib
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigurationError, LoopWarning
from headrace.loop.books import Books
from headrace.loop.checkpoint import Checkpointer, Restored
from headrace.loop.checkpoint.agreed import contract_of
from headrace.loop.checkpoint.environment import environment_here
from headrace.loop.checkpoint.ranks import this_rank
from headrace.loop.diagnosis import verdict_of
from headrace.loop.evaluation import Measure, evaluate
from headrace.loop.pace import Pace
from headrace.loop.replay import keep_batch
from headrace.loop.sanity import Sanity
from headrace.loop.step import Step
from headrace.loop.summary import summary_of
from headrace.loop.trackers import JsonLines, RunInfo, Tracker
from headrace.loop.updates import PRECISIONS, Updates

if TYPE_CHECKING:
    import torch

    from headrace.loop.versions.version import DataVersion

__all__ = ["Loop"]

log = logging.getLogger("headrace.loop")
UNSAID: Any = object()


class Loop:
    """Trains: the body computes a loss, the loop does the rest, and a killed run goes on as if it had not been.

        loop = hr.Loop(model, optimizer, train=loader, epochs=10, folder="runs/digits", evaluate=val_loader, measure=measure)
        for step in loop:
            loss = loss_fn(model(step.batch["image"]), step.batch["label"])
            step.update(loss)

    `update` does, in this order: backward, clip, optimizer step, scheduler step, clear gradients. After each epoch the
    model is evaluated, the schedulers of epochs are stepped and, where it is time, all is saved.

    Args:
        model: The module that is trained; or several, by name.
        optimizer: Its optimizer; or several, by name, that take each step together.
        train: The loader; each pass is an epoch.
        epochs: Passes in all.
        folder: Of the run: checkpoints, history, batches that failed.
        evaluate: A loader to evaluate on after each epoch; None says that there is none on purpose. If it is left out, a
            warning says so at the start of each run.
        measure: From a batch to values by name, for the evaluation: (B,) tensors with one value per sample, or means over
            the batch. Needed with `evaluate`.
        metrics: Further metrics of the evaluation, which `measure` updates: objects like those of torchmetrics.
        scheduler: Stepped after each optimizer step; or several, by name.
        epoch_scheduler: Stepped after each epoch, with the value of `watched` if it takes one (ReduceLROnPlateau).
        accumulate: Batches per optimizer step. Default 1.
        clip: Largest norm of all gradients together. Default: not clipped.
        precision: "full" (default), "bf16" or "fp16" (with a GradScaler).
        watched: Name of the evaluated value that says which checkpoint is best, and when to stop.
        better: "min" (default) or "max": which values of it are better.
        patience: Evaluations without a better value after which to stop. Default: never.
        every: Optimizer steps between two saves; and `every_s`, seconds. Default: ten minutes.
        every_s: Seconds between two saves.
        extra: Further state to save, as in `Checkpointer`.
        generators: Random generators of one's own, by name.
        sanity: Look at the run before it begins, up to 20 s: trial steps (`step.is_trial`) for the body, whose effects on all
            that is saved are put back. What is found is a LoopWarning. Default True; a run that goes on is not looked at.
        trackers: What keeps the history (`hr.track`). Default: JSON lines, `history.jsonl` in the folder.
        log_every: Optimizer steps between two entries of loss, learning rate and the like. Default 10: a person looks at
            curves, and some trackers take milliseconds for an entry.
        data: Which data these are: `hr.data_version(...)`, several by name, or plain values; kept by checkpoints and trackers.
        config: The run's settings, as plain values; kept by checkpoints and trackers.
        diagnosis: What the doctor said of the loader: what `hr.diagnose(loader)` returned, or the path of a report of
            `headrace diagnose --json FILE`. Trackers keep its verdict, counts and codes. Default: none.

    Raises:
        ConfigurationError: arguments that cannot work, alone or together.
    """

    def __init__(
        self,
        model: torch.nn.Module | Mapping[str, torch.nn.Module],
        optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer],
        *,
        train: Any,
        epochs: int,
        folder: str | os.PathLike[str],
        evaluate: Any = UNSAID,
        measure: Measure | None = None,
        metrics: Mapping[str, Any] | None = None,
        scheduler: Any = None,
        epoch_scheduler: Any = None,
        accumulate: int = 1,
        clip: float | None = None,
        precision: str = "full",
        watched: str = "loss",
        better: str = "min",
        patience: int | None = None,
        every: int | None = None,
        every_s: float | None = 600.0,
        extra: Mapping[str, Any] | None = None,
        generators: Mapping[str, Any] | None = None,
        sanity: bool = True,
        trackers: Sequence[Tracker] | None = None,
        log_every: int = 10,
        data: DataVersion | Mapping[str, Any] | None = None,
        config: Any = None,
        diagnosis: Any = None,
    ) -> None:
        _check(accumulate=accumulate, clip=clip, precision=precision, better=better, patience=patience, epochs=epochs)
        self.has_evaluation = evaluate is not UNSAID and evaluate is not None
        if self.has_evaluation and measure is None:
            raise ConfigurationError(
                "evaluate= is a loader, and measure= does not say what to compute of its batches",
                do='measure=lambda batch: {"loss": loss_fn(model(batch[0]), batch[1], reduction="none")}',
            )
        self._is_unsaid, self._is_looked_at = evaluate is UNSAID, sanity
        self.models = dict(model) if isinstance(model, Mapping) else {"": model}
        optimizers = dict(optimizer) if isinstance(optimizer, Mapping) else {"": optimizer}
        schedulers, epoch_schedulers = _named(scheduler, "step"), _named(epoch_scheduler, "epoch")
        device_type = next((one.device.type for each in self.models.values() for one in each.parameters()), "cpu")
        scaler = _scaler(precision, device_type)
        self.folder = pathlib.Path(folder)
        self.train, self._evaluation, self._measure, self._metrics = train, evaluate, measure, metrics
        self._num_epochs, self._watched, self._patience = epochs, watched, patience
        self._epoch_schedulers = epoch_schedulers
        self._updates = Updates(
            self.models,
            list(optimizers.values()),
            list(schedulers.values()),
            accumulate=accumulate,
            clip=clip,
            precision=precision,
            device_type=device_type,
            scaler=scaler,
        )
        self._updates.on_step = self._after_step
        self._is_begun = False
        self._summaries: dict[str, str] = {}
        self._log_every, self._config = log_every, config
        self._diagnosis = None if diagnosis is None else verdict_of(diagnosis)
        self._pace = Pace()
        self._books = Books([JsonLines()] if trackers is None else trackers, is_kept_here=this_rank() == 0)
        self._counters: dict[str, Any] = {"evaluations": 0, "without_better": 0, "is_stopped": False}
        self.checkpoint = Checkpointer(
            self.folder / "checkpoints",
            model=model,
            optimizer=optimizer,
            scheduler={**schedulers, **epoch_schedulers},
            scaler=scaler,
            loader=train,
            extra={
                **(extra or {}),
                "loop": self._counters,
                "loop_updates": self._updates.state,
                "loop_trackers": self._books,
            },
            generators=generators,
            every=every,
            every_s=every_s,
            best=better,
            config=config,
            data=data,
        )
        self.history: list[dict[str, float]] = []
        """Values of each evaluation in this process, in their order."""

    @property
    def steps(self) -> int:
        """Optimizer steps done."""
        return self.checkpoint.steps

    @property
    def epoch(self) -> int:
        """The epoch at hand, from 0."""
        return self.checkpoint.epoch

    @property
    def restored(self) -> Restored | None:
        """What this run went on from; None: it began."""
        return self.checkpoint.restored

    @property
    def values(self) -> dict[str, float]:
        """Loss, learning rate and what else was given, of the newest optimizer step; means over its batches."""
        return dict(self._updates.values)

    @property
    def is_stopped(self) -> bool:
        """Whether `patience` was at its end."""
        return bool(self._counters["is_stopped"])

    def __iter__(self) -> Generator[Step]:
        """Yields the steps still to do; evaluates, saves and stops in between."""
        if self._is_unsaid:
            warnings.warn(
                "this run has no evaluation set: nobody will see whether the model learns or memorises. "
                "Loop(..., evaluate=val_loader, measure=...), or evaluate=None to say that it is meant",
                LoopWarning,
                stacklevel=2,
            )
        status = "failed"
        try:
            if not self._is_begun and self.checkpoint.restore() is None and self._is_looked_at:
                yield from self._look()
            self._is_begun = True
            self._books.start(self._info())
            for epoch in self.checkpoint.epochs(self._num_epochs):
                if self.is_stopped:
                    break
                if self.checkpoint.batch == 0:
                    for model in self.models.values():
                        model.train()
                yield from self._steps(epoch)
                self._end_epoch()
            status = "finished"
        except GeneratorExit:
            status = "killed"  # the loop over the steps was left: by a break, or by an error in its body
            raise
        finally:
            self._updates.leave()
            self._books.finish(status)

    def evaluate(
        self, measure: Measure | None = None, loader: Any = None, metrics: Mapping[str, Any] | None = None
    ) -> dict[str, float]:
        """Returns the values of an evaluation now; the training is not disturbed by it.

        Args:
            measure: As in the constructor, whose it is by default.
            loader: Its batches. Default: the constructor's `evaluate`.
            metrics: As in the constructor, whose they are by default.
        """
        chosen, batches = measure or self._measure, self._evaluation if loader is None else loader
        if chosen is None or batches is None or batches is UNSAID:
            raise ConfigurationError(
                "evaluate() has no loader or no measure", do="Loop(..., evaluate=..., measure=...)"
            )
        return evaluate(
            chosen,
            batches,
            models=self.models,
            metrics=self._metrics if metrics is None else metrics,
            ranks=self.checkpoint.ranks,
        )

    def close(self) -> None:
        """Waits for what is being written and gives everything back."""
        self._updates.close()
        self.checkpoint.close()

    # Within.

    def _steps(self, epoch: int) -> Iterator[Step]:
        for batch in self._pace.timed(self.checkpoint.batches()):
            step = Step(
                self._updates,
                batch,
                epoch=epoch,
                number=self.steps,
                info=getattr(self.train, "last", None),
                keep=self._keep,
            )
            self._check_modes()
            self._updates.enter()
            try:
                yield step
            finally:
                self._updates.leave()
            if not step.is_done:
                raise ConfigurationError(
                    f"the body of step {step.number} called neither step.update(loss) nor step.skip()",
                    why="the model would not learn from this batch, and nobody would notice",
                )

    def _keep(self, step: Step, reason: str) -> pathlib.Path:
        return keep_batch(self.folder, step, reason)

    def _look(self) -> Iterator[Step]:
        sanity = Sanity(
            self._updates,
            self.checkpoint,
            self.models,
            make_step=lambda updates, batch: Step(
                updates, batch, epoch=0, number=0, info=None, keep=self._keep, is_trial=True
            ),
            evaluation=(self._evaluation, self._measure) if self.has_evaluation and self._measure else None,
            metrics=self._metrics,
            data=getattr(self.train, "dataset", None),
        )
        try:
            yield from sanity.trials()
        finally:  # also if the body failed: it may say why
            for text in sanity.found:
                warnings.warn(text, LoopWarning, stacklevel=3)
        tables = {name: summary_of(self.models[name], inputs) for name, inputs in sanity.inputs.items()}
        self._summaries = {name: table for name, table in tables.items() if table is not None}

    def _check_modes(self) -> None:
        for name, model in self.models.items():
            if not model.training:
                raise ConfigurationError(
                    f"model{f' {name!r}' if name else ''} is in evaluation mode at the beginning of a training step",
                    why="dropout is off and batch norms do not learn; model.eval() was called in the body of the loop",
                    do="evaluate through loop.evaluate(...), which puts the mode back; or call model.train()",
                )

    def _after_step(self) -> None:
        # Into the books first: what a checkpoint keeps of the histories then includes the step that it is of.
        step = self.steps + 1
        if step % self._log_every == 0:
            self._books.log({**self._updates.values, "epoch": self.epoch, **self._pace.values()}, step)
        self.checkpoint.step()

    def _info(self) -> RunInfo:
        parameters = [one for model in self.models.values() for one in model.parameters()]
        contract = getattr(self.train, "contract", None)
        return RunInfo(
            name=self.folder.name,
            folder=self.folder,
            config=self._config if isinstance(self._config, Mapping) else {"config": self._config},
            facts={
                "environment": environment_here(self.checkpoint.ranks.world_size),
                "git": self.checkpoint.git,
                "data": {**self.checkpoint.data, **self.checkpoint.data.get("version", {})},
                "contract": None if contract is None else str(contract),
                "contract_digest": (contract_of(self.train) or {}).get("digest"),
                "parameters": sum(one.numel() for one in parameters),
                "trained_parameters": sum(one.numel() for one in parameters if one.requires_grad),
                **({} if self._diagnosis is None else {"diagnosis": self._diagnosis}),
                **({"summary": self._summaries} if self._summaries else {}),
            },
            resumed_at=None if self.restored is None else self.steps,
        )

    def _end_epoch(self) -> None:
        self._updates.finish()
        values: dict[str, float] = {}
        if self.has_evaluation:
            values = self.evaluate()
            self.history.append(values)
            self._books.log({f"evaluation/{name}": value for name, value in values.items()}, self.steps)
            self._judge(values)
        for scheduler in self._epoch_schedulers.values():
            takes_value = type(scheduler).__name__ == "ReduceLROnPlateau"
            scheduler.step(values[self._watched]) if takes_value else scheduler.step()
        metric = values.get(self._watched)
        is_better = metric is not None and self._counters["without_better"] == 0
        if is_better or self.is_stopped:
            self.checkpoint.save(metric=metric, reason="evaluated")

    def _judge(self, values: Mapping[str, float]) -> None:
        if self._watched not in values:
            raise ConfigurationError(
                f"the evaluation has no value {self._watched!r}; it has {', '.join(map(repr, values)) or 'none'}",
                do=f"Loop(..., watched={next(iter(values), 'loss')!r})",
            )
        self._counters["evaluations"] += 1
        is_better = self.checkpoint.is_better(values[self._watched])
        self._counters["without_better"] = 0 if is_better else self._counters["without_better"] + 1
        if self._patience is not None and self._counters["without_better"] >= self._patience:
            self._counters["is_stopped"] = True
            log.info("stopped: %s evaluations without a better %s", self._patience, self._watched)


def _check(
    *, accumulate: int, clip: float | None, precision: str, better: str, patience: int | None, epochs: int
) -> None:
    if accumulate < 1:
        raise ConfigurationError(f"accumulate={accumulate}: batches per optimizer step, 1 or more")
    if clip is not None and clip <= 0:
        raise ConfigurationError(f"clip={clip}: the largest norm of all gradients, more than 0")
    if precision not in PRECISIONS:
        raise ConfigurationError(f"precision={precision!r}", do=f"one of {', '.join(map(repr, PRECISIONS))}")
    if better not in {"min", "max"}:
        raise ConfigurationError(f"better={better!r}", do="'min' or 'max'")
    if patience is not None and patience < 1:
        raise ConfigurationError(f"patience={patience}: evaluations without a better value, 1 or more")
    if epochs < 0:
        raise ConfigurationError(f"epochs={epochs}: passes in all, 0 or more")


def _named(given: Any, prefix: str) -> dict[str, Any]:
    if given is None:
        return {}
    return {f"{prefix}.{name}": one for name, one in given.items()} if isinstance(given, Mapping) else {prefix: given}


def _scaler(precision: str, device_type: str) -> Any:
    if precision != "fp16":
        return None
    import torch

    return torch.amp.GradScaler(device_type)
