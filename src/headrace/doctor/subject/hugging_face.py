"""Hugging Face `datasets` in streaming mode. A map-style `Dataset` is a data set with row numbers like any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.doctor.subject.looking import descends_from
from headrace.doctor.subject.torch_loader import TorchStream
from headrace.doctor.subject.walking import key_in
from headrace.errors import SampleId

__all__ = ["HuggingFaceStream"]

ID_COLUMNS = ("id", "idx")
"""Columns by which data sets of the hub usually number or name their rows."""


class HuggingFaceStream(TorchStream):
    """A `datasets.IterableDataset`, also one that does not descend from torch because torch is not there."""

    @classmethod
    def holds(cls, target: Any) -> bool:
        return descends_from(target, "datasets", "IterableDataset")

    def key_of(self, sample: Any) -> SampleId | None:
        if isinstance(sample, Mapping):
            for name in ID_COLUMNS:
                value = sample.get(name)
                if isinstance(value, (str, int)) and not isinstance(value, bool):
                    return f"{name} {value}"
        return key_in(sample)
