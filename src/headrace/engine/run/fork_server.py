"""The server that forks workers under "forkserver": started with what they need already imported.

A server that has imported nothing forks workers that each import everything, for half a second, every time. What the
server has imported, every worker has when it starts, and shares in memory.
"""

from __future__ import annotations

import multiprocessing.forkserver
from collections.abc import Sequence

__all__ = ["ensure_server"]

_DEFAULT = ["__main__"]


def ensure_server(modules: Sequence[str]) -> None:
    """Starts multiprocessing's server, unless it runs, and has it import our modules first.

    The server is one for the whole program. So a list that the program itself has set (`set_forkserver_preload`) is
    left as it is, and ours is taken back at once: a server that somebody starts later has nothing of ours.

    Args:
        modules: Names of modules without side effects; the server passes over those that it cannot import.
    """
    server = multiprocessing.forkserver._forkserver
    if getattr(server, "_preload_modules", None) != _DEFAULT:
        multiprocessing.forkserver.ensure_running()
        return
    multiprocessing.forkserver.set_forkserver_preload([*_DEFAULT, *modules])
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        multiprocessing.forkserver.set_forkserver_preload(_DEFAULT)
