"""Holds the samples and the batch that other probes prepare against a contract: nothing is loaded twice for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.contract import Breach, Contract
from headrace.doctor.evidence import ContractCheck, Violation
from headrace.doctor.subject import Subject
from headrace.errors import SampleId

__all__ = ["ContractProbe", "check_contract"]


class ContractProbe:
    """Works in the child: from a file, else from what the loader carries; silent if there is neither."""

    def __init__(self, subject: Subject, path: str | None) -> None:
        self._contract = subject.contract if path is None else Contract.load(path)

    @property
    def is_silent(self) -> bool:
        """True if there is no contract."""
        return self._contract is None

    def targets(self) -> tuple[str, ...]:
        """Returns the names of the fields that the contract calls targets."""
        return () if self._contract is None else self._contract.names("target")

    def num_classes(self) -> int | None:
        """Returns the number of classes, if all targets that say one say the same."""
        fields = () if self._contract is None else self._contract.fields
        said = {field.num_classes for field in fields if field.num_classes is not None}
        return said.pop() if len(said) == 1 else None

    def sample(self, sample: Any, sample_id: SampleId) -> tuple[Violation, ...]:
        """Returns what is not as agreed in one sample."""
        return () if self._contract is None else _violations(self._contract.check_sample(sample, sample_id))

    def batch(self, batch: Any, sample_ids: Sequence[SampleId]) -> tuple[Violation, ...]:
        """Returns what is not as agreed in one batch."""
        return () if self._contract is None else _violations(self._contract.check_batch(batch, sample_ids))

    def size(self, num_samples: int | None) -> tuple[Violation, ...]:
        """Returns a violation if the data set has another number of samples than agreed."""
        if self._contract is None or num_samples is None:
            return ()
        return _violations(self._contract.check_size(num_samples))


def check_contract(path: str | None, num_checked: int, found: Iterable[Violation]) -> ContractCheck:
    """Makes evidence of what the probe found, each breach once: one that a sample shows, its batch shows as well."""
    return ContractCheck(
        contract="the loader's own" if path is None else path,
        num_checked=num_checked,
        violations=tuple(dict.fromkeys(found)),
    )


def _violations(breaches: Iterable[Breach]) -> tuple[Violation, ...]:
    return tuple(
        Violation(sample_id=breach.sample_id, field=breach.field, expected=breach.expected, found=breach.found)
        for breach in breaches
    )
