"""What a torch DataLoader says of itself, without touching its data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.doctor.watch.record import LoaderFacts

__all__ = ["epoch_holders", "facts_of", "kind_name"]

IN_ORDER = ("SequentialSampler", "_InfiniteConstantSampler")
MOST_DEEP = 4


def facts_of(loader: Any) -> LoaderFacts:
    """Returns the settings of a DataLoader."""
    sampler = _innermost(loader.batch_sampler if loader.batch_sampler is not None else loader.sampler)
    is_stream = loader._dataset_kind != 0
    return LoaderFacts(
        kind=kind_name(loader),
        dataset_kind=kind_name(loader.dataset),
        num_samples=None if is_stream else _length(loader.dataset),
        batch_size=loader.batch_size,
        drop_last=bool(loader.drop_last),
        num_workers=loader.num_workers,
        prefetch_factor=getattr(loader, "prefetch_factor", None),
        persistent_workers=bool(getattr(loader, "persistent_workers", False)),
        sampler_kind=kind_name(sampler),
        shuffles=not is_stream and _shuffles(sampler),
        has_set_epoch=any(True for _ in epoch_holders(loader)),
        is_distributed=any(hasattr(part, "num_replicas") for part in _chain(loader.batch_sampler, loader.sampler)),
        in_order=bool(getattr(loader, "in_order", True)),
    )


def epoch_holders(loader: Any) -> Iterator[Any]:
    """Yields the samplers and the data set of a loader that want to be told the epoch."""
    for part in (*_chain(loader.batch_sampler, loader.sampler), loader.dataset):
        if callable(getattr(type(part), "set_epoch", None)):
            yield part


def kind_name(value: Any) -> str:
    """Returns the class of a value as people write it: `torch.utils.data.DataLoader`."""
    kind = type(value)
    module = kind.__module__
    if module.startswith("torch.utils.data."):
        module = "torch.utils.data"
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"


def _chain(*samplers: Any) -> list[Any]:
    """Samplers, and those inside them."""
    found: list[Any] = []
    for sampler in samplers:
        inner, depth = sampler, 0
        while inner is not None and depth < MOST_DEEP and not any(inner is one for one in found):
            found.append(inner)
            inner = getattr(inner, "sampler", None) or getattr(inner, "batch_sampler", None)
            depth += 1
    return found


def _innermost(sampler: Any) -> Any:
    return (_chain(sampler) or [None])[-1]


def _shuffles(sampler: Any) -> bool:
    """True unless the sampler is known to go through the rows in their order."""
    if isinstance(getattr(sampler, "shuffle", None), bool):
        return bool(sampler.shuffle)
    return type(sampler).__name__ not in IN_ORDER and not isinstance(sampler, (list, tuple, range))


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except TypeError:
        return None
