"""torch's own rules for joining samples; when they fail, an error that names the sample and the field.

The joining itself is torch's: whatever it accepts gives exactly what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.contract.view import flatten
from headrace.engine.collate.difference import first_difference, to_error
from headrace.errors import CollateError, HeadraceError, SampleId, Where

__all__ = ["default_collate", "default_convert", "explain_failure", "is_ours"]


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
        return _join(samples)
    except Exception as error:
        explained = explain_failure(samples, None, error)
        if explained is None:
            raise
        raise explained from error


def _join(samples: list[Any]) -> Any:
    """Joins by torch's rules, in a worker as in the main process.

    In a worker, torch's own rule for tensors stacks into shared memory that it makes anew for every field, for its own
    way of sending. Here that would be wasted work; and the memory has the dtype of the first sample, so that samples of
    mixed dtypes would give other bytes than in the main process.
    """
    import torch
    from torch.utils.data import default_collate as join
    from torch.utils.data import get_worker_info

    if get_worker_info() is None:
        return join(samples)
    from torch.utils.data._utils import collate as rules

    if rules.default_collate_fn_map.get(torch.Tensor) is not rules.collate_tensor_fn:  # the user's own rule
        return join(samples)

    def stack(tensors: list[torch.Tensor], *, collate_fn_map: Any = None) -> Any:
        if tensors[0].is_nested or tensors[0].layout is not torch.strided:
            return rules.collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)  # refuses them, in its own words
        return torch.stack(tensors, 0)

    return rules.collate(samples, collate_fn_map={**rules.default_collate_fn_map, torch.Tensor: stack})


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
