"""HR702 rebuilt-iterator: `iter(loader)` again and again, so that workers start for each batch, or the same batch comes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces
from headrace.doctor.made_up.stages import passed, traced, traces
from headrace.doctor.questions.waiting import percent, span
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

FEWEST = 10
"""Walks that end after one batch: fewer are looks at a batch, sanity checks, a batch for a picture."""
MOST = 0.9
"""Share of a loader's walks that end after one batch: nearly all, so that it is how the loop works."""
FEWEST_LOADERS = 3
COST = 0.10
"""Share of the run that starting workers must take before making loaders for each epoch is a fault."""
FLOOR_S = 0.5


class RebuiltIterator(Rule):
    """HR702."""

    code = "HR702"
    name = "rebuilt-iterator"
    summary = "A loader that is opened anew for each batch, or made anew for each epoch at a high price."
    rationale = """
        `next(iter(loader))` in a loop begins a new walk each time: workers are started and ended for one batch, what
        they prepared ahead is thrown away, and a loader that does not shuffle delivers its first batch for ever. A loader
        that is made inside the epoch loop starts new workers for every epoch, whatever `persistent_workers` says.

        It is no fault to look at one batch now and then, to walk through the first few batches, to begin one walk for
        each epoch, or to make loaders for folds of a cross-validation. Walks that a training library begins by its own
        rules (a debugging mode of one batch) are left alone, and so is a shuffling loader without workers, from which
        `next(iter(loader))` draws a new batch each time, or one that holds the whole data set.
        """
    experiment = "Nothing is run: calls of `iter(loader)` are counted, with the workers that each starts."
    needs = (LoaderTraces,)
    fix = Fix(
        text="Make the iterator once and take batches from it; begin it again when it ends.",
        safety="the loop now sees all batches of an epoch before any comes again",
        snippet="def endless(loader):\n"
        "    while True:\n"
        "        yield from loader\n"
        "\n"
        "batches = endless(loader)  # before the loop\n"
        "batch = next(batches)      # in it",
    )
    references = ("pytorch#1917", "pytorch#22133", "detectron2#3847", "sentiment-discovery#60")

    def judge(self, traces: LoaderTraces) -> list[Finding]:
        """One finding for each place where walks or loaders are made again and again."""
        rebuilt = [(trace, finding) for trace in traces.loaders if (finding := _reopened(trace)) is not None]
        groups: dict[object, list[LoaderTrace]] = {}
        told = [trace for trace, _ in rebuilt]
        for trace in (one for one in traces.loaders if one not in told):
            if trace.where is not None and trace.num_workers and trace.num_passes == trace.num_made:
                key = (trace.where, trace.role, trace.num_workers, trace.batch_size, trace.num_samples, trace.root)
                groups.setdefault(key, []).append(trace)
        remade = [finding for group in groups.values() if (finding := _remade(group, traces)) is not None]
        return [finding for _, finding in rebuilt] + remade

    sick = (
        Example(
            title="next(iter(loader)) in each step",
            evidence=(
                traces(
                    traced(
                        *[passed(1, is_exhausted=False, num_worker_starts=2, first_wait_s=0.2, wall_s=0.2, num_steps=1)]
                        * 2,
                        num_passes=400,
                        num_worker_starts=800,
                        num_short_passes=400,
                        iter_places=(("train.py:40", 400),),
                    )
                ),
            ),
            message="iter(loader) is called for each batch: 400 walks of one batch, 800 workers started; 200 ms for each "
            "batch",
        ),
        Example(
            title="The first batch for ever",
            evidence=(
                traces(
                    traced(
                        *[passed(1, is_exhausted=False, num_steps=1)] * 2,
                        num_workers=0,
                        shuffles=False,
                        has_moved_samples=False,
                        num_short_passes=50,
                        num_passes=50,
                        iter_places=(("train.py:40", 50),),
                    )
                ),
            ),
            message="iter(loader) is called for each batch of a loader that does not shuffle: all 50 batches were the same "
            "first one",
        ),
        Example(
            title="A loader for each epoch",
            evidence=(
                traces(
                    *[
                        traced(passed(first_wait_s=2.0, wall_s=8.0, num_worker_starts=2), number=number)
                        for number in range(4)
                    ],
                    wall_s=40.0,
                ),
            ),
            message="4 loaders were made at one place for one walk each: 8 workers started, 20 % of the 40 s that "
            "the script ran went into waiting for their first batches",
        ),
        Example(
            title="A loader for each epoch, over the same data: it counts as one that is made anew",
            evidence=(
                traces(
                    traced(*[passed(first_wait_s=2.0, wall_s=8.0, num_worker_starts=2)] * 4, num_made=4), wall_s=40.0
                ),
            ),
            message="4 loaders were made at one place for one walk each: 8 workers started, 20 % of the 40 s that "
            "the script ran went into waiting for their first batches",
        ),
        Example(
            title="A loader for each step, always at its first batch",
            evidence=(
                traces(
                    traced(
                        *[passed(1, is_exhausted=False, num_steps=1)] * 2,
                        num_workers=0,
                        shuffles=False,
                        has_moved_samples=False,
                        num_short_passes=50,
                        num_passes=50,
                        num_made=50,
                        iter_places=(("train.py:40", 50),),
                    )
                ),
            ),
            message="iter(loader) is called for each batch of a loader that does not shuffle: all 50 batches were the same "
            "first one",
        ),
    )
    healthy = (
        Example(
            title="One walk for each epoch",
            evidence=(traces(traced(*[passed(num_worker_starts=2)] * 30)),),
        ),
        Example(
            title="A look at a batch before training",
            evidence=(
                traces(traced(passed(1, is_exhausted=False, num_worker_starts=2), *[passed(num_worker_starts=2)] * 3)),
            ),
        ),
        Example(
            title="An episode loader that is made and opened once",
            evidence=(traces(traced(passed(2_000, num_worker_starts=4), sampler_kind="EpisodeSampler")),),
        ),
        Example(
            title="A random batch each time, without workers",
            evidence=(
                traces(
                    traced(
                        *[passed(1, is_exhausted=False)] * 50,
                        num_workers=0,
                        num_short_passes=50,
                        has_moved_samples=True,
                    )
                ),
            ),
        ),
        Example(
            title="All samples in one batch",
            evidence=(
                traces(
                    traced(
                        *[passed(1, is_exhausted=False)] * 50,
                        num_workers=0,
                        num_samples=32,
                        shuffles=False,
                        num_short_passes=50,
                        has_moved_samples=False,
                    )
                ),
            ),
        ),
        Example(
            title="The debugging mode of a training library",
            evidence=(
                traces(
                    traced(
                        *[passed(1, is_exhausted=False, num_steps=1)] * 50,
                        shuffles=False,
                        has_moved_samples=False,
                        num_library_passes=50,
                    )
                ),
            ),
        ),
        Example(
            title="A loader for each epoch whose start costs nothing",
            evidence=(
                traces(*[traced(passed(first_wait_s=0.1, num_worker_starts=2), number=number) for number in range(10)]),
            ),
        ),
        Example(
            title="A loader for each fold, several epochs each",
            evidence=(
                traces(
                    *[
                        traced(*[passed(first_wait_s=2.0, wall_s=8.0, num_worker_starts=2)] * 3, number=number)
                        for number in range(5)
                    ]
                ),
            ),
        ),
    )


