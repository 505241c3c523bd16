"""`headrace.Loop`: a training loop whose body is the user's, and whose order, state and books are right."""

from __future__ import annotations

import os
import pathlib
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.engine.loader import DataLoader
from headrace.engine.view import LoaderView
from headrace.errors import ConfigurationError, LoopWarning
from headrace.loop.books import Books
from headrace.loop.checkpoint import Checkpointer, Restored
from headrace.loop.checkpoint.agreed import contract_of
from headrace.loop.checkpoint.environment import environment_here
from headrace.loop.checkpoint.ranks import this_rank
from headrace.loop.diagnosis import verdict_of
from headrace.loop.evaluation import Measure, evaluate
from headrace.loop.judge import Judge
from headrace.loop.pace import Pace
from headrace.loop.replay import keep_batch
from headrace.loop.sanity import Sanity
from headrace.loop.step import Step
from headrace.loop.summary import summary_of
from headrace.loop.trackers import JsonLines, RunInfo, Tracker
from headrace.loop.updates import Updates

if TYPE_CHECKING:
    import torch

    from headrace.loop.versions.version import DataVersion

__all__ = ["Loop"]

UNSAID: Any = object()


class Loop:
    """Trains: the body computes a loss, the loop does the rest, and a killed run goes on as if it had not been.

        loop = hr.Loop(model, optimizer, train=loader, epochs=10, folder="runs/digits", evaluate=val_loader, measure=measure)
        for step in loop:
            loss = loss_fn(model(step.batch["image"]), step.batch["label"])
            step.update(loss)

    `update` does, in this order: backward, clip, optimizer step, scheduler step, clear gradients. Behind the body, where it is
    time, the model is evaluated and all is saved; after each epoch the schedulers of epochs are stepped.

    Args:
        model: The module that is trained; or several, by name.
        optimizer: Its optimizer; or several, by name, that take each step together.
        train: The loader; each pass is an epoch.
        epochs: Passes in all.
        folder: Of the run: checkpoints, history, batches that failed.
        evaluate: A loader to evaluate on; None says that there is none on purpose. If it is left out, a warning says so at
            the start of each run.
        evaluate_every: Optimizer steps between two evaluations, in place of one after each epoch; after the last epoch one is
            made, too. Default None: after each epoch, when each sample has been learned from equally often, so that two
            values differ by what was learned and not by what was seen last. For epochs of hours, say a number.
        measure: From a batch to values by name, for the evaluation: (B,) tensors with one value per sample, or means over
            the batch. Needed with `evaluate`.
        metrics: Further metrics of the evaluation, which `measure` updates: objects like those of torchmetrics.
        scheduler: Stepped after each optimizer step; or several, by name.
        epoch_scheduler: Stepped after each epoch. One that takes a value (ReduceLROnPlateau) gets that of `watched` of the
            newest evaluation, and waits through epochs without any, in which nothing is known to be worse.
        accumulate: Batches per optimizer step. Default 1.
        clip: Largest norm of all gradients together. Default: not clipped.
        precision: "full" (default), "bf16" or "fp16" (with a GradScaler).
        watched: Name of the evaluated value that says which checkpoint is best, and when to stop.
        better: "min" (default) or "max": which values of it are better.
        patience: Evaluations without a better value after which to stop, in mid-epoch too. Default: never.
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
        ConfigurationError: arguments that cannot work, alone or together; an optimizer that needs a closure (LBFGS).
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
        evaluate_every: int | None = None,
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
        if epochs < 0:
            raise ConfigurationError(f"epochs={epochs}: passes in all, 0 or more")
        self._is_unsaid, self._is_looked_at = evaluate is UNSAID, sanity
        self.has_evaluation = evaluate is not UNSAID and evaluate is not None
        self.train, self._evaluation, self._measure, self._metrics = train, evaluate, measure, metrics
        self._judge = Judge(
            has_evaluation=self.has_evaluation,
            every=evaluate_every,
            watched=watched,
            better=better,
            patience=patience,
        )
        self.models = _named(model)
        schedulers = _named(scheduler, "step")
        self._epoch_schedulers = _named(epoch_scheduler, "epoch")
        self._check_evaluation(evaluate_every)
        self._updates = Updates(
            self.models,
            list(_named(optimizer).values()),
            list(schedulers.values()),
            list(self._epoch_schedulers.values()),
            accumulate=accumulate,
            clip=clip,
            precision=precision,
        )
        self._updates.on_step = self._after_step
        self.folder, self._num_epochs = pathlib.Path(folder), epochs
        self._is_begun = self._goes_on = False
        self._summaries: dict[str, str] = {}
        self._log_every, self._config = log_every, config
        self._diagnosis = None if diagnosis is None else verdict_of(diagnosis)
        self._pace = Pace()
        self._books = Books([JsonLines()] if trackers is None else trackers, is_kept_here=this_rank() == 0)
        self.checkpoint = Checkpointer(
            self.folder / "checkpoints",
            model=model,
            optimizer=optimizer,
            scheduler={**schedulers, **self._epoch_schedulers},
            scaler=self._updates.scaler,
            loader=train,
            extra={
                **(extra or {}),
                "loop": self._judge.state,
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
        return self._judge.is_stopped

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
            if self._is_begun:
                self._goes_on = True
            else:
                self._goes_on = self.checkpoint.restore() is not None
                if self._is_looked_at and not self._goes_on:
                    yield from self._look()
            self._is_begun = True
            self._books.start(self._info())
            self._updates.begin()
            self._catch_up()
            for epoch in () if self.is_stopped else self.checkpoint.epochs(self._num_epochs):
                if self.checkpoint.next_epoch > epoch:
                    continue  # it was left behind its batches, and `_catch_up` has ended it
                if self.checkpoint.batch == 0:
                    for model in self.models.values():
                        model.train()
                yield from self._steps(epoch)
                if not self.is_stopped:
                    self._end_epoch()
                if self.is_stopped:
                    break  # here: the place stays where it is, in mid-epoch too
            status = "finished"
        except GeneratorExit:
            status = "killed"  # the loop over the steps was left: by a break, or by an error in its body
            raise
        finally:
            self._updates.leave()
            self._books.finish(status)
            if status == "finished" and self.is_stopped and self.checkpoint.ranks.is_first:
                print(f"stopped at step {self.steps:,}: {self._judge.why}", file=sys.stderr, flush=True)

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
        with self._pace.paused():
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
            self._updates.refuse_foreign_schedule()
            if self.steps > step.number:
                self._end_step()
            if self.is_stopped:
                return

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
        step = self.steps + 1
        if step % self._log_every == 0:
            self._books.log({**self._updates.values, "epoch": self.epoch, **self._pace.values()}, step)
        self.checkpoint.count_step()

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
            resumed_at=self.steps if self._goes_on else None,
            num_steps=self._num_steps(),
        )

    def _num_steps(self) -> int | None:
        try:
            return self._num_epochs * -(-len(self.train) // self._updates.accumulate)
        except TypeError:  # a stream
            return None

    def _end_step(self) -> None:
        """Behind a body that has taken a step: what it does after `update`, to an average of the weights say, is done too."""
        is_saved = False
        if self._judge.is_due(self.steps):
            self.checkpoint.save_if_due(only_asked=True)  # who asks by a signal cannot wait for an evaluation
            is_saved = self._save(self._evaluate_now())
        self.checkpoint.save_if_due(only_asked=is_saved)

    def _end_epoch(self) -> None:
        self._updates.finish()
        epochs = self.checkpoint.next_epoch
        worth = None
        if self._judge.is_due_after_epoch(self.steps, is_last=epochs >= self._num_epochs):
            worth = self._evaluate_now()
        newest = self._judge.take_newest()
        for scheduler in self._epoch_schedulers.values():
            if not _takes_value(scheduler):
                scheduler.step()
            elif newest is not None:
                scheduler.step(newest)
        self._judge.state["epochs"] = epochs
        self._save(worth)

    def _catch_up(self) -> None:
        """Does what was still to do when the run was cut: behind a step, or behind the batches of an epoch."""
        if self.is_stopped:
            return
        if self.checkpoint.next_epoch > self._judge.state["epochs"]:
            self._end_epoch()
        elif self._judge.is_due(self.steps):
            self._save(self._evaluate_now())

    def _evaluate_now(self) -> float | None:
        """Evaluates; returns the value that counts, if it is worth a checkpoint."""
        values = self.evaluate()
        self.history.append(values)
        self._books.log({f"evaluation/{name}": value for name, value in values.items()}, self.steps)
        return self._judge.note(values, self.steps, is_better=self.checkpoint.is_better)

    def _save(self, worth: float | None) -> bool:
        if worth is not None:
            self.checkpoint.save(metric=worth, reason="evaluated")
        return worth is not None

    def _check_evaluation(self, every: int | None) -> None:
        if self.has_evaluation and self._measure is None:
            raise ConfigurationError(
                "evaluate= is a loader, and measure= does not say what to compute of its batches",
                do='measure=lambda batch: {"loss": loss_fn(model(batch[0]), batch[1], reduction="none")}',
            )
        if self._evaluation is self.train and (
            isinstance(self.train, DataLoader | LoaderView)
            or (every is not None and not isinstance(self.train, list | tuple))
        ):
            raise ConfigurationError(
                "evaluate= is the loader that is trained on",
                why="an evaluation goes through it from its first batch, so the training would lose its place",
                do="make another loader over the same data",
            )
        if not self.has_evaluation and any(map(_takes_value, self._epoch_schedulers.values())):
            raise ConfigurationError(
                "epoch_scheduler= takes a value, and there is no evaluation that gives one",
                do="Loop(..., evaluate=..., measure=...)",
            )


def _takes_value(scheduler: Any) -> bool:
    import torch

    return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)


def _named(given: Any, prefix: str = "") -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return {prefix: given}
    return {f"{prefix}.{name}".lstrip("."): one for name, one in given.items()}
