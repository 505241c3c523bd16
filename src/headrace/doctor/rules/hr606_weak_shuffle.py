"""HR606 weak-shuffle: an order that repeats, or that hardly mixes what stands together in the data set."""

from __future__ import annotations

from headrace.doctor.evidence.orders import Orders
from headrace.doctor.made_up.orders import labels, orders, passes
from headrace.doctor.questions.orders import is_poorly_mixed, num_orders, num_runs, order_repeats, waits_for_epoch
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

NEAR = 0.15
"""Mean displacement, as a share of the data set, up to which samples stay in their neighbourhood; random is 1/3."""
IN_BLOCKS = 0.5
"""Share of samples still behind their neighbour from which on whole blocks move, and not samples."""

RESEED = Fix(
    text="Draw the permutation from a generator that goes on from epoch to epoch, or from a seed and the epoch.",
    safety="changes the order of samples from the second epoch on",
    snippet="def __iter__(self):\n"
    "    generator = torch.Generator()\n"
    "    generator.manual_seed(self.seed + self.epoch)\n"
    "    self.epoch += 1\n"
    "    order = torch.randperm(len(self.data), generator=generator)\n"
    "    yield from order.tolist()",
)
SHUFFLE = Fix(
    text="Shuffle the training loader.",
    safety="changes the order of samples",
    snippet="loader = DataLoader(dataset, batch_size=64, shuffle=True)",
)
WIDEN = Fix(
    text="Mix the records once when they are written, or shuffle the list of shards each epoch and make the buffer "
    "several times longer than the longest run of one class.",
    safety="changes the order of samples; a larger buffer takes memory and a slower start",
)


