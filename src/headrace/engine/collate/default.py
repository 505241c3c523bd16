"""torch's own rules for joining samples; when they fail, an error that names the sample and the field.

The joining itself is torch's, or `wide`'s for samples of many fields: whatever torch accepts gives exactly what it gives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.contract.view import flatten
from headrace.engine.batch_memory import MIN_BYTES, batch_memory, is_sent_away
from headrace.engine.collate.difference import first_difference, to_error
from headrace.engine.collate.wide import is_wide, join_wide
from headrace.engine.torch_rules import has_torch_rules
from headrace.errors import CollateError, HeadraceError, SampleId, Where

if TYPE_CHECKING:
    import torch

__all__ = ["default_collate", "default_convert", "explain_failure", "is_ours"]

LEAST_BYTES = 1 << 14
"""Batches of a field below this are joined by torch as they are, also where memory could be lent for them."""


def default_collate(samples: list[Any]) -> Any:
    """Returns the batch that `torch.utils.data.default_collate` makes.

    Second-to-last stage: after the transforms, before the transfer.

    Args:
        samples: B samples of one structure; tensors, arrays and numbers get an axis B in front, text is collected.

    Raises:
        CollateError: names the first place that differs, the field and both sides; torch's error is its cause.

    >>> default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.], dtype=torch.float64), 'name': ['a', 'b']}
    """
    try:
        if is_wide(samples[0]) and has_torch_rules():
            with contextlib.suppress(Exception):  # torch's rules fail as well, and say why
                return join_wide(samples, _join)
        return _join(samples)
    except Exception as error:
        explained = explain_failure(samples, None, error)
        if explained is None:
            raise
        raise explained from error


def _join(samples: Sequence[Any]) -> Any:
    """Joins by torch's rules, the same in a worker as in the main process.

    In a worker, torch's own rule for tensors stacks into shared memory that it makes anew for every field, for its own
    way of sending. Here that would be wasted work; and the memory has the dtype of the first sample, so that samples of
    mixed dtypes would give other bytes than in the main process.
    """
    import torch
    from torch.utils.data._utils import collate as rules

    join: Callable[..., Any] = rules.collate  # untyped in torch
    known = rules.default_collate_fn_map
    is_plain = known.get(torch.Tensor) is rules.collate_tensor_fn  # and not the user's own rule
    return join(samples, collate_fn_map={**known, torch.Tensor: _stack} if is_plain else known)


def _stack(tensors: list[torch.Tensor] | tuple[torch.Tensor, ...], *, collate_fn_map: Any = None) -> Any:
    """Torch's rule for tensors, but for where large results are made."""
    import torch
    from torch.utils.data._utils import collate as rules

    first = tensors[0]
    if first.is_nested or first.layout is not torch.strided:
        return rules.collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)  # refuses them, in its own words
    num_bytes = first.nbytes * len(tensors)
    if num_bytes < (LEAST_BYTES if is_sent_away() else MIN_BYTES) or not all(
        type(tensor) is torch.Tensor
        and tensor.dtype is first.dtype
        and tensor.shape == first.shape
        and tensor.is_contiguous()
        and not tensor.requires_grad
        and tensor.device.type == "cpu"
        for tensor in tensors
    ):
        return torch.stack(tensors, 0)
    memory = torch.from_numpy(batch_memory((num_bytes,), np.uint8))
    out = memory.view(first.dtype).view(len(tensors), *first.shape)
    return torch.stack(tensors, 0, out=out)


def default_convert(sample: Any) -> Any:
    """Returns one sample with its arrays as tensors, as `torch.utils.data.default_convert` does: batch_size=None.

    Raises:
        CollateError: names the field that torch cannot hold, e.g. an array of a record dtype.
    """
    from torch.utils import data

    convert: Callable[[Any], Any] = data.default_convert  # untyped in torch
    try:
        return convert(sample)
    except Exception as error:
        for field, value in flatten(sample):
            try:
                convert(value)
            except Exception as reason:
                dtype = getattr(value, "dtype", type(value).__qualname__)
                raise CollateError(
                    f"field {field} cannot become a tensor: {type(value).__qualname__} of dtype {dtype}",
                    where=Where(field=field, stage="default_convert"),
                    why=str(reason),
                    do="convert it in the data set or in a transform",
                ) from error
        raise


def explain_failure(
    samples: Sequence[Any],
    sample_ids: Sequence[SampleId] | None,
    error: BaseException,
    collate_name: str = "default_collate",
    *,
    where: Where | None = None,
) -> CollateError | None:
    """Returns an error that names the first two samples that do not join, and the field; None if none is found.

    Args:
        samples: (B,) samples that were given to collate.
        sample_ids: (B,) their identities; None: places in the batch are named.
        error: What collate raised. If it knows the difference already, that is the one that is named.
        collate_name: Who joins.
        where: What else is known about the place: epoch, rank, worker.

    Only torch's rules are known here. A user's own collate function may want samples that differ.
    """
    if isinstance(error, HeadraceError):  # made here or by ContractCollate: it knows best, but for the names
        difference = error.difference if isinstance(error, CollateError) else None
        collate_name = (error.where and error.where.stage) or collate_name
    else:
        difference = first_difference(samples)
    return None if difference is None else to_error(difference, sample_ids, collate_name, where)


def is_ours(collate: Any) -> bool:
    """True for the two functions above; by identity, because a user's own callable may not be hashable or comparable."""
    return collate is default_collate or collate is default_convert
