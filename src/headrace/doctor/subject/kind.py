"""What the doctor asks of every kind of target. One subclass per library, each in a file of its own.

A kind says what it can do by what it overrides, and what it cannot do in `cannot`, in its user's words. None imports the
library that it is about: a target of a library exists only where the user has imported it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.subject.looking import length
from headrace.doctor.subject.walking import Walk, key_in
from headrace.errors import SampleId, TargetError

__all__ = ["CannotExamine", "Collate", "Kind"]

Collate = Callable[[list[Any]], Any]


class CannotExamine(TargetError):
    """This kind of target cannot be examined in this respect; the message is the reason."""


class Kind:
    """A target that can be walked again and again, and nothing else; subclasses say what else they can."""

    loader: Any = None
    """The torch or headrace DataLoader, whose attributes may be read under torch's names; None: there is none."""
    is_iterable = True
    """False: samples can be asked for one by one."""
    is_batched = False
    """True: what a pass delivers is batches."""
    batch_size: int | None = None
    """Samples per batch; None: no batching, or not known."""
    drop_last = False
    """True: the incomplete last batch is left out."""
    num_workers = 0
    """Worker processes; 0 = none."""
    joins_apart: Collate | None = None
    """The function that joins samples, if it can be called apart from the loader."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.dataset: Any = target

    @classmethod
    def holds(cls, target: Any) -> bool:
        """True if the target is of this kind."""
        raise NotImplementedError

    # What cannot be examined, in a user's words.

    @property
    def cannot(self) -> dict[str, str]:
        """Reasons by what cannot be done; the words are explained at `Subject.cannot`."""
        return {}

    # What it says of itself.

    @property
    def num_samples(self) -> int | None:
        """Samples in one pass; None: it does not say."""
        return None if self.is_batched else length(self.target)

    @property
    def num_batches(self) -> int | None:
        """Batches in one pass; None: it does not say, or has none."""
        return length(self.target) if self.is_batched else None

    # Passes.

    def epoch(self) -> Iterator[Any]:
        """Returns one pass as its user makes it."""
        return iter(self.target)

    def samples(self) -> Walk:
        """Returns one pass sample by sample, in this process."""
        return Walk(self.epoch(), splits=self.is_batched, batch_size=self.batch_size, key_of=self.key_of)

    @property
    def unbatched(self) -> Any:
        """What torch's workers can walk sample by sample."""
        return self.dataset

    def key_of(self, sample: Any) -> SampleId | None:
        """Returns the name that the format itself gives a sample; None: it gives none."""
        return key_in(sample)

    def with_workers(self, num_workers: int, **changes: Any) -> Any:
        """Returns the same loader again with another number of workers, as something that can be walked.

        Raises:
            CannotExamine: this kind has no number of workers to change.
        """
        del num_workers, changes
        raise CannotExamine(self.cannot["workers"])
