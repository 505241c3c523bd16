"""Holds any loader or data set by one handle, whatever library it is of. The probes know this and nothing else."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headrace.contract import Contract
from headrace.doctor.subject.dividing import Divider
from headrace.doctor.subject.groups import loaders_in
from headrace.doctor.subject.kind import CannotExamine, Collate
from headrace.doctor.subject.kinds import ACCEPTED, find_kind
from headrace.doctor.subject.looking import (
    CLASSES,
    attribute,
    class_name,
    descends_from,
    function_name,
    is_instance,
    layers,
    length,
    transform_slots,
)
from headrace.doctor.subject.setting_up import set_up_as_worker
from headrace.doctor.subject.torch_loader import worker_stream
from headrace.doctor.subject.walking import Walk
from headrace.engine import collate as headrace_collate
from headrace.engine.plan import Plan
from headrace.errors import ConfigurationError, SampleId, SourceError, TargetError

__all__ = ["Subject"]

Enter = Callable[[str], None]
"""Called with the name of a stage when a sample enters it."""

OWN_JOIN = "the loader's own batching"
"""Stands for the name of a collate function that is somewhere inside."""


class Subject:
    """One loader or data set, and what can be asked of it. Asking loads nothing; `read` and all passes do."""

    def __init__(self, target: Any) -> None:
        several = loaders_in(target)
        if len(several) == 1 and not isinstance(target, Mapping):
            (target,) = several.values()  # (loader, number of classes), and the like
        elif several:
            raise TargetError(
                f"TARGET is a {class_name(target)} of {len(several)} loaders ({', '.join(several)}); one is examined at a time",
                do="name a function that returns one of them",
            )
        kind = find_kind(target)
        self.loader: Any = None if kind is None else kind.loader
        """The torch or headrace DataLoader, under torch's names; None: a data set, or another library's loader."""
        self.dataset: Any = target if kind is None else kind.dataset
        self.is_iterable = kind is not None and kind.is_iterable
        """True: samples come from a pass only, in its order."""
        self._plan = None if self.is_iterable else self._make_plan()
        self.siblings: Mapping[str, Subject] = {}
        """Every loader of TARGET by name, this one among them: train, val, ...; one alone has the empty name."""
        if kind is None:
            raise TargetError(f"TARGET is a {class_name(target)}, which cannot be examined", do=ACCEPTED)
        self._kind = kind
        self._target = target
        self._was_set_up = False
        self._divide = Divider()

    def _make_plan(self) -> Plan:
        """Ids, paths and classes are what `headrace.DataLoader` says they are; nothing is read by it."""
        try:
            return Plan.of(self.dataset)
        except (ConfigurationError, SourceError) as error:
            raise TargetError(
                f"TARGET is a {class_name(self.dataset)}, which cannot be examined: {error.what}",
                why=error.why,
                do=[*error.do, f"examined today: {ACCEPTED}"],
            ) from None

    # What it says of itself.

    @property
    def kind(self) -> str:
        """Class of the loader or data set, with its module."""
        return class_name(self._target)

    @property
    def dataset_kind(self) -> str:
        """Class of the data set, with its module."""
        return class_name(self.dataset)

    @property
    def cannot(self) -> dict[str, str]:
        """What cannot be examined for this kind of target -> the reason, in a user's words.

        `index`: samples one by one, in any order. `join`: joining samples apart from the loader. `workers`: another
        number of workers. `streams`: comparing what each worker delivers. `epochs`: a second pass. `pickle`: sending
        the target to another process.
        """
        return self._kind.cannot

    @property
    def is_batched(self) -> bool:
        """True if a pass delivers batches."""
        return self._kind.is_batched

    @property
    def dataset_layers(self) -> tuple[str, ...]:
        """Classes of the data set and of those inside it (of a Subset, a ConcatDataset), outermost first."""
        return tuple(class_name(one) for one in layers(self.dataset))

    @property
    def num_samples(self) -> int | None:
        """Samples in the data set; None: it does not say, or fails."""
        return self._kind.num_samples if self.is_iterable else length(self.dataset)

    @property
    def num_batches(self) -> int | None:
        """Batches in one pass; None: there are none, or it does not say."""
        return self._kind.num_batches

    @property
    def batch_size(self) -> int | None:
        """None: no loader, no batching, or a batch sampler of the user's own."""
        return self._kind.batch_size

    @property
    def joins_samples(self) -> bool:
        """False for a loader that hands over single samples (`batch_size=None`), or whose joining is inside it."""
        return "join" not in self.cannot

    @property
    def takes_lists(self) -> bool:
        """True if a sampler of batches hands its lists to the data set (`batch_size=None`), which makes the batches."""
        return (
            self.loader is not None
            and attribute(self.loader, "batch_sampler") is None
            and is_instance(attribute(self.loader, "sampler"), "torch.utils.data", "BatchSampler")
        )

    @property
    def drop_last(self) -> bool:
        """True if the incomplete last batch is left out."""
        return self._kind.drop_last

    @property
    def num_workers(self) -> int:
        """Worker processes; 0 = in the caller, and for a bare data set."""
        return self._kind.num_workers

    @property
    def contract(self) -> Contract | None:
        """The contract that the loader or the data set carries; None if there is none."""
        carried = (attribute(holder, "contract") for holder in (self.loader, self.dataset))
        return next((found for found in carried if isinstance(found, Contract)), None)

    def classes(self) -> tuple[int, str] | None:
        """Returns the number of classes and who says so; None if nobody does."""
        for dataset in layers(self.dataset):
            for name in ("classes", "class_to_idx"):
                found = attribute(dataset, name)
                if isinstance(found, (Sequence, dict)) and not isinstance(found, str) and len(found):
                    return len(found), f"{type(dataset).__name__}.{name}"
            count = attribute(dataset, "num_classes")
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                return count, f"{type(dataset).__name__}.num_classes"
            features = attribute(dataset, "features")  # Hugging Face's
            for name in ("label", "labels") if isinstance(features, dict) else ():
                if descends_from(features.get(name), "datasets", "ClassLabel"):
                    return features[name].num_classes, f"{type(dataset).__name__}.features[{name!r}]"
        found = attribute(self.loader, CLASSES)
        return found if isinstance(found, tuple) else None

    # Samples by row number.

    def sample_id(self, index: int) -> SampleId:
        """Returns the identity of a sample: the data set's own word, else the row number; `#12` in a stream."""
        return f"#{index}" if self._plan is None else self._plan.sample_id(index)

    def locate(self, index: int) -> str | None:
        """Returns what a sample is read from, where the data set keeps it in one of the usual ways."""
        return None if self._plan is None else self._plan.locate(index)

    def read(self, index: int, enter: Enter | None = None, *, seed: int = 0) -> Any:
        """Returns one sample, prepared exactly as the loader has it prepared.

        A plan says its own stages through `enter`, and its random stages draw by `seed`. Torch's loader prefers
        `__getitems__` where a data set has it. If a sample fails, it is tried once more after the loader's
        `worker_init_fn`: some data sets are complete only then.

        Raises:
            CannotExamine: the target is a stream.
        """
        if self.is_iterable:
            raise CannotExamine(self.cannot["index"])
        try:
            return self._read(index, enter, seed)
        except Exception:
            if self._was_set_up:
                raise
            self._was_set_up = True
            if not set_up_as_worker(self.loader):
                raise
            with contextlib.suppress(Exception):
                return self._read(index, enter, seed)
            raise  # it was not that: the first failure is the one to tell of

    def _read(self, index: int, enter: Enter | None, seed: int) -> Any:
        if self._plan is not None and self._plan is self.dataset:
            return self._read_plan(self._plan, index, enter, seed)
        if self.loader is not None and self.joins_samples and callable(getattr(self.dataset, "__getitems__", None)):
            return self._only(self.dataset.__getitems__([index]))
        if not self.takes_lists:
            return self.dataset[index]
        try:
            return self.dataset[index]
        except Exception:
            # A data set that is asked for whole batches need not know how to answer for one row.
            with contextlib.suppress(Exception):
                return self._only(self.dataset[[index]])
            raise

    def _only(self, made: Any) -> Any:
        """The one sample of a batch of one row."""
        parts = self._divide(made, 1)
        return made[0] if parts is None else parts[0]

    @staticmethod
    def _read_plan(plan: Plan, index: int, enter: Enter | None, seed: int) -> Any:
        (record,) = plan.read_many([index])
        return plan.apply_stages(
            record,
            sample_id=plan.sample_id(index),
            seed=seed,
            epoch=0,
            enter=None if enter is None else lambda stage: enter(stage.name),
        )

    def layers(self) -> Iterator[Any]:
        """Yields the data set and those inside it, outermost first."""
        return layers(self.dataset)

    def transform_slots(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        """Returns (holder, attribute, function) of each transform that a data set, or one inside it, keeps for itself."""
        return transform_slots(self.dataset)

    # Passes.

    def epoch(self) -> Iterator[Any]:
        """Returns one pass over the target as its user makes it: batches, or samples, as they are delivered."""
        return self._kind.epoch()

    def samples(self) -> Walk:
        """Returns one pass sample by sample, in this process; it names each sample, before and after it is drawn.

        Batches that cannot be taken apart are delivered as they are. Close it at the end.
        """
        return self._kind.samples()

    def with_workers(self, num_workers: int, **changes: Any) -> Any:
        """Returns the user's loader again with another number of workers, as something that can be walked repeatedly.

        Args:
            num_workers: 0 = in this process.
            changes: More to change, under the names of the loader's own library.

        Raises:
            CannotExamine: this kind of target has no number of workers that could be changed.
        """
        if "workers" in self.cannot:
            raise CannotExamine(self.cannot["workers"])
        return self._kind.with_workers(num_workers, **changes)

    def stream(self, num_workers: int, tag: Callable[[Any], Any]) -> Iterator[Any]:
        """Walks an iterable data set with the loader's own worker settings; yields `tag(sample)` made in the worker.

        Close the iterator to end the workers.

        Raises:
            CannotExamine: torch's workers cannot walk it.
        """
        if "streams" in self.cannot:
            raise CannotExamine(self.cannot["streams"])
        return worker_stream(self._kind.unbatched, self.loader, num_workers, tag)

    # Batches.

    def collate(self) -> Callable[[list[Any]], Any]:
        """Returns the function that joins samples; torch's default for a bare data set (imports torch)."""
        found = self._collate()
        if found is not None:
            return found
        if not self.joins_samples:
            return _first
        default: Collate = importlib.import_module("torch.utils.data").default_collate
        return default

    def _collate(self) -> Collate | None:
        if self._kind.joins_apart is not None:
            return self._kind.joins_apart
        found = getattr(self.loader, "collate_fn", None)
        return found if callable(found) else None

    @property
    def collate_name(self) -> str:
        """Name of the collate function, with file and line if it is the user's own."""
        found = self._collate()
        if found is None:
            return "default_collate" if self.joins_samples else OWN_JOIN
        return function_name(found)

    @property
    def has_default_collate(self) -> bool:
        """True for torch's default rules, under torch's name or ours."""
        found = self._collate()
        if found is None:
            return self.joins_samples
        return headrace_collate.is_ours(found) or getattr(found, "__module__", "").startswith("torch.utils.data")


def _first(samples: list[Any]) -> Any:
    """In the place of a collate function where nothing is joined."""
    return samples[0]
