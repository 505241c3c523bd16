"""HR202 frozen-augmentation: random steps that give every sample the same result for ever."""

from __future__ import annotations

import re

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.evidence.repeats import Repeats, SampleRepeat
from headrace.doctor.made_up import loader
from headrace.doctor.made_up.repeats import frozen, repeat, repeats
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing, verb

FEWEST = 2
"""Samples that must show it: one alone may have been the first to fill a table."""

CACHE_BEFORE = Fix(
    text="Cache what is expensive and certain (the decoded image), and run the random step after the cache.",
    safety="samples vary again from epoch to epoch; the random step costs its time in every epoch",
    snippet="@functools.lru_cache(maxsize=None)\ndef load(self, index):\n    return decode(self.paths[index])\n\n"
    "def __getitem__(self, index):\n    return self.augment(self.load(index).copy())",
)
NO_SEED = Fix(
    text="Do not seed inside `__getitem__`: seed once at the start of the program; torch gives every worker and epoch its "
    "own seed.",
    safety="samples vary again from epoch to epoch; runs stay repeatable through the seed at the start",
    snippet="torch.manual_seed(0)  # once, at the start of train.py\n"
    "loader = DataLoader(dataset, batch_size=64, shuffle=True)",
)


class FrozenAugmentation(Rule):
    """HR202."""

    code = "HR202"
    name = "frozen-augmentation"
    summary = "Random steps whose result never changes: cached after the random step, or seeded anew for each sample."
    rationale = """
        The augmentation is in the code and in the paper, and has no effect: a cache keeps the sample as the random step
        left it the first time, or a constant seed inside `__getitem__` makes every sample's crop the same one. The
        network sees each sample in one form only, and overfits sooner than it should.

        It is no fault if the cache stands before the random step, if no step is random, if the data set is for
        evaluation, or if the random numbers follow the sample's index (synthetic data, fixed validation crops). Data
        that are made up and not stored anywhere may be cached as they are. A constant seed in a loader that does not
        shuffle is only mentioned.
        """
    experiment = """
        A few samples are read six times in a fresh process, under different seeds of the global generators. Watched are
        the generators, what they are seeded with, and which of the user's functions run.
        """
    needs = (Repeats, LoaderFacts)
    fix = CACHE_BEFORE
    references = ("tensorflow#47755", "crank#11", "parrot.py#14", "tonic#160")

    def judge(self, seen: Repeats, facts: LoaderFacts) -> list[Finding]:
        """At most one finding: what seeds is the root of what stays equal."""
        samples = [one for one in seen.samples if one.outcome != "unreadable"]
        if facts.role == "evaluation" or (seen.is_evaluation and facts.role != "train"):
            return []
        seeded = _constant_seedings(samples)
        if seeded and seen.draws and all(one.is_same_under_seeds for one in samples):
            return [_seeded_finding(seeded, samples, seen, facts)]
        if any(one.drawn_later for one in samples):
            return []
        if seen.constant_generators and len(samples) >= FEWEST and all(one.is_same_under_seeds for one in samples):
            return [_seeded_finding(seen.constant_generators, samples, seen, facts)]
        cached = [one for one in samples if one.is_same_under_seeds and _drew_once(one, seen)]
        if len(cached) < min(FEWEST, facts.num_samples or FEWEST) or not seen.holds_records:
            return []
        return [_cached_finding(cached, seen)]

    sick = (
        Example(
            title="A cache around the augmented sample",
            evidence=(
                repeats(frozen("numpy.random"), frozen("numpy.random"), draws=("train.py:21 np.random.rand()",)),
                loader(role="train"),
            ),
            message="random steps run once per sample and never again: 2 samples drew from numpy.random when they were first "
            "read, and are the same under 3 other seeds (train.py:21 np.random.rand())",
            sample_ids=(0, 1),
        ),
        Example(
            title="A constant seed in __getitem__",
            evidence=(
                repeats(
                    *[frozen("random", drawn_later=("random",), seedings=("random.seed(0) at train.py:9",))] * 2,
                    draws=("train.py:12 random.random()",),
                ),
                loader(role="train"),
            ),
            message="every sample gets the same random numbers: random.seed(0) at train.py:9 runs at each reading, and 2 "
            "samples are the same under 3 other seeds (train.py:12 random.random())",
            sample_ids=(0, 1),
        ),
        Example(
            title="A generator made anew with one seed",
            evidence=(
                repeats(
                    frozen(),
                    frozen(),
                    draws=("train.py:12 rng.uniform()",),
                    draws_later=("train.py:12 rng.uniform()",),
                    constant_generators=("train.py:11 np.random.default_rng(7)",),
                ),
                loader(role="train"),
            ),
            message="every sample gets the same random numbers: train.py:11 np.random.default_rng(7) runs at each reading, "
            "and 2 samples are the same under 3 other seeds (train.py:12 rng.uniform())",
            sample_ids=(0, 1),
        ),
    )
    healthy = (
        Example(
            title="A cache before the random step",
            evidence=(
                repeats(
                    *[repeat(drawn_first=("random",), drawn_later=("random",))] * 2,
                    draws=("train.py:12 random.random()",),
                    draws_later=("train.py:12 random.random()",),
                ),
                loader(role="train"),
            ),
        ),
        Example(
            title="A random step that seldom acts",
            evidence=(
                repeats(*[frozen("random", drawn_later=("random",))] * 2, draws=("train.py:12 random.random()",)),
                loader(role="train"),
            ),
        ),
        Example(
            title="Numbers that follow the index",
            evidence=(
                repeats(
                    frozen("random", drawn_later=("random",), seedings=("random.seed(0) at train.py:9",)),
                    frozen("random", drawn_later=("random",), seedings=("random.seed(1) at train.py:9",)),
                    draws=("train.py:12 random.random()",),
                ),
                loader(role="train"),
            ),
        ),
        Example(
            title="Fixed crops for validation",
            evidence=(
                repeats(
                    *[frozen("random", drawn_later=("random",), seedings=("random.seed(0) at train.py:9",))] * 2,
                    draws=("train.py:12 random.random()",),
                ),
                loader(role="evaluation"),
            ),
        ),
        Example(
            title="Made-up data, kept as they were made",
            evidence=(repeats(*[frozen("torch")] * 2, holds_records=False), loader(role="train")),
        ),
        Example(title="Nothing random", evidence=(repeats(frozen(), frozen()), loader(role="train"))),
    )