class WeakShuffle(Rule):
    """HR606."""

    code = "HR606"
    name = "weak-shuffle"
    summary = "An order that repeats although it is drawn at random, or that leaves sorted classes together."
    rationale = """
        A sampler that seeds its generator anew in each pass draws the same permutation each epoch. A shuffle buffer
        mixes only what lies within its length: over records sorted by class, its batches still hold one class each.
        So do batches of a training set that is sorted by class and not shuffled at all. Batch norm then sees one
        class at a time, the loss looks like a saw, and the last class wins.

        It is no fault to keep an order on purpose: evaluation, sequences that are read in order, batches built from
        chosen classes. The order of classes is judged only where the data set says its classes, and for a loader that
        is known to train, or that has another order in each epoch: nobody shuffles what is only measured.
        """
    experiment = """
        The sampler is walked for three epochs, without reading samples, from random state that goes on from epoch to
        epoch; a stream is read twice within the limits. The order is held against that of the data set, the classes
        against those of a random order.
        """
    needs = (Orders,)
    fix = RESEED
    references = ("streaming#419", "webdataset#71", "trl#6351", "datasets#7163")

    def judge(self, seen: Orders) -> list[Finding]:
        """At most one finding: a repeated order, else a poorly mixed one."""
        if seen.role == "evaluation" or waits_for_epoch(seen):
            return []
        found = self._repeated(seen) if order_repeats(seen) else None
        if found is None and (seen.role == "train" or _shuffles(seen)) and is_poorly_mixed(seen):
            found = self._unmixed(seen)
        return [] if found is None else [found]

    def _repeated(self, seen: Orders) -> Finding | None:
        if seen.draws == "once" and seen.groups_batches:
            return None  # the batches are frozen with it: HR612 tells
        if seen.draws not in {"each-pass", "once"}:
            return None  # a fixed order, as somebody wrote it
        if seen.draws == "once":
            how, confidence = "it is drawn once, when the sampler is made", 0.7
            is_named = any(word in seen.sampler.lower() for word in ("shuffl", "random"))
        else:
            how, confidence, is_named = "its random numbers start anew in each pass", 0.9, True
        if seen.epochs_told:
            how = "set_epoch is called and changes nothing"
        return Finding(
            message=f"{seen.sampler} gives the same order in {count(len(seen.passes), 'epoch')}: {how}",
            severity="warning" if is_named else "info",
            confidence=confidence,
            basis="experiment",
            stage="sampler",
            where=seen.sampler_at or seen.epoch_loop_at,
            evidence=_evidence(seen),
            fix=RESEED,
        )

    def _unmixed(self, seen: Orders) -> Finding | None:
        assert seen.labels is not None
        measure = (
            f"{seen.labels.mean_run:,.0f} samples of one class in a row on average, {seen.labels.random_run:.1f} in a "
            "random order"
        )
        is_sorted = num_runs(seen) <= 2 * seen.labels.num_labels
        if seen.is_sequential:
            if not is_sorted:
                return None  # e.g. a recording in which classes take turns, read in its order
            message, fix, confidence = f"training data sorted by class are not shuffled: {measure}", SHUFFLE, 0.85
        elif (seen.displacement is not None and seen.displacement <= NEAR) or (seen.adjacency or 0.0) >= IN_BLOCKS:
            moved = (
                "moves whole blocks"
                if (seen.adjacency or 0.0) >= IN_BLOCKS
                else f"moves samples by {seen.displacement or 0:.0%} of the data set"
            )
            message, fix, confidence = f"{seen.sampler} {moved} and leaves classes together: {measure}", WIDEN, 0.8
        else:
            return None
        return Finding(
            message=message,
            severity="warning",
            confidence=confidence,
            basis="experiment",
            stage="sampler",
            where=seen.sampler_at,
            evidence=_evidence(seen),
            fix=fix,
        )

    sick = (
        Example(
            title="A sampler that seeds its generator in each pass",
            evidence=(orders(sampler="SeededShuffle", sampler_at="data.py:12", passes=passes("a", "a", "a")),),
            message="SeededShuffle gives the same order in 3 epochs: its random numbers start anew in each pass",
        ),
        Example(
            title="Training data sorted by class, not shuffled",
            evidence=(
                orders(
                    sampler="SequentialSampler",
                    draws="never",
                    passes=passes("a", "a", "a"),
                    is_sequential=True,
                    displacement=0.0,
                    adjacency=1.0,
                    labels=labels(10.0, per_batch=1.0),
                ),
            ),
            message="training data sorted by class are not shuffled: 10 samples of one class in a row on average, 1.1 in a "
            "random order",
        ),
        Example(
            title="A short shuffle buffer over sorted data",
            evidence=(
                orders(
                    sampler="BufferedShuffle",
                    is_stream=True,
                    displacement=0.04,
                    adjacency=0.1,
                    labels=labels(6.0, per_batch=1.6),
                ),
            ),
            message="BufferedShuffle moves samples by 4% of the data set and leaves classes together: 6 samples of one "
            "class in a row on average, 1.1 in a random order",
        ),
        Example(
            title="Only the order of shards is shuffled",
            evidence=(
                orders(sampler="ShardOrder", displacement=0.3, adjacency=0.95, labels=labels(10.0, per_batch=1.0)),
            ),
            message="ShardOrder moves whole blocks and leaves classes together: 10 samples of one class in a row on "
            "average, 1.1 in a random order",
        ),
    )
    healthy = (
        Example(title="A new order each epoch", evidence=(orders(labels=labels(1.1)),)),
        Example(
            title="Evaluation in the data set's order, sorted by class",
            evidence=(
                orders(
                    sampler="SequentialSampler",
                    draws="never",
                    passes=passes("a", "a", "a"),
                    is_sequential=True,
                    labels=labels(10.0, per_batch=1.0),
                    role="evaluation",
                ),
            ),
        ),
        Example(
            title="A fixed order that somebody wrote down",
            evidence=(orders(sampler="Curriculum", draws="never", passes=passes("a", "a", "a")),),
        ),
        Example(
            title="Batches of chosen classes: runs, but from everywhere",
            evidence=(orders(sampler="ClassBatches", labels=labels(4.0, per_batch=2.5)),),
        ),
        Example(
            title="A sequence that is read in order",
            evidence=(
                orders(
                    sampler="SequentialSampler",
                    draws="never",
                    passes=passes("a", "a"),
                    is_sequential=True,
                    role="train",
                ),
            ),
        ),
    )


def _shuffles(seen: Orders) -> bool:
    """True if each epoch was seen to have an order of its own: it is meant to be mixed, whatever the loader's name."""
    return len(seen.passes) > 1 and len({one.order_hash for one in seen.passes}) == len(seen.passes)


def _evidence(seen: Orders) -> dict[str, object]:
    found: dict[str, object] = {
        "sampler": seen.sampler,
        "different_orders": num_orders(seen),
        "displacement": seen.displacement,
        "adjacency": seen.adjacency,
    }
    if seen.labels is not None:
        found |= {
            "mean_run": seen.labels.mean_run,
            "random_run": seen.labels.random_run,
            "labels_per_batch": seen.labels.labels_per_batch,
            "random_per_batch": seen.labels.random_per_batch,
        }
    return found
