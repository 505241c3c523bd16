"""When a run is evaluated, which evaluation was the best, and when it has had enough of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import ConfigurationError

__all__ = ["Judge"]


class Judge:
    """Keeps what evaluations said of a run; decides by counts of steps, so a run that goes on decides alike.

    Args:
        has_evaluation: Whether there is an evaluation at all.
        every: Optimizer steps between two evaluations; None: one after each epoch.
        watched: Name of the value that counts.
        better: "min" or "max".
        patience: Evaluations without a better value after which to stop; None: never.

    Raises:
        ConfigurationError: an argument cannot work.
    """

    def __init__(
        self, *, has_evaluation: bool, every: int | None, watched: str, better: str, patience: int | None
    ) -> None:
        if better not in {"min", "max"}:
            raise ConfigurationError(f"better={better!r}", do="'min' or 'max'")
        if patience is not None and patience < 1:
            raise ConfigurationError(f"patience={patience}: evaluations without a better value, 1 or more")
        if every is not None and every < 1:
            raise ConfigurationError(f"evaluate_every={every}: optimizer steps between two evaluations, 1 or more")
        if every is not None and not has_evaluation:
            raise ConfigurationError(
                f"evaluate_every={every}, and there is nothing to evaluate on",
                do="Loop(..., evaluate=..., measure=...)",
            )
        self._has_evaluation, self._every = has_evaluation, every
        self._watched, self._patience = watched, patience
        self.state: dict[str, Any] = {
            "evaluations": 0,
            "without_better": 0,
            "is_stopped": False,
            "evaluated_at": None,
            "newest": None,
            "epochs": 0,
        }
        """Saved with the run. `evaluated_at`: optimizer steps at the newest evaluation, so that none is made twice;
        `newest`: its value, until it was taken; `epochs`: how many have been ended, evaluation and all."""

    @property
    def is_stopped(self) -> bool:
        """Whether `patience` is at its end."""
        return bool(self.state["is_stopped"])

    @property
    def why(self) -> str:
        """Why it was stopped, for people."""
        return f"{self.state['without_better']} evaluations without a better {self._watched!r} (patience)"

    def is_due(self, steps: int) -> bool:
        """Whether it is time to evaluate between two steps, and that was not done yet.

        Asked after each optimizer step, and by a run that goes on: it may have been cut just before it.
        """
        return self._every is not None and steps > 0 and steps % self._every == 0 and self._is_new(steps)

    def is_due_after_epoch(self, steps: int, *, is_last: bool) -> bool:
        """Whether it is time to evaluate when an epoch is over; after the last one, what came of it all is always looked at."""
        if self._every is None:
            return self._has_evaluation
        return self.is_due(steps) or (is_last and self._is_new(steps))

    def note(self, values: Mapping[str, float], steps: int, *, is_better: Callable[[float], bool]) -> float | None:
        """Takes the values of an evaluation; returns the one that counts, if it is worth a checkpoint.

        That is the best so far, and the one at which the run is stopped.

        Args:
            values: By name.
            steps: Optimizer steps done.
            is_better: Whether a value is better than the best that was saved.

        Raises:
            ConfigurationError: the value that counts is not among them.
        """
        if self._watched not in values:
            raise ConfigurationError(
                f"the evaluation has no value {self._watched!r}; it has {', '.join(map(repr, values)) or 'none'}",
                do=f"Loop(..., watched={next(iter(values), 'loss')!r})",
            )
        value = values[self._watched]
        is_best = is_better(value)
        self.state["evaluations"] += 1
        self.state["evaluated_at"], self.state["newest"] = steps, value
        self.state["without_better"] = 0 if is_best else self.state["without_better"] + 1
        if self._patience is not None and self.state["without_better"] >= self._patience:
            self.state["is_stopped"] = True
        return value if is_best or self.is_stopped else None

    def take_newest(self) -> float | None:
        """Returns the value of the newest evaluation, once; None: there was none since."""
        newest: float | None = self.state["newest"]
        self.state["newest"] = None
        return newest

    def _is_new(self, steps: int) -> bool:
        return bool(self.state["evaluated_at"] != steps)
