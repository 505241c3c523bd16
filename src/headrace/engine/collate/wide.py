"""Joins samples of many small fields, or of arrays: in one call per dtype and shape, not one per field or row.

The batch is the one of torch's default rules: values, dtypes, shapes, strides, types of containers, order of keys. What
is not known to give the same is joined by those rules, field by field: few tensors or large ones, more than two axes
(torch may lay images out channels last), dtypes that differ, tensors with gradients, text, anybody's own types.

A small field made here shares the memory of a block with the other fields of its dtype and shape (see `engine.blocks`).
What shows: while one is kept, all of them are, at most `MOST_BYTES` each; and torch cannot `resize_` it to a larger size.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace.engine import blocks
from headrace.engine.blocks import LEAST_FIELDS, MOST_BYTES, BlockKind

__all__ = ["is_wide", "join_wide"]

Rule = Callable[[Sequence[Any]], Any]
"""Joins the values of one field, or whole samples."""


_CONTAINERS = frozenset({dict, list, tuple})
_LEAST_TENSORS = 16  # as many of one kind save a tenth at 16 samples, 114 save a third
_MOST_SAMPLES = 64  # at 256 samples they cost a twentieth more
_MOST_ARRAY_BYTES = 1 << 20  # from about 4 MiB on, copying is all that counts


def is_wide(sample: Any) -> bool:
    """True if some part of a sample has many fields, or an array. Only plain dicts, lists and tuples are looked into."""
    if type(sample) is np.ndarray:
        return True
    if type(sample) not in _CONTAINERS:
        return False
    return len(sample) >= LEAST_FIELDS or any(map(is_wide, sample.values() if type(sample) is dict else sample))


def join_wide(samples: Sequence[Any], join_plainly: Rule) -> Any:
    """Returns what `join_plainly` would return.

    Args:
        samples: B samples of one structure.
        join_plainly: torch's rules, for the fields that are not joined here.

    Raises:
        Exception: the samples do not join. Nothing is said about why: `join_plainly` says it in torch's words.

    Cost, of what torch's rules take: 0.7 for 114 tensors of 10 numbers and B = 16, 0.1 for as many arrays, 0.4 for ints.
    """
    first = samples[0]
    if type(first) is np.ndarray:
        return _join_fields([(sample,) for sample in samples], join_plainly, column_type=list)[0]
    if type(first) is dict:
        pick = operator.itemgetter(*first) if len(first) > 1 else lambda sample: [sample[key] for key in first]
        rows = list(map(pick, samples))
        # Lists, as torch makes them of a dict's columns: text is collected in just that.
        return dict(zip(first, _join_fields(rows, join_plainly, column_type=list), strict=True))
    if type(first) in _CONTAINERS:
        return _join_fields(samples, join_plainly, column_type=tuple)  # a list for tuples too: torch's rule
    return join_plainly(samples)


def _join_fields(rows: Sequence[Sequence[Any]], join_plainly: Rule, column_type: type) -> list[Any]:
    """Returns the batch of each field; `rows` has the fields of each sample."""
    columns = list(zip(*rows, strict=True))
    batches: dict[int, Any] = {}
    for kind, places in _groups(rows[0], len(rows)):
        block = blocks.join(kind, list(itertools.chain.from_iterable([columns[place] for place in places])))
        if block is not None:
            fields = block.reshape(len(places), len(rows), *kind.shape)
            batches.update(zip(places, blocks.tensors(fields), strict=True))
    return [
        batches[place] if place in batches else _join_part(column_type(column), join_plainly)
        for place, column in enumerate(columns)
    ]


def _join_part(column: Sequence[Any], join_plainly: Rule) -> Any:
    return join_wide(column, join_plainly) if type(column[0]) in _CONTAINERS else join_plainly(column)


def _groups(fields: Sequence[Any], num_samples: int) -> Iterator[tuple[BlockKind, list[int]]]:
    """Yields the places of the fields that go together, by their kind in the first sample."""
    for kind, places in blocks.groups_of(fields).items():
        size_bytes = num_samples * kind.num_bytes
        if len(kind.shape) > 2 or size_bytes == 0:
            continue
        if size_bytes <= MOST_BYTES and _is_worth_it(kind, len(places), num_samples):
            yield kind, places
        elif kind.type is np.ndarray and size_bytes <= _MOST_ARRAY_BYTES:
            yield from ((kind, [place]) for place in places)  # each in a block of its own


def _is_worth_it(kind: BlockKind, num_fields: int, num_samples: int) -> bool:
    if kind.type is np.ndarray:
        return True  # torch makes a tensor of each first, which costs 2 us: 64 rows take a tenth of that together
    if kind.dtype is None:
        return num_fields >= LEAST_FIELDS
    # Tensors are joined no faster together. What is saved is a call per field, what is added is 20 ns per tensor.
    return num_fields >= _LEAST_TENSORS and num_samples <= _MOST_SAMPLES
