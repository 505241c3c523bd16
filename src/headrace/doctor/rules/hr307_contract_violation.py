"""HR307 contract-violation: samples or batches that break the contract."""

from __future__ import annotations

from headrace.doctor.evidence import ContractCheck, Violation
from headrace.doctor.questions.samples import grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, verb


class ContractViolation(Rule):
    """HR307."""

    code = "HR307"
    name = "contract-violation"
    summary = "Samples, or a batch of them, that break the contract: type, shape, range, targets, number of samples."
    rationale = """
        A contract is the agreement between data and network, written down: which fields, which types, shapes and
        values, how many samples. Data that drift away from it train without an error and spoil the model, or break
        a run weeks after the change that did it.

        It is no fault of the data if the contract is out of date. Then the contract is what to change, in a commit of
        its own, so that the change is seen.
        """
    experiment = """
        The chosen samples, and one batch of them, are held against the contract. Nothing is changed.
        """
    needs = (ContractCheck,)
    fix = Fix(
        text="Mend the named samples; or, if the data are right, infer the contract anew and look at the difference.",
        safety="a new contract changes what is checked, not what is delivered",
        snippet="$ headrace contract train.py:make_loader --check contract.toml",
    )
    references = (
        "pandera and Great Expectations: the same idea for tables",
        "TensorFlow Data Validation: schema and drift",
    )

    def judge(self, check: ContractCheck) -> list[Finding]:
        """One finding for each expectation that is not met."""
        broken = grouped(((violation.field, violation.expected), violation) for violation in check.violations)
        return [_finding(violations, check) for violations in broken.values()]

    sick = (
        Example(
            title="Targets beyond the agreed range",
            evidence=(
                ContractCheck(
                    contract="contract.toml",
                    num_checked=64,
                    violations=(
                        Violation(sample_id="a.png", field="label", expected="int64 in 0..9", found="12"),
                        Violation(sample_id="b.png", field="label", expected="int64 in 0..9", found="10"),
                    ),
                ),
            ),
            message="2 of 64 checked samples break the contract (contract.toml): field 'label' of sample a.png is 12, expected int64 in 0..9",
            sample_ids=("a.png", "b.png"),
        ),
        Example(
            title="A data set that lost samples",
            evidence=(
                ContractCheck(
                    contract="contract.toml",
                    num_checked=64,
                    violations=(Violation(sample_id=None, field=None, expected="1797 samples", found="1790 samples"),),
                ),
            ),
            message="the data set breaks the contract (contract.toml): found 1790 samples, expected 1797 samples",
        ),
    )
    healthy = (
        Example(
            title="Everything as agreed",
            evidence=(ContractCheck(contract="contract.toml", num_checked=64, violations=()),),
        ),
        Example(
            title="An empty data set: nothing to hold against the contract, and HR309 says so",
            evidence=(ContractCheck(contract="contract.toml", num_checked=0, violations=()),),
        ),
    )


def _finding(violations: list[Violation], check: ContractCheck) -> Finding:
    """What to say of the breaches of one expectation."""
    first = violations[0]
    ids = tuple(dict.fromkeys(violation.sample_id for violation in violations if violation.sample_id is not None))
    if ids:
        subject = f"{len(ids):,} of {count(check.num_checked, 'checked sample')} {verb(len(ids), 'breaks', 'break')}"
    else:
        subject = "the data set breaks" if first.field is None else "the batch breaks"
    place = f"field {first.field!r}" if first.field is not None else ""
    of_sample = f"sample {first.sample_id}" if first.sample_id is not None else ""
    found = " of ".join(part for part in (place, of_sample) if part)
    return Finding(
        message=f"{subject} the contract ({check.contract}): {f'{found} is' if found else 'found'} {first.found}, expected {first.expected}",
        stage="collate" if first.sample_id is None and first.field is not None else "transform",
        sample_ids=ids,
        where=check.contract if check.contract.endswith(".toml") else None,
        evidence={
            "field": first.field,
            "expected": first.expected,
            "found": first.found,
            "num_breaches": len(violations),
        },
    )
