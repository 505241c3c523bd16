"""WebDataset: `WebDataset`, `WebLoader` and pipelines composed by hand.

A pipeline is a list of stages, so it can be walked up to the stage that batches; between the stages the keys are
overheard, and a sample is named by its `__key__` even when the last stages make a tuple of it, or fail.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from headrace.doctor.subject.kind import CannotExamine, Collate, Kind
from headrace.doctor.subject.looking import attribute, is_instance
from headrace.doctor.subject.rebuild import rebuild
from headrace.doctor.subject.torch_loader import NO_LOADER, STREAM
from headrace.doctor.subject.walking import Walk
from headrace.errors import SampleId

__all__ = ["WebPipeline"]

ONE_TO_ONE = frozenset({
    "_decode", "_extract_keys", "_info", "_log_keys", "_map", "_map_dict", "_map_tuple", "_rename", "_rename_keys",
    "_select", "_slice", "_to_tuple", "_xdecode",
})  # fmt: skip
"""Stages that hand a sample on before they ask for the next: the key read last is the key of what comes out."""
SHUFFLES = frozenset({"_shuffle", "detshuffle"})


class WebPipeline(Kind):
    """A pipeline of WebDataset, with a torch DataLoader at its beginning (`WebLoader`) or without."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        first = target.pipeline[0] if target.pipeline else None
        self.loader = first if is_instance(first, "torch.utils.data", "DataLoader") else None
        self._inner = self._find_inner()
        self.dataset = target if self._inner is None else self._inner.dataset
        own = _batching(target.pipeline)
        self._own_at = None if own is None else own[0]
        joined = None if own is None else own[1:]
        if joined is None and self.loader is not None and attribute(self.loader, "batch_size") is not None:
            joined = (self.loader.collate_fn, self.loader.batch_size, bool(self.loader.drop_last))
        if joined is not None:
            self.joins_apart, self.batch_size, self.drop_last = joined
            self.is_batched = True
        elif self._inner is not None:
            self.joins_apart, self.batch_size = self._inner.joins_apart, self._inner.batch_size
            self.drop_last, self.is_batched = self._inner.drop_last, self._inner.is_batched
        self.num_workers = int(attribute(self.loader, "num_workers") or 0)

    def _find_inner(self) -> WebPipeline | None:
        dataset = attribute(self.loader, "dataset")
        return WebPipeline(dataset) if dataset is not None and WebPipeline.holds(dataset) else None

    @classmethod
    def holds(cls, target: Any) -> bool:
        return is_instance(target, "webdataset.pipeline", "DataPipeline")

    @property
    def cannot(self) -> dict[str, str]:
        return {"index": STREAM} | ({} if self.loader is not None else {"workers": NO_LOADER})

    @property
    def unbatched(self) -> Any:
        """The pipeline up to the stage that batches, and without shuffling; the data set's own, where there is a loader.

        A shuffle changes nothing about a sample, and one with a large buffer would read for minutes before the first.
        """
        if self._inner is not None:
            return self._inner.unbatched
        if self.loader is not None:
            return self.loader.dataset
        stages = self.target.pipeline[: self._own_at]
        once = _with_stages(self.target, [stage for stage in stages if _stage_name(stage) not in SHUFFLES])
        once.repetitions, once.nsamples = 1, -1  # with_epoch() counts what the whole pipeline delivers
        return once

    def samples(self) -> Walk:
        if self._inner is not None:
            return self._inner.samples()
        if self.loader is not None:  # a WebLoader over a stream that is not WebDataset's
            return Walk(iter(self.loader.dataset), key_of=self.key_of)
        once = self.unbatched
        keys = _Overheard(once.pipeline)
        return Walk(iter(_with_stages(once, keys.stages)), key_of=self.key_of, keys=keys)

    def with_workers(self, num_workers: int, **changes: Any) -> Any:
        if self.loader is None:
            raise CannotExamine(NO_LOADER)
        return _with_stages(
            self.target, [rebuild(self.loader, num_workers=num_workers, **changes), *self.target.pipeline[1:]]
        )


def _with_stages(pipeline: Any, stages: Iterable[Any]) -> Any:
    twin = copy.copy(pipeline)
    twin.pipeline = list(stages)
    return twin


def _stage_name(stage: Any) -> str:
    """`_map`, `_batched`, ... for WebDataset's own filters, else the name of the function or class."""
    function = getattr(stage, "f", stage)
    return str(getattr(function, "__name__", type(stage).__name__))


def _batching(stages: list[Any]) -> tuple[int, Collate | None, int | None, bool] | None:
    """Place, collate function, size and drop_last of the stage that batches; None if nothing is batched in the end."""
    found = None
    for place, stage in enumerate(stages):
        name = _stage_name(stage)
        if name in {"_unbatched", "_unlisted"}:
            found = None
        elif name == "_batched":
            said = dict(zip(("batchsize", "collation_fn", "partial"), stage.args, strict=False)) | stage.kw
            default = (getattr(stage.f, "__defaults__", None) or (20, None, True))[:3]
            size, collate, partial = (
                said.get(name, usual)
                for name, usual in zip(("batchsize", "collation_fn", "partial"), default, strict=False)
            )
            found = (place, collate or list, size, not partial)
    return found


class _Overheard:
    """Listens between the stages of a pipeline. Called: (key, shard) of the sample in hand, as far as it is known."""

    def __init__(self, stages: list[Any]) -> None:
        self._names = [_stage_name(stage) for stage in stages]
        self.stages: list[Any] = []
        for number, stage in enumerate(stages):
            self.stages += [stage] if number == 0 else [stage, self._listener(number)]
        self._shard: str | None = None
        self._key: SampleId | None = None
        self._deepest = -1
        self._is_new = False

    def _listener(self, number: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
        def listen(source: Iterable[Any]) -> Iterator[Any]:
            for sample in source:
                self._note(number, sample)
                yield sample

        return listen

    def _note(self, number: int, sample: Any) -> None:
        if not isinstance(sample, Mapping):
            return
        shard = sample.get("__url__", sample.get("url"))
        if isinstance(shard, str):
            self._shard = shard
        key = sample.get("__key__")
        if isinstance(key, str):
            self._key, self._is_new = key, True
            self._deepest = max(self._deepest, number)

    def __call__(self) -> tuple[SampleId | None, str | None]:
        """A key that was told before, with none read since, is not the one in hand: then the archive itself failed."""
        is_new, self._is_new = self._is_new, False
        is_in_order = all(name in ONE_TO_ONE for name in self._names[self._deepest + 1 :])
        if is_new and not is_in_order:
            return None, None
        return (self._key if is_new else None), self._shard
