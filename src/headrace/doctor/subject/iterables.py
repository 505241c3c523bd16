"""What is no library's: Keras's and others' sequences of batches, and any object that can be walked again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.doctor.subject.kind import Kind
from headrace.doctor.subject.looking import attribute, descends_from, is_instance, length
from headrace.doctor.subject.torch_loader import STREAM

__all__ = ["BatchSequence", "Reiterable"]

IN_ONE_PROCESS = "what it does with workers, if anything, is inside it"


class BatchSequence(Kind):
    """`__len__` and `__getitem__` of batches: Keras's `Sequence` and `PyDataset`, and classes made after them."""

    is_batched = True

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        size = attribute(target, "batch_size")
        self.batch_size = size if isinstance(size, int) and not isinstance(size, bool) else None

    @classmethod
    def holds(cls, target: Any) -> bool:
        """By what Keras calls after each epoch; a data set of samples has no use for it."""
        kind = type(target)
        is_sequence = hasattr(kind, "__getitem__") and hasattr(kind, "__len__")
        if is_instance(target, "torch.utils.data", "Dataset"):  # its rows are samples, whatever it does after an epoch
            return False
        is_kerass = any(descends_from(target, name, "Sequence", "PyDataset") for name in ("keras", "tf_keras"))
        return is_sequence and (is_kerass or callable(getattr(kind, "on_epoch_end", None)))

    @property
    def cannot(self) -> dict[str, str]:
        return {
            "index": "rows of this sequence are batches: samples are taken out of them in order",
            "join": "the sequence joins samples itself: what comes out is joined already",
            "workers": "its workers are an option of fit(), not its own",
            "streams": "it is asked for batches by number, so workers cannot deliver one twice",
        }

    def epoch(self) -> Iterator[Any]:
        return _ByNumber(self.target)


class _ByNumber(Iterator[Any]):
    """Batch 0, batch 1, ...; one that fails does not end the pass."""

    def __init__(self, sequence: Any) -> None:
        self._sequence, self._next = sequence, 0

    def __next__(self) -> Any:
        if self._next >= len(self._sequence):
            raise StopIteration
        self._next += 1
        return self._sequence[self._next - 1]


class Reiterable(Kind):
    """Any object whose `__iter__` begins anew. Whether it delivers samples or batches, only a batch size can say."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        size = attribute(target, "batch_size")
        self.batch_size = size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None
        self.is_batched = self.batch_size is not None

    @classmethod
    def holds(cls, target: Any) -> bool:
        kind = type(target)
        if isinstance(target, (str, bytes, bytearray, type, dict, set, frozenset)):
            return False
        return hasattr(kind, "__iter__") and not hasattr(kind, "__next__")

    @property
    def cannot(self) -> dict[str, str]:
        return {
            "index": STREAM,
            "join": "it is walked as it is: how samples are joined is inside it",
            "workers": IN_ONE_PROCESS,
            "streams": IN_ONE_PROCESS,
        }

    @property
    def num_samples(self) -> int | None:
        return None  # `len` may count samples or batches

    @property
    def num_batches(self) -> int | None:
        return length(self.target) if self.is_batched else None
