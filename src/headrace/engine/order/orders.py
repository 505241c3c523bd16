"""The orders an epoch can have: shuffled by key, sequential, or listed by any sampler. All satisfy `protocols.Order`."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from headrace.engine.order.permutation import Indices, Permutation
from headrace.errors import ConfigurationError, SourceError, Where
from headrace.keys import derive_key

__all__ = ["ListedOrder", "SequentialOrder", "ShuffledOrder"]

ValueT = TypeVar("ValueT")


class _LastTwo(Generic[ValueT]):
    """Remembers the two values asked for last: the epoch in hand, and the one before or after it."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[Hashable, ValueT], ...] = ()

    def get(self, key: Hashable, make: Callable[[], ValueT]) -> ValueT:
        for kept_key, value in self._kept:
            if kept_key == key:
                return value
        value = make()
        self._kept = ((key, value), *self._kept[:1])  # replaced as a whole, so that threads never see half of it
        return value


class ShuffledOrder:
    """Every epoch in its own keyed permutation of [0, num_samples), in O(1) memory and with O(1) seek.

    Args:
        num_samples: N, from 1 to 2**48.

    Raises:
        ConfigurationError: N is out of range.
    """

    kind = "keyed-1"

    def __init__(self, num_samples: int) -> None:
        Permutation(num_samples, key=0)  # refuses a bad N now, not at the first batch
        self._num_samples = num_samples
        self._permutations: _LastTwo[Permutation] = _LastTwo()

    def __len__(self) -> int:
        return self._num_samples

    def indices(self, seed: int, epoch: int, positions: Indices) -> Indices:
        """Returns the row number at each position of that epoch. Cost: see `Permutation`; ask for many at once."""
        return self._permutation(seed, epoch).forward(positions)

    def position_of(self, seed: int, epoch: int, indices: Indices) -> Indices:
        """Returns where in that epoch each row number stands."""
        return self._permutation(seed, epoch).inverse(indices)

    def digest(self, seed: int, epoch: int) -> None:
        """Returns None: seed and epoch say all about this order."""

    def _permutation(self, seed: int, epoch: int) -> Permutation:
        return self._permutations.get(
            (seed, epoch),
            lambda: Permutation(self._num_samples, derive_key("order", seed, epoch)),
        )


class SequentialOrder:
    """Row numbers 0, 1, 2, ... in every epoch.

    Args:
        num_samples: N, at least 1.

    Raises:
        ConfigurationError: N is less than 1.
    """

    kind = "sequential-1"

    def __init__(self, num_samples: int) -> None:
        if num_samples < 1:
            raise ConfigurationError(f"an order of {num_samples:,} positions cannot be made: it takes at least 1")
        self._num_samples = num_samples

    def __len__(self) -> int:
        return self._num_samples

    def indices(self, seed: int, epoch: int, positions: Indices) -> Indices:  # noqa: ARG002  # same for all of them
        """Returns the positions themselves (a copy, so that changing one array does not change the other)."""
        return np.array(positions, dtype=np.int64)

    def position_of(self, seed: int, epoch: int, indices: Indices) -> Indices:  # noqa: ARG002  # same for all of them
        """Returns the row numbers themselves."""
        return np.array(indices, dtype=np.int64)

    def digest(self, seed: int, epoch: int) -> None:
        """Returns None: there is nothing to say about this order."""


class ListedOrder:
    """The order that somebody else lists epoch by epoch: a torch sampler, a weighted draw, a file of row numbers.

    Each (seed, epoch) is listed once and kept as int64 (8 bytes a position) while it is one of the last two in use.

    Args:
        kind: Name of the algorithm for saved states, e.g. `torch-RandomSampler`.
        list_epoch: Called with (seed, epoch); returns the row numbers of that epoch. Its own exceptions pass unchanged.
        num_positions: N', the length that every epoch must have; at least 1.
        num_samples: Number of rows; row numbers must lie in [0, num_samples). Default: not checked.

    Raises:
        ConfigurationError: num_positions is less than 1.
    """

    def __init__(
        self,
        kind: str,
        list_epoch: Callable[[int, int], Sequence[int]],
        num_positions: int,
        num_samples: int | None = None,
    ) -> None:
        if num_positions < 1:
            raise ConfigurationError(f"an order of {num_positions:,} positions cannot be made: it takes at least 1")
        self._kind = kind
        self._list_epoch = list_epoch
        self._num_positions = num_positions
        self._num_samples = num_samples
        self._epochs: _LastTwo[Indices] = _LastTwo()
        self._digests: _LastTwo[str] = _LastTwo()

    @property
    def kind(self) -> str:
        """Name of the algorithm, as given."""
        return self._kind

    def __len__(self) -> int:
        return self._num_positions

    def indices(self, seed: int, epoch: int, positions: Indices) -> Indices:
        """Returns the row number at each position of that epoch.

        Raises:
            SourceError: The list has another length than announced, or holds something that is no row number.
        """
        return self._epoch(seed, epoch)[positions]

    def digest(self, seed: int, epoch: int) -> str:
        """Returns 16 hexadecimal digits that stand for the whole order of that epoch: a resumed run compares them.

        Raises:
            SourceError: As `indices`.
        """
        return self._digests.get((seed, epoch), lambda: self._digest(seed, epoch))

    def _digest(self, seed: int, epoch: int) -> str:
        listed = self._epoch(seed, epoch).astype("<i8", copy=False)
        return hashlib.blake2b(listed.tobytes(), digest_size=8, person=b"headrace-order").hexdigest()

    def _epoch(self, seed: int, epoch: int) -> Indices:
        return self._epochs.get((seed, epoch), lambda: self._checked(self._list_epoch(seed, epoch), seed, epoch))

    def _checked(self, listed: Sequence[int], seed: int, epoch: int) -> Indices:
        """Returns the list as an array, or refuses it with the first offending place."""
        where = Where(stage=f"sampler {self._kind}", epoch=epoch, seed=seed)
        if len(listed) != self._num_positions:
            raise SourceError(
                f"the sampler listed {len(listed):,} samples for an epoch that should have {self._num_positions:,}",
                where=where,
                do="make len(sampler) the number of samples that one pass over it yields, the same in every epoch",
            )
        array = _as_indices(listed, where)
        if self._num_samples is not None:
            is_wrong = (array < 0) | (array >= self._num_samples)
            if is_wrong.any():
                place = int(is_wrong.argmax())
                raise SourceError(
                    f"the sampler listed row {int(array[place]):,}; the data set has rows 0 to {self._num_samples - 1:,}",
                    where=Where(stage=where.stage, epoch=epoch, position=place, seed=seed),
                )
        return array


def _as_indices(listed: Any, where: Where) -> Indices:
    """Returns whole numbers of any kind (Python's, numpy's, tensors of one element) as int64."""
    if isinstance(listed, np.ndarray) and listed.dtype.kind in "iu":
        return listed.astype(np.int64)
    try:
        return np.fromiter(map(operator.index, listed), dtype=np.int64, count=len(listed))
    except (TypeError, OverflowError):
        for place, value in enumerate(listed):
            try:
                fits = -(2**63) <= operator.index(value) < 2**63
            except TypeError:
                fits = False
            if not fits:
                raise SourceError(
                    f"the sampler listed {value!r} ({type(value).__name__}), which is no row number",
                    where=Where(stage=where.stage, epoch=where.epoch, position=place, seed=where.seed),
                ) from None
        raise
