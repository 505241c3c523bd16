"""What the end of a process means, in words. Pure."""

from __future__ import annotations

import signal

from headrace.errors import ConfigurationError, Where, WorkerDied

__all__ = ["UNGUARDED_STATUS", "death_error", "unguarded_error"]

UNGUARDED_STATUS = 86
"""Exit status of a worker whose start would run the user's whole script again; not one of the usual ones."""

_REASONS: dict[int, tuple[str, tuple[str, ...]]] = {
    signal.SIGKILL: (
        "probably the kernel's out-of-memory killer: it ends the process that holds most memory",
        (
            "dmesg | tail    # says 'Out of memory: Killed process' if so",
            "num_workers and prefetch_factor smaller, or fewer large Python objects in the data set",
        ),
    ),
    signal.SIGBUS: (
        "probably shared memory is full, or a memory-mapped file became shorter",
        ("df -h /dev/shm    # in a container: more of it with --shm-size",),
    ),
    signal.SIGTERM: ("something outside asked it to end: a batch system, a supervisor, a person", ()),
}
_CRASH = "native code (a decoder, an extension) crashed; Python cannot catch that"


def death_error(worker: int, exitcode: int | None, where: Where, *, has_started: bool, stack: str) -> WorkerDied:
    """Returns the error for a worker process that ended without an answer.

    Args:
        worker: Its number.
        exitcode: As multiprocessing says it: negative = minus the signal; None = not known.
        where: What it had in hand.
        has_started: False if it died before it ran any of our code.
        stack: What it wrote about its crash; may be empty.
    """
    how, why, fixes = _meaning(exitcode)
    if not has_started:
        how += " while starting"
        why = "its own traceback is printed above, if Python could still print one"
    if stack:
        why += "\n         it stood here:\n" + "\n".join(f"           {line}" for line in stack.splitlines())
    # First of all the one sample again: seeing it fail alone is worth more than any guess.
    replay = (where.replay,) if where.replay else ()
    error = WorkerDied(f"worker {worker} {how}", where=where, why=why, do=(*replay, *fixes))
    error.exitcode = exitcode  # type: ignore[attr-defined] # a plain value for programs; errors hold their fields in __dict__
    return error


def _meaning(exitcode: int | None) -> tuple[str, str, tuple[str, ...]]:
    if exitcode is None:
        why = "how is not known: something else in this program waited for it, or code in it closed its pipe"
        return "ended", why, ()
    if exitcode >= 0:
        why = "code in the worker ended the interpreter, e.g. by os._exit()"
        return f"ended with exit status {exitcode}", why, ()
    why, fixes = _REASONS.get(-exitcode, (_CRASH, ()))
    return f"was ended by {_signal_name(-exitcode)}", why, fixes


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unguarded_error(method: str) -> ConfigurationError:
    """Returns the error for a script that starts its loop while it is imported."""
    return ConfigurationError(
        f"the main script must not start its loop on import, because workers started by {method!r} import it",
        why="each worker ran the whole script again, up to this loader",
        do=(
            'put what the script does under:  if __name__ == "__main__":',
            'multiprocessing_context="fork"    # workers inherit the script\'s state instead of importing it',
        ),
    )
