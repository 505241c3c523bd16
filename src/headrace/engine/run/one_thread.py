"""One thread of computation per worker: W workers that each start a thread per core would only wait for each other.

PyTorch's workers have one thread of torch; the same holds here for what else computes in data sets: BLAS and OpenMP
below numpy and scipy, OpenCV, numexpr. Libraries that are loaded are told so, libraries that are loaded later find it
in the environment of the worker. All of that happens before `worker_init_fn`, which may therefore say otherwise.
"""

from __future__ import annotations

import os
import sys

from threadpoolctl import ThreadpoolController

__all__ = ["compute_by_one_thread"]

_VARIABLES = {
    "openmp": ("OMP_NUM_THREADS",),
    "blas": ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "numexpr": ("NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"),
    "opencv": ("OPENCV_FOR_THREADS_NUM",),
}
"""Kind of library -> where people say how many threads it shall have. What they said stays."""


def compute_by_one_thread() -> None:
    """Limits the libraries of this process to one thread, each unless the environment says how many it shall have.

    Torch is limited in any case, as PyTorch does it: OMP_NUM_THREADS is mostly meant for the process that trains.

    Cost: 1 ms, and 5 ms more for finding the libraries that torch has loaded.
    """
    is_said = {kind: any(name in os.environ for name in names) for kind, names in _VARIABLES.items()}
    is_said["blas"] = is_said["blas"] or is_said["openmp"]  # which BLAS libraries take for theirs as well
    loaded = ThreadpoolController()
    for kind in ("openmp", "blas"):
        if not is_said[kind]:
            loaded.select(user_api=kind).limit(limits=1)
    # Another worker of this process may just be importing it; the environment, see below, then says it.
    set_num_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
    if set_num_threads is not None:
        set_num_threads(1)
    set_cv2_threads = getattr(sys.modules.get("cv2"), "setNumThreads", None)
    if set_cv2_threads is not None and not is_said["opencv"]:
        set_cv2_threads(1)
    for kind, names in _VARIABLES.items():
        if not is_said[kind]:
            os.environ.update(dict.fromkeys(names, "1"))
