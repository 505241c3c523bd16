"""Pads the fields of one sample to given sizes, and adds the masks that say what is real."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from headrace.contract import Field
from headrace.contract.field import shape_text
from headrace.contract.view import SOLE_FIELD, flatten
from headrace.errors import ConfigurationError, Where

if TYPE_CHECKING:
    import torch

__all__ = ["Padding", "fill_of"]


def fill_of(field: Field) -> float | None:
    """Returns what fills a field up; None if it is not padded. Masks are padded with False: padding is not real."""
    return 0 if field.padding_value is None and field.role == "mask" else field.padding_value


class Padding:
    """Pads samples to the sizes of one batch.

    Args:
        fields: Fields to pad, by name; all have named dims.
        longest: Size of each named dim in the batch.
    """

    def __init__(self, fields: Mapping[str, Field], longest: Mapping[str, int]) -> None:
        self._fields = fields
        self._longest = longest

    def pad(self, sample: Any) -> Any:
        """Returns a sample of the same structure with padded fields as tensors; the given one is not changed."""
        return self._pad_part(sample, "", present={name for name, _ in flatten(sample)})

    def _pad_part(self, value: Any, name: str, present: set[str]) -> Any:
        if next(flatten(value))[1] is value:  # a leaf: flatten does not open it
            field = self._fields.get(name or SOLE_FIELD)
            if field is None or value is None:
                return value
            if not name:
                self._refuse_new_mask(field, present, "the sample is no dict")
            return self._pad_value(field, as_tensor(field, value))
        prefix = f"{name}." if name else ""
        if isinstance(value, Mapping):
            return self._pad_mapping(value, prefix, present)
        if not isinstance(value, (list, tuple)):
            return value  # a dataclass: torch's rules refuse it, and say so better
        keys = value._fields if hasattr(value, "_fields") else range(len(value))
        for key, part in zip(keys, value, strict=True):
            if f"{prefix}{key}" in self._fields and part is not None:
                self._refuse_new_mask(self._fields[f"{prefix}{key}"], present, f"it stands in a {type(value).__name__}")
        parts = [self._pad_part(part, f"{prefix}{key}", present) for key, part in zip(keys, value, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)

    def _pad_mapping(self, value: Mapping[Any, Any], prefix: str, present: set[str]) -> Mapping[Any, Any]:
        changed = {key: self._pad_part(part, f"{prefix}{key}", present) for key, part in value.items()}
        for key, part in value.items():
            field = self._fields.get(f"{prefix}{key}")
            if (
                field is None
                or part is None
                or field.padding_value is None
                or field.mask is None
                or field.mask in present
            ):
                continue
            beside = field.mask.removeprefix(prefix)
            if prefix and beside == field.mask:
                self._refuse_new_mask(field, present, f"a mask stands beside its field: mask={prefix + field.mask!r}")
            changed[beside] = self._mask(field, as_tensor(field, part))
        if not isinstance(value, MutableMapping):
            return changed
        clone = copy.copy(value)  # the mapping's type may carry more than its items
        clone.update(changed)
        return clone

    def _target(self, field: Field, shape: tuple[int, ...]) -> list[int]:
        dims = field.shape or ()
        return [self._longest[dim] if isinstance(dim, str) else size for dim, size in zip(dims, shape, strict=True)]

    def _pad_value(self, field: Field, tensor: torch.Tensor) -> torch.Tensor:
        import torch

        fill = fill_of(field) or 0
        target = self._target(field, tuple(tensor.shape))
        try:
            padded = torch.full(target, fill, dtype=tensor.dtype, device=tensor.device)
            written = torch.full((), fill, dtype=tensor.dtype).item()
        except (RuntimeError, OverflowError) as error:
            raise _unfit_fill(field, tensor, str(error)) from error
        is_rounded = tensor.is_floating_point() or tensor.is_complex()
        if written != fill and not is_rounded:  # torch wraps around and cuts off in silence
            raise _unfit_fill(field, tensor, f"it would be written as {written}")
        padded[tuple(slice(size) for size in tensor.shape)] = tensor
        return padded

    def _mask(self, field: Field, tensor: torch.Tensor) -> torch.Tensor:
        """Returns True where the field is real, over its named dims only."""
        import torch

        is_named = [isinstance(dim, str) for dim in field.shape or ()]
        target = self._target(field, tuple(tensor.shape))
        mask = torch.zeros([size for size, keep in zip(target, is_named, strict=True) if keep], dtype=torch.bool)
        mask[tuple(slice(size) for size, keep in zip(tensor.shape, is_named, strict=True) if keep)] = True
        return mask

    def _refuse_new_mask(self, field: Field, present: set[str], why: str) -> None:
        """Raises if the field needs a mask that the sample does not bring along and that has no place to go."""
        if field.padding_value is None or field.mask is None or field.mask in present:
            return
        shape = "" if field.shape is None else f" {shape_text(field.shape)}"
        raise ConfigurationError(
            f"mask {field.mask!r} of padded field {field.name}{shape} cannot be added to the samples",
            where=Where(field=field.name, stage="ContractCollate"),
            why=why,
            do=[
                "return a dict from the data set",
                "return the mask along with the field, and name its place in the contract",
                "for targets: mark padding by ignore_index, and leave mask out",
            ],
        )


def _unfit_fill(field: Field, tensor: torch.Tensor, why: str) -> ConfigurationError:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return ConfigurationError(
        f"padding_value {fill_of(field)} of field {field.name} does not fit dtype {dtype}",
        why=why,
        do="choose another padding_value, or convert the field before",
    )


def as_tensor(field: Field, value: Any) -> torch.Tensor:
    """Returns a value as a tensor, with the dtype that torch's default rules give it."""
    import torch

    if not isinstance(value, (list, tuple)):
        return torch.as_tensor(value)
    # As torch's default rules do for single numbers: float becomes float64. An empty list says nothing of its dtype.
    is_float = any(isinstance(number, float) for number in value) if value else field.dtype == "float"
    return torch.tensor(value, dtype=torch.float64 if is_float else torch.int64)
