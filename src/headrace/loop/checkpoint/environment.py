"""What exactness depends on beside the saved state: versions, devices, and the settings that choose kernels."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from typing import Any

from headrace.loop.versions.git import git_text

__all__ = ["environment_here", "git_revision", "numerical_differences"]

NUMERICAL = (
    "python",
    "torch",
    "numpy",
    "machine",
    "devices",
    "cpu_capability",
    "cuda",
    "cudnn",
    "world_size",
    "sharding",
    "threads",
    "deterministic",
    "cudnn_deterministic",
    "cudnn_benchmark",
    "matmul_precision",
    "tf32",
    "cublas_workspace",
)
"""Where two environments differ in one of these, the same step may give other bits."""


def environment_here(world_size: int) -> dict[str, Any]:
    """Returns versions, devices and settings of this process as plain values."""
    import numpy as np
    import torch

    on_cuda = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return {
        "headrace": importlib.metadata.version("headrace"),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "devices": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        if on_cuda
        else [],
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": torch.version.cuda if on_cuda else None,
        "cudnn": torch.backends.cudnn.version() if on_cuda else None,  # type: ignore[no-untyped-call]
        "world_size": world_size,
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "matmul_precision": torch.get_float32_matmul_precision(),
        "tf32": torch.backends.cudnn.allow_tf32,
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    }


def numerical_differences(saved: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Returns in words each difference after which the same step may give other bits."""
    return [
        f"{name.replace('_', ' ')}: {saved.get(name)} when saved, {here.get(name)} here"
        for name in NUMERICAL
        if saved.get(name) != here.get(name)
    ]


def git_revision(folder: str | os.PathLike[str] = ".") -> dict[str, Any] | None:
    """Returns the commit of the folder's repository and whether files differ from it; None: no repository, or no git."""
    commit = git_text(folder, "rev-parse", "HEAD")
    changed = git_text(folder, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None or changed is None else {"commit": commit, "changed": bool(changed)}
