"""Do two threads of one process run this work at once, or does the interpreter lock let only one go on?"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from headrace.engine.run import no_mark
from headrace.observe import Clock, monotonic
from headrace.protocols import Task

__all__ = ["speedup_by_threads"]

_MAX_ROUNDS = 5


def speedup_by_threads(
    task: Task[Any, Any], orders: Sequence[Any], *, budget_s: float = 0.5, clock: Clock = monotonic
) -> float | None:
    """Returns how many times as fast two threads do two orders as one thread does; None if an order fails.

    About 2 where the work releases the lock, about 1 where it holds it; the best of several rounds, since whatever
    else runs can only hide a gain. One core hides it as well: ask only where there are two.

    Args:
        task: Open already, and safe to run in several threads.
        orders: At least two; their results are thrown away.
        budget_s: Seconds after which no further round begins; the first one may take longer.
        clock: Seconds.
    """
    first, second = orders[:2]
    failures: list[BaseException] = []

    def work(*mine: Any) -> None:
        try:
            for order in mine:
                task.run(order, no_mark)
        except BaseException as error:
            failures.append(error)

    def seconds(*shares: tuple[Any, ...]) -> float:
        threads = [threading.Thread(target=work, args=share, name="headrace-probe", daemon=True) for share in shares]
        started_s = clock()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(clock() - started_s, 1e-9)

    deadline = clock() + budget_s
    speedup = 0.0
    for _ in range(_MAX_ROUNDS):
        speedup = max(speedup, seconds((first, second)) / seconds((first,), (second,)))
        if failures:
            return None
        if clock() >= deadline:
            break
    return speedup
