"""The loader with nothing to load: same workers, same sampler, same batches, samples that cost nothing."""

from __future__ import annotations

import importlib
from typing import Any

from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import is_headrace, is_torch
from headrace.doctor.timing.realise import with_changes

__all__ = ["with_tiny_samples"]


def with_tiny_samples(subject: Subject, loader: Any) -> Any:
    """Returns a realised loader with constant samples in the place of the data set's, joined by the default rules.

    Raises:
        CannotExamine: its data set cannot be taken out.
    """
    if not (is_torch(loader) or is_headrace(loader)):
        raise CannotExamine(
            f"the data set of {subject.kind} cannot be taken out, so handing over cannot be timed alone"
        )
    tiny = importlib.import_module("headrace.doctor.timing.tiny")
    size = subject.num_samples
    dataset = tiny.TinyStream(size) if subject.is_iterable else tiny.TinyRows(size or 0)
    if is_headrace(loader):
        again = Subject(loader)
        workers = loader.num_workers
        kept = {"dataset": dataset, "collate_fn": None, "contract": None, "worker_init_fn": None}
        return again.with_workers(workers, pin_memory=loader.pin_memory, **kept)
    torch_data = importlib.import_module("torch.utils.data")
    join = torch_data.default_collate if subject.joins_samples else torch_data.default_convert
    if getattr(loader, "batch_sampler", None) is None and loader.batch_size is None:
        join = torch_data.default_convert
    return with_changes(subject, loader, dataset=dataset, collate_fn=join, worker_init_fn=None)
