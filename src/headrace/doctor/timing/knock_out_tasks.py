"""What headrace's own loader could do if a stage cost nothing: a copy that hands on what the stage made before.

Each worker makes the first few as ever, and hands those on from then on, so that everything behind the stage gets the same
types and shapes and works as before:

    sample             samples                                      without reading, stages, contract
    transform          what the stages of the plan gave             reads still
    read               records                                      stages still
    collate            batches of that length                       samples are still prepared

Handing over cannot be left out: workers make batches in the memory in which the loop gets them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import attribute, length
from headrace.doctor.timing.fetchers import Interposed, interpose
from headrace.doctor.timing.remembered import Variants, copied
from headrace.doctor.timing.tasks import OtherStages, TaskChange, preparation_of, with_task_change
from headrace.doctor.timing.timed import Stage

__all__ = ["without_task_stages"]

NUM_KEPT = 8
"""Samples, records and results that each worker remembers: enough for lengths to vary."""
IN_DATASET = "only all that its data set does, `sample`, can be left out"


def without_task_stages(loader: Any, stages: Sequence[Stage]) -> Any:
    """Returns a copy of a headrace loader in which stages cost nothing; the loader itself is left as it is.

    A stream that does not tell its length goes on without end when its samples are left out: leave it.

    Raises:
        CannotExamine: it cannot be done without one of them; the message says why. Also while it is walked through, if
            stages of a plan turn out to decode.
    """
    wanted = set(stages)
    task = attribute(attribute(loader, "_loading"), "task")
    if "handover" in wanted:
        raise CannotExamine("headrace's workers make batches in the memory in which they are handed over")
    if attribute(task, "_gathers"):
        raise CannotExamine(
            "rows are gathered into the memory of their batch at once: there are no stages to leave out"
        )
    if "collate" in wanted and loader.batch_size is None and loader._batch_sampler is None:
        raise CannotExamine("the loader joins nothing (batch_size=None), so there is nothing to leave out")
    has_stages = task is not None and bool(task.plan.stages)
    if "decode" in wanted and "sample" not in wanted:
        raise CannotExamine(f"decoding is not a stage of its own in a loader of headrace; {IN_DATASET}")
    if "sample" not in wanted and wanted & {"read", "transform"} and not has_stages:
        raise CannotExamine(f"the loader has no plan with stages; {IN_DATASET}")
    return with_task_change(loader, _Without(frozenset(wanted), length(loader.dataset) if task is None else None))


class _Without(TaskChange):
    """Stages that are answered from memory."""

    def __init__(self, stages: frozenset[Stage], num_all: int | None) -> None:
        """Of a stream, `num_all` samples come from all workers; None: without end."""
        self.stages, self._num_all = stages, num_all
        self._worker, self._num_workers = 0, 1

    def begin_worker(self, worker: int | None, num_workers: int) -> None:
        """Which part of a stream is this worker's."""
        self._worker, self._num_workers = worker or 0, max(1, num_workers)

    def change_task(self, task: Any) -> None:
        """Puts memories in the place of stages."""
        preparation = preparation_of(task)
        if preparation is None:
            self._change_stream(task)
            return
        if "sample" in self.stages:
            copies = not task._collate_is_ours
            sample, record = _Kept(preparation.sample, copies=copies), _Kept(preparation.read_one, copies=copies)
            _answer(preparation, "records", lambda *_: None)
            _answer(
                preparation, "sample", lambda order, item, index, *more: sample.of(index, order, item, index, *more)
            )
            preparation.read_one = lambda index: record.of(index, index)
        if "read" in self.stages:
            read = _Kept(preparation.read_one)
            _answer(preparation, "records", lambda *_: None)
            preparation.read_one = lambda index: read.of(index, index)
        if "transform" in self.stages:
            preparation.plan = OtherStages(preparation.plan, _NoStages(preparation.plan).apply)
        if "collate" in self.stages:
            _answer(task, "_join", _few_batches(task._join))

    def _change_stream(self, task: Any) -> None:
        if "sample" in self.stages:
            share = None if self._num_all is None else len(range(self._worker, self._num_all, self._num_workers))
            task.dataset = _KeptStream(task.dataset, share)
        if "collate" in self.stages:
            task.collate = _few_batches(task.collate)


def _answer(holder: Any, name: str, answer: Callable[..., Any]) -> None:
    """Has calls of a method answered without it."""
    interpose(holder, name, lambda _, *arguments: answer(*arguments))


class _Kept:
    """The first few results, and from then on those: for one row always the same."""

    def __init__(self, make: Callable[..., Any], *, copies: bool = True) -> None:
        """`copies`: somebody behind could change what is kept, or hand it on."""
        self._make, self._copies = make, copies
        self._results: list[Any] = []

    def of(self, index: int, *arguments: Any, **options: Any) -> Any:
        """Returns the result that stands for a row."""
        if len(self._results) < NUM_KEPT:
            made = self._make(*arguments, **options)
            self._results.append(copied(made, leaves=self._copies))
            return made
        return copied(self._results[index % NUM_KEPT], leaves=self._copies)


class _NoStages:
    """What the stages of a plan gave, in their place."""

    def __init__(self, plan: Any) -> None:
        self._plan, self._num_asked = plan, 0
        self._kept = _Kept(self._made)

    def apply(self, record: Any, **options: Any) -> Any:
        """What they gave for another record."""
        self._num_asked += 1
        return self._kept.of(self._num_asked, record, **options)

    def _made(self, record: Any, **options: Any) -> Any:
        """What they give; refuses if they decode: what is gained without them would not be the transforms'."""
        heard = []

        def decoder(original: Callable[..., Any], arguments: tuple[Any, ...], more: dict[str, Any]) -> Any:
            heard.append(original)
            return original(*arguments, **more)

        with Interposed(None, decoder=decoder).in_place():
            sample = self._plan.apply_stages(record, **options)
        if heard:
            raise CannotExamine(f"the stages of its plan decode as well; {IN_DATASET}")
        return sample


def _few_batches(join: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns what joins the first few batches of each length, and hands those on from then on."""
    kept = Variants()

    def joined(samples: Any) -> Any:
        size = len(samples) if isinstance(samples, list) else 1
        # The memory of a batch is sent away, and used again: what is kept is a copy.
        return copied(kept.of(size, lambda: copied(join(samples), leaves=True)), leaves=False)

    return joined


class _KeptStream:
    """Stands for a stream: its first few samples, and from then on those, as many as its share has."""

    def __init__(self, dataset: Any, share: int | None) -> None:
        self._dataset, self._share = dataset, share
        self._samples: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        if not self._samples:
            self._samples = [copied(one, leaves=True) for one in itertools.islice(self._dataset, NUM_KEPT)]
        places = itertools.count() if self._share is None else range(self._share)
        return (copied(self._samples[place % len(self._samples)], leaves=True) for place in places if self._samples)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)