def _constant_seedings(samples: list[SampleRepeat]) -> tuple[str, ...]:
    """The seeding calls that were the same, value and place, for every sample."""
    if len(samples) < FEWEST:
        return ()
    return tuple(call for call in samples[0].seedings if all(call in one.seedings for one in samples))


def _drew_once(one: SampleRepeat, seen: Repeats) -> bool:
    """True if the first reading of a sample drew, and no later one did."""
    return bool(one.drawn_first) or (bool(seen.draws) and not seen.draws_later)


def _seeded_finding(calls: tuple[str, ...], samples: list[SampleRepeat], seen: Repeats, facts: LoaderFacts) -> Finding:
    return Finding(
        message=f"every sample gets the same random numbers: {calls[0]} runs at each reading, and "
        f"{len(samples)} samples are the same under {samples[0].num_seeds} other seeds ({listing(seen.draws, 2)})",
        severity="warning" if facts.role == "train" else "info",
        confidence=0.9 if " at " in calls[0] else 0.7,
        basis="experiment",
        stage="transform",
        sample_ids=tuple(one.sample_id for one in samples),
        where=_place(calls[0]),
        evidence={"seeded_by": list(calls), "draws": list(seen.draws[:8])},
        fix=NO_SEED,
    )


def _cached_finding(cached: list[SampleRepeat], seen: Repeats) -> Finding:
    sources = tuple(dict.fromkeys(name for one in cached for name in one.drawn_first)) or ("a generator of their own",)
    steps = f" ({listing(seen.draws, 2)})" if seen.draws else ""
    num = len(cached)
    return Finding(
        message=f"random steps run once per sample and never again: {num} {verb(num, 'sample', 'samples')} drew from "
        f"{' and '.join(sources)} when {verb(num, 'it was', 'they were')} first read, and {verb(num, 'is', 'are')} the same "
        f"under {cached[0].num_seeds} other seeds{steps}",
        severity="warning",
        confidence=0.9,
        basis="experiment",
        stage="transform",
        sample_ids=tuple(one.sample_id for one in cached),
        where=_place(seen.draws[0]) if seen.draws else None,
        evidence={"drawn_first": list(sources), "draws": list(seen.draws[:8])},
    )


def _place(text: str) -> str | None:
    """The `file.py:9` in a text."""
    found = re.search(r"\S+\.py:\d+", text)
    return None if found is None else found[0]