def _reopened(trace: LoaderTrace) -> Finding | None:
    """One loader whose walks nearly all end after one batch."""
    short, total = trace.num_short_passes, trace.num_passes
    if short < FEWEST or short < MOST * total or trace.num_library_passes > total - short + total // 10:
        return None
    place = trace.iter_places[0][0] if trace.iter_places else trace.where
    evidence = {
        "num_passes": total,
        "num_worker_starts": trace.num_worker_starts,
        "places": [list(pair) for pair in trace.iter_places[:5]],
    }
    is_whole = trace.num_samples is not None and (trace.batch_size or 0) >= trace.num_samples
    is_same = not trace.shuffles and trace.has_moved_samples is False and not is_whole
    if is_same:
        return Finding(
            message=f"iter(loader) is called for each batch of a loader that does not shuffle: all {short:,} "
            "batches were the same first one",
            severity="error" if trace.role == "train" else "warning",
            confidence=0.95 if trace.role == "train" else 0.75,
            basis="observed",
            stage="loop",
            where=place,
            evidence=evidence,
        )
    if trace.num_worker_starts < short or 2 * trace.num_made > total:
        return None  # no workers that start for each batch, or only because the loader is made anew for it
    waits = [one.first_wait_s for one in trace.passes if one.num_batches]
    each = f"; {span(sum(waits) / len(waits))} for each batch" if waits else ""
    return Finding(
        message=f"iter(loader) is called for each batch: {short:,} walks of one batch, {trace.num_worker_starts:,} workers "
        f"started{each}",
        severity="warning",
        confidence=0.95,
        basis="observed",
        stage="loop",
        where=place,
        evidence=evidence,
    )


def _remade(group: Sequence[LoaderTrace], traces: LoaderTraces) -> Finding | None:
    """Loaders of one place that were each walked through once, and paid for their start each time."""
    waits = [one.first_wait_s for trace in group for one in trace.passes]
    total_s, num_unlisted = traces.wall_s, traces.num_unlisted
    num_made = sum(trace.num_made for trace in group)
    cost_s = sum(waits) / max(1, len(waits)) * num_made  # not every walk of many is kept
    if num_made < FEWEST_LOADERS or not waits or total_s <= 0 or cost_s < COST * total_s:
        return None
    is_for_each_batch = num_made >= FEWEST and all(one.num_batches <= 1 for trace in group for one in trace.passes)
    if not is_for_each_batch and min(waits[1:] or waits) - (group[0].batch_s or 0.0) < FLOOR_S:
        return None
    more = f" (and {num_unlisted:,} loaders more)" if num_unlisted else ""
    return Finding(
        message=f"{count(num_made, 'loader')} were made at one place for one walk each{more}: "
        f"{sum(trace.num_worker_starts for trace in group):,} workers started, {percent(cost_s / total_s)} of the "
        f"{span(total_s)} that the script ran went into waiting for their first batches",
        severity="warning",
        confidence=0.8,
        basis="observed",
        stage="loop",
        where=group[0].where,
        evidence={"num_loaders": num_made, "first_waits_s": waits[:50], "run_s": total_s},
        fix=Fix(
            text="Make the loader once, before the loop over epochs, and keep its workers.",
            safety="workers keep their copy of the data set: changes to it after the first epoch do not reach them",
            snippet="loader = DataLoader(dataset, num_workers=2, persistent_workers=True)\n"
            "for epoch in range(epochs):\n"
            "    for batch in loader:\n"
            "        ...",
        ),
    )
