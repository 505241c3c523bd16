"""Asks the loader what it says of itself; nothing is loaded."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Iterator
from typing import ClassVar, Literal

from headrace.doctor.evidence import LoaderFacts, Violation
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.contracts import ContractProbe
from headrace.doctor.subject import Subject

__all__ = ["AskFacts", "Introduction"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What the other probes have to know before they start."""

    facts: LoaderFacts
    dataset_kind: str
    """Class of the data set."""
    dataset_layers: tuple[str, ...]
    """Classes of the data set and of those inside it, outermost first."""
    collate: str
    """Name of what joins samples; torch's default rules for a bare data set."""
    has_default_collate: bool
    """True for torch's default rules."""
    joins_samples: bool
    """False for a loader that hands over single samples, or that joins them where nobody can reach."""
    cannot: dict[str, str]
    """What cannot be examined for this kind of target, and why; the words are those of `Subject.cannot`."""
    is_batched: bool
    """True if a pass delivers batches."""
    classes: tuple[int, str] | None
    """Number of classes and who says so."""
    has_contract: bool
    """True if a file was given, or the loader or data set carries a contract."""
    target_fields: tuple[str, ...]
    """Fields that the contract calls targets."""
    splits: tuple[str, ...]
    """Names of the loaders of TARGET, the training loader first; one alone has the empty name."""
    violations: tuple[Violation, ...]
    """What breaks the contract without a look at any sample: the number of samples."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskFacts:
    """The experiment; yields one Introduction."""

    name: ClassVar[str] = "facts"
    starts_processes: ClassVar[bool] = False

    contract: str | None = None
    """Path of a contract file."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Introduction]:
        """Asks; under the deadline of one sample, because `len` runs the user's code."""
        with bench.holding(None, None, stage="facts"):
            yield self._ask(subject)

    def _ask(self, subject: Subject) -> Introduction:
        contract = ContractProbe(subject, self.contract)
        agreed = contract.num_classes()
        is_bare = subject.loader is None
        return Introduction(
            facts=LoaderFacts(
                kind=subject.kind,
                is_iterable=subject.is_iterable,
                num_samples=subject.num_samples,
                batch_size=subject.batch_size,
                drop_last=subject.drop_last,
                num_batches=subject.num_batches,
                num_workers=subject.num_workers,
                collate=None if is_bare else subject.collate_name,
                role=_role(subject),
                persistent_workers=bool(getattr(subject.loader, "persistent_workers", False)),
                start_method=_start_method(subject),
            ),
            dataset_kind=subject.dataset_kind,
            dataset_layers=subject.dataset_layers,
            collate=subject.collate_name,
            has_default_collate=subject.has_default_collate,
            joins_samples=subject.joins_samples,
            cannot=subject.cannot,
            is_batched=subject.is_batched,
            classes=subject.classes() if agreed is None else (agreed, "the contract"),
            has_contract=not contract.is_silent,
            target_fields=contract.targets(),
            splits=tuple(subject.siblings),
            violations=contract.size(subject.num_samples),
        )


def _role(subject: Subject) -> Literal["train", "evaluation"] | None:
    """By its name in TARGET; a loader alone that shuffles trains."""
    name = next((name for name, one in subject.siblings.items() if one is subject), "")
    if name:
        return "train" if name == next(iter(subject.siblings)) else "evaluation"
    sampler = getattr(subject.loader, "sampler", None)
    draws = "Random" in type(sampler).__name__ or getattr(sampler, "shuffle", False) is True
    return "train" if draws else None


def _start_method(subject: Subject) -> str | None:
    """How its workers are started: the loader's own context, else what the interpreter takes."""
    context = getattr(subject.loader, "multiprocessing_context", None)
    if isinstance(context, str):
        return context
    if context is not None:
        return str(context.get_start_method())
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
