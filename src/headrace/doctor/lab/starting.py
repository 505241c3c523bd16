"""What the lab asks of a way to start a child, and what every child inherits."""

from __future__ import annotations

import dataclasses
from typing import Protocol

__all__ = ["Descriptors", "Launcher", "Process"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """What a child inherits, as numbers in the starting process."""

    connection: int
    recorder: int
    dump: int
    output: int
    """Its standard output and error."""


class Process(Protocol):
    """What the lab needs of a running child, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int:
        """Its number."""
        ...

    def poll(self) -> int | None:
        """Exit status, or minus the signal; None while it lives."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end, or raises `subprocess.TimeoutExpired`."""
        ...

    def send_signal(self, sig: int) -> None:
        """Nothing happens if it has ended."""
        ...


class Launcher(Protocol):
    """Starts children."""

    def start(self, descriptors: Descriptors) -> Process:
        """Returns a child that runs `doctor.lab.inside` on these descriptors."""
        ...

    def close(self) -> None:
        """Gives back what it keeps between children."""
        ...
