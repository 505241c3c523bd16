"""Checks of the numbers that runners take."""

from __future__ import annotations

from headrace.errors import ConfigurationError

__all__ = ["check_numbers"]


def check_numbers(num_workers: int, prefetch_factor: int, timeout_s: float) -> None:
    """Refuses what no runner with workers can do.

    Raises:
        ConfigurationError: a number is out of range; names it and both values.
    """
    for name, value in (("num_workers", num_workers), ("prefetch_factor", prefetch_factor)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigurationError(f"{name} must be an integer of at least 1, not {value!r}")
    if not timeout_s >= 0:
        raise ConfigurationError(f"timeout must be at least 0 seconds (0 = wait for ever), not {timeout_s!r}")
