"""Infers a contract: what the samples that were looked at have in common, and what their storage guarantees.

The rule is that sound samples that were not looked at must not break it. So it fixes

* kind, dtype and the sizes that are equal in all samples; sizes that differ get a name;
* 0..255 for uint8, which cannot hold anything else;
* 0..n-1 for targets when the data set itself says n (`classes`, `num_classes`). A few samples rarely show every
  class, so the labels that were seen fix nothing;
* a range of floating values only where they touch both ends of a usual scale, [0, 1], [-1, 1] or 0..255, as images
  do. The smallest and largest value of a few samples are no bounds: the next sample may pass them and be sound.

What the data set says of itself wins over what was seen: a label 10 among 10 classes does not widen the contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.contract.check import kind_of
from headrace.contract.dims import infer_shapes
from headrace.contract.field import DTYPES, Field
from headrace.contract.ranges import natural_range, target_values
from headrace.contract.roles import guess_role, mask_for
from headrace.contract.view import ValueView, flatten, view_form, view_sample
from headrace.errors import ConfigurationError, SampleId, SourceError, Where, annotate
from headrace.keys import derive_key

__all__ = ["DEFAULT_SAMPLES", "chosen_indices", "infer"]

DEFAULT_SAMPLES = 64
"""Enough that a size that differs in one sample of ten goes unseen once in 800 (0.9**64), and seconds to prepare."""
MAX_RESHAPE_READS = 4
"""Samples that are read once more, to see whether the stages of a plan change shapes."""

Column = list[ValueView | None]
"""One field over the samples that were looked at; None = not there, or None."""


def infer(data: Any, *, max_samples: int) -> dict[str, Any]:
    """Returns the arguments of the contract that samples of `data` have in common; see `Contract.infer`."""
    size = _size(data)
    if max_samples < 1:
        raise ConfigurationError(f"max_samples must be at least 1, not {max_samples}")
    indices = chosen_indices(size, max_samples)
    rows: list[tuple[ValueView, ...]] = []
    kept: dict[int, Any] = {}  # views hold no payload, so that only a few samples are in memory at once
    for index in indices:
        sample = _read(data, index)
        if sample is None:
            continue
        rows.append(view_sample(sample))
        if len(kept) < MAX_RESHAPE_READS:
            kept[index] = sample
    if not rows:
        raise SourceError(f"all {len(indices)} samples that were looked at are None: there is nothing to infer from")
    columns = _columns(rows)
    # Fields that come and go are optional, and so may be others that were not seen.
    is_ragged = any({view.field for view in row} != columns.keys() for row in rows)
    return {
        "fields": _infer_fields(columns, next(iter(kept.values())), data),
        "num_samples": size,
        "may_reshape": _changes_shapes(data, kept),
        "extra_fields": "ignore" if is_ragged else "refuse",
    }


def chosen_indices(size: int, max_samples: int) -> list[int]:
    """Returns which samples to look at: first, last, their neighbours, and one from each of equal parts in between.

    Drawn by key within each part, so that data with a period (every fourth row is of one kind) is not always met at the
    same phase, and the same data set always gives the same rows.
    """
    if size <= max_samples:
        return list(range(size))
    edges = [0, size - 1, 1, size - 2][:max_samples]
    low, high, parts = 2, size - 2, max_samples - len(edges)
    spread = []
    for part in range(parts):
        start, stop = (low + (high - low) * step // parts for step in (part, part + 1))
        spread.append(start + derive_key("contract-infer", size, part) % max(stop - start, 1))
    return sorted({*edges, *spread})


def _size(data: Any) -> int:
    """Returns the number of samples of something that can be indexed; raises if it cannot, or is empty."""
    if isinstance(data, (Mapping, str, bytes)) or not hasattr(data, "__getitem__"):
        is_loader = hasattr(data, "dataset")
        do = "pass loader.dataset" if is_loader else "pass a map-style data set, a plan, or a list of samples"
        raise ConfigurationError(
            f"a contract is inferred from many samples, and {type(data).__name__} is not indexed by row number", do=do
        )
    try:
        size = len(data)
    except TypeError as error:
        raise ConfigurationError(
            f"{type(data).__name__} has no length, so its last samples cannot be looked at",
            do="pass a list of its first samples: list(itertools.islice(dataset, 100))",
        ) from error
    if size < 1:
        raise SourceError("the data set is empty: there is nothing to infer a contract from")
    return size


def _read(data: Any, index: int) -> Any:
    try:
        return data[index]
    except Exception as error:
        do = [f"look at __len__: it says {len(data):,} samples"] if isinstance(error, IndexError) else None
        annotate(error, Where(sample_id=_sample_id(data, index), index=index, stage="read, to infer a contract"), do=do)
        raise


def _sample_id(data: Any, index: int) -> SampleId:
    named = getattr(data, "sample_id", None)
    return named(index) if callable(named) else index


def _columns(rows: Sequence[Sequence[ValueView]]) -> dict[str, Column]:
    """Turns views by sample into views by field, in the order in which fields are met."""
    columns: dict[str, Column] = {}
    for number, row in enumerate(rows):
        for view in row:
            column = columns.setdefault(view.field, [None] * len(rows))
            column[number] = None if view.kind == "none" else view
    return columns


def _infer_fields(columns: Mapping[str, Column], first: Any, data: Any) -> tuple[Field, ...]:
    shapes = infer_shapes(columns)
    roles = {name: guess_role(name, column, first) for name, column in columns.items()}
    fields = []
    for name, column in columns.items():
        views = [view for view in column if view is not None]
        kinds = {kind_of(view) for view in views}
        dtypes = {view.dtype for view in views if view.shape != (0,) or view.kind != "sequence"}
        shape, axes = shapes[name]
        common: dict[str, Any] = {
            "kind": kinds.pop() if len(kinds) == 1 else None,
            "dtype": dtypes.pop() if len(dtypes) == 1 and dtypes <= {*DTYPES} else None,
            "shape": shape,
            "axes": axes,
            "allow_nan": any(view.num_nan for view in views),
            "allow_inf": any(view.num_inf for view in views),
            "role": roles[name],
            "mask": mask_for(name, roles, shapes),
            "required": all(view is not None for view in column),
        }
        is_target = roles[name] == "target"
        values = target_values(views, data) if is_target else natural_range(views, common["dtype"])
        fields.append(Field(name=name, **common, **values))
    return tuple(fields)


def _changes_shapes(plan: Any, samples: Mapping[int, Any]) -> bool:
    """True if the stages of a plan change the shape of a field between the record and the sample."""
    source = getattr(plan, "source", None)
    if source is None or not hasattr(source, "read_many") or not getattr(plan, "stages", None):
        return False
    records = source.read_many(list(samples))
    for record, sample in zip(records, samples.values(), strict=True):
        before = {
            name: view_form(name, value).shape for name, value in flatten(record) if not isinstance(value, (str, bytes))
        }
        after = {name: view_form(name, value).shape for name, value in flatten(sample)}
        if any(None not in (old, after.get(name)) and old != after[name] for name, old in before.items()):
            return True
    return False
