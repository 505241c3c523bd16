"""Looks at a training step before anything is measured under it: whether it is there, and takes a batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.outside import UserTraceback
from headrace.doctor.stacks import user_traceback
from headrace.doctor.subject import Subject
from headrace.doctor.timing.consumer import Consumer
from headrace.errors import TargetError

__all__ = ["CheckStep", "raise_refusal"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why it is no step."""

    error: TargetError
    stack: str | None
    """Where the user's own code failed, if it did."""


@dataclasses.dataclass(frozen=True, slots=True)
class CheckStep:
    """The experiment; yields a Refusal, or nothing. The step is not called."""

    name: ClassVar[str] = "looking at the training step"
    starts_processes: ClassVar[bool] = False

    consumer: Consumer

    def run(self, subject: Subject, bench: Bench) -> Iterator[Refusal]:  # noqa: ARG002 - it is about no loader
        """Checks it."""
        try:
            self.consumer.check()
        except TargetError as error:
            yield Refusal(error=error, stack=None if error.__cause__ is None else user_traceback(error.__cause__))


def raise_refusal(records: Iterable[Any]) -> None:
    """Raises in this process what a check found.

    Raises:
        TargetError: there is no such step, or it takes no batch.
    """
    for record in records:
        if isinstance(record, Refusal):
            raise record.error from (None if record.stack is None else UserTraceback(record.stack))
