"""`headrace.diagnose`: the doctor from Python and notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from headrace.doctor.diagnose import Options
from headrace.doctor.diagnose import diagnose as _diagnose
from headrace.doctor.report.model import Report

__all__ = ["diagnose"]


def diagnose(
    target: Any,
    *,
    budget_s: float = 90.0,
    per_sample_s: float = 10.0,
    quick: bool = False,
    full: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    contract: str | os.PathLike[str] | None = None,
    num_classes: int | None = None,
) -> Report:
    """Examines a loader or data set without changing it, and names each fault with its sample.

    Args:
        target: A loader or data set, also one that exists only in a notebook; several as (train, val) or a dict; or
            the text `train.py:make_loader`, as on the command line.
        budget_s: Seconds for everything together; what is left out then is reported as skipped.
        per_sample_s: Seconds after which a sample is stuck.
        quick: Look at few samples: at most some 20 s.
        full: Try every sample.
        select: Codes, or beginnings of codes, of the only rules to judge.
        ignore: Codes, or beginnings of codes, of rules to leave out.
        contract: File of a contract to hold the samples against.
        num_classes: Number of classes, if the data set does not say it.

    Returns:
        The report: `report.findings` (each with code, message, sample_ids, where, fix), `report.exit_status`;
        `print(report.text())` shows it as the command does, a notebook shows it by itself.

    Raises:
        TargetError: it is nothing that can be examined.
        ConfigurationError: no rule has a selected code, or options exclude each other.

    The loader itself is not touched: it is examined in forks of this process (Linux, macOS), so neither random state,
    nor iterators, nor memory of the caller change, and a hang or a crash is a finding. An object that holds CUDA
    tensors cannot be examined this way; name its file instead.
    """
    options = Options(
        budget_s=budget_s,
        per_sample_s=per_sample_s,
        quick=quick,
        full=full,
        select=select,
        ignore=ignore,
        contract=contract,
        num_classes=num_classes,
    )
    return _diagnose(target, options, command=f"headrace.diagnose({target if isinstance(target, str) else '...'})")
