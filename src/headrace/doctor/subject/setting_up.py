"""Sets a data set up in this process as a worker would: some open their files only in `worker_init_fn`."""

from __future__ import annotations

import random
import sys
from typing import Any
from unittest import mock

__all__ = ["set_up_as_worker"]


def set_up_as_worker(loader: Any) -> bool:
    """Calls the loader's `worker_init_fn` as the first of its workers would, and leaves random numbers as they were.

    Returns:
        True if there is such a function, the loader has workers, and it did not fail.
    """
    init, count = getattr(loader, "worker_init_fn", None), getattr(loader, "num_workers", 0)
    workers: Any = sys.modules.get("torch.utils.data._utils.worker")
    if workers is None or not callable(init) or not count:
        return False
    torch: Any = sys.modules["torch"]
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    states = random.getstate(), torch.get_rng_state(), numpy_random and numpy_random.get_state()
    info = workers.WorkerInfo(id=0, num_workers=count, seed=torch.initial_seed(), dataset=loader.dataset)
    try:
        with mock.patch.object(workers, "_worker_info", info):
            init(0)
    except Exception:
        return False  # what it does is for a worker only
    finally:
        random.setstate(states[0])
        torch.set_rng_state(states[1])
        if numpy_random is not None:
            numpy_random.set_state(states[2])
    return True
