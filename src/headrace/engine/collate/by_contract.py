"""Joins samples by a contract: what is short is padded to the longest of the batch, and a mask says what is real.

Axes: `B` rows of the batch, `T` the dim that is padded; a mask has B and then the named dims of its field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.contract import Contract, Field
from headrace.contract.field import Dim, shape_text
from headrace.contract.view import flatten, view_form
from headrace.engine.collate.default import default_collate
from headrace.engine.collate.difference import Difference, to_error
from headrace.engine.collate.padding import Padding, fill_of
from headrace.errors import CollateError

__all__ = ["ContractCollate"]


@dataclasses.dataclass(frozen=True, slots=True)
class ContractCollate:
    """Joins samples by the contract of their fields.

    * Fields of fixed shape, numbers and text: exactly as torch's default rules.
    * Fields with named dims and a `padding_value`: padded at the end of each named dim to the longest of the batch. The
      batch gains a field of the name `mask`, bool, (B, named dims), True where values are real; also if nothing was
      padded, so that every batch has the same fields. Lists of numbers become tensors.
    * A mask that the samples bring along (a field of role mask) is padded with False and keeps its dtype.
    * Named dims without a `padding_value`: joined if the sizes of this batch are equal, refused otherwise.

    Only dicts can gain a field. In tuples the mask would shift the places by which the training loop unpacks them, so a
    tuple must bring its mask along, or mark padding by `ignore_index`. Survives pickling.

    >>> import torch
    >>> tokens = Field(name="tokens", shape=("T",), padding_value=0, mask="mask")
    >>> batch = ContractCollate(Contract(fields=(tokens,)))([{"tokens": torch.tensor([5, 7])}, {"tokens": torch.tensor([9])}])
    >>> batch["tokens"].tolist(), batch["mask"].tolist()
    ([[5, 7], [9, 0]], [[True, True], [True, False]])
    """

    contract: Contract

    def __call__(self, samples: list[Any]) -> Any:
        """Returns the batch, with the structure of the samples.

        Raises:
            CollateError: samples do not join; names the first place that differs, the field and both sides.
            ConfigurationError: a mask would have to be added to samples that are not dicts.

        Cost: one more copy of each padded field than `default_collate` makes.
        """
        variable = {field.name: field for field in self.contract.fields if field.variable_dims}
        if not variable:
            return default_collate(samples)
        sizes = [_sizes(sample, place, variable) for place, sample in enumerate(samples)]
        _refuse_undeclared_padding(variable, sizes)
        padded_fields = {name: field for name, field in variable.items() if fill_of(field) is not None}
        if not padded_fields:
            return default_collate(samples)
        longest: dict[str, int] = {}
        for size in sizes:
            longest.update({dim: max(longest.get(dim, 0), length) for dim, length in size.items()})
        padding = Padding(padded_fields, longest)
        return default_collate([padding.pad(sample) for sample in samples])


def _sizes(sample: Any, place: int, variable: Mapping[str, Field]) -> dict[str, int]:
    """Returns the size of each named dim in one sample; raises if a shape is not as declared."""
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    for name, value in flatten(sample):
        if name not in variable or value is None:
            continue
        shape, dims = view_form(name, value).shape, variable[name].shape or ()
        if shape is None or not _fits(dims, shape):
            found = f"a {type(value).__qualname__}" if shape is None else f"shape {shape_text(shape)}"
            do = "mend the sample, or change the contract"
            raise _refusal(place, None, name, f"shape {shape_text(dims)}", found, "the contract says so", do)
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
                expected = f"{dim} = {sizes[dim]} as in field {owners[dim]}"
                why = f"fields that share dim {dim} have one size within a sample"
                do = "mend the sample, or give the dims different names in the contract"
                raise _refusal(place, None, name, expected, f"{dim} = {size}", why, do)
            if isinstance(dim, str):
                owners.setdefault(dim, name)
    return sizes


def _fits(dims: Sequence[Dim], shape: Sequence[int]) -> bool:
    return len(dims) == len(shape) and all(
        isinstance(dim, str) or dim == size for dim, size in zip(dims, shape, strict=True)
    )


def _refuse_undeclared_padding(variable: Mapping[str, Field], sizes: Sequence[Mapping[str, int]]) -> None:
    """Raises if sizes differ in a field that does not say how to pad it."""
    for name, field in variable.items():
        if fill_of(field) is not None:
            continue
        for dim in field.variable_dims:
            having = [(place, size[dim]) for place, size in enumerate(sizes) if dim in size]
            odd = next((pair for pair in having if pair[1] != having[0][1]), None)
            if odd is not None:
                (first, first_size), (place, size) = having[0], odd
                why = f"field {name} has no padding_value in the contract, so only equal sizes join"
                do = f'declare Field(name={name!r}, ..., padding_value=0, mask="mask"), or make the sizes equal'
                raise _refusal(place, first, name, f"{dim} = {first_size}", f"{dim} = {size}", why, do)


def _refusal(place: int, first: int | None, field: str, expected: str, found: str, why: str, do: str) -> CollateError:
    difference = Difference(place=place, first_place=first, field=field, expected=expected, found=found, why=why, do=do)
    return to_error(difference, None, "ContractCollate")
