"""One report per target: every rule judged, skipped with a reason, or shown as crashed; healthy loaders get silence."""

import json
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from headrace.doctor.diagnose import Options, diagnose
from headrace.doctor.evidence import CollateTrial, ContractCheck, LoaderFacts, SampleReads, WorkerStreams
from headrace.doctor.report.text import render
from headrace.doctor.rule import Finding, Fix, Rule
from headrace.errors import ConfigurationError, ContractFileError, TargetError


class Told(Rule):
    """A rule whose verdict is given to it."""

    name: ClassVar[str] = "told"
    fix: ClassVar[Fix] = Fix(text="mend it", safety="same data")

    def __init__(self, code, needs, verdict):
        self.code, self.needs, self._verdict = code, needs, verdict

    def judge(self, *evidence):
        return self._verdict(*evidence)


def silent(code, *needs):
    return Told(code, needs, lambda *evidence: [])


def finding(code, **fields):
    return Told(code, (LoaderFacts,), lambda facts: [Finding(message=code, **fields)])


LIST = """
def make():
    return [(np.zeros(3, np.float32), i % 3) for i in range(10)]
"""


@pytest.fixture
def report_on(write_target):
    def run(code, *rules, **options):
        return diagnose(write_target(code), Options(**options), command="headrace diagnose", rules=rules)

    return run


@pytest.mark.slow
def test_rules_are_judged_skipped_or_shown_as_crashed_and_the_rest_goes_on(report_on):
    def fails(facts):
        raise ValueError("no such field")

    own_fix = Fix(text="another way", safety="none")
    report = report_on(
        LIST,
        finding("HR805", severity="info"),
        silent("HR803", SampleReads, CollateTrial, LoaderFacts),
        Told("HR802", (LoaderFacts,), fails),
        finding(
            "HR804", severity="warning", fix=own_fix, evidence={"ids": (1, np.int64(2)), 3: b"\0", "nan": float("nan")}
        ),
        silent("HR801", WorkerStreams),
        silent("HR800", ContractCheck, WorkerStreams),
        finding("HR806", sample_ids=(1, 2), stage="read", where="a.py:3"),
    )
    assert [(row.code, row.severity) for row in report.findings] == [
        ("HR806", "error"),
        ("HR804", "warning"),
        ("HR805", "info"),
    ]
    assert report.findings[0].fix.text == "mend it"
    assert report.findings[1].fix.text == "another way"
    assert report.findings[0].sample_ids == [1, 2]
    assert report.cleared == ["HR803"]
    assert [(row.code, row.crashed) for row in report.skipped] == [("HR800", False), ("HR801", False), ("HR802", True)]
    assert "--contract FILE" in report.skipped[0].reason
    assert "not a stream" in report.skipped[1].reason
    assert report.skipped[2].reason.startswith("ValueError: no such field (test_diagnose.py:")
    assert (report.verdict, report.exit_status) == ("findings", 1)
    json.loads(msgspec.json.encode(report))
    assert report.target == {
        "spec": report.target["spec"],
        "kind": "list",
        "dataset": "list",
        "inside": [],
        "num_samples": 10,
        "batch_size": None,
        "num_workers": 0,
        "collate": "default_collate",
        "examined": 10,
    }
    assert [row.name for row in report.runs] == ["load target", "facts", "reads", "collation"]
    assert {row.outcome for row in report.runs} == {"done"}
    assert [(row.name, row.num_samples) for row in report.stages] == [("read", 10), ("collate", 8)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (LIST, "clean"),
        ("def make(): return [1]", "clean"),
        ("def make(): return []", "inconclusive"),
        ("class Bad(Base):\n    size = 9\n    def __getitem__(self, i): raise KeyError(i)\nmake = Bad", "inconclusive"),
    ],
)
def test_silence_counts_only_if_something_could_be_examined(report_on, code, verdict):
    report = report_on(code, silent("HR801", SampleReads))
    assert report.verdict == verdict
    assert report.exit_status == {"clean": 0, "inconclusive": 3}[verdict]


NOTHING = """
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        return self.labels[index]

def make():
    return DataLoader(Rows(), batch_size=8)
"""


@pytest.mark.slow
def test_no_selection_of_rules_passes_a_loader_that_delivers_nothing(write_target):
    report = diagnose(write_target(NOTHING), Options(select=("HR705",)), command="headrace diagnose")
    assert (report.verdict, report.exit_status) == ("inconclusive", 3)
    assert "40 error. headrace diagnose" in render(report, width=400)


@pytest.mark.slow
def test_what_the_budget_left_out_is_reported_and_what_was_found_is_kept(report_on, spent_at, monkeypatch):
    monkeypatch.setattr("headrace.doctor.diagnose.Budget", lambda seconds: spent_at())
    code = """
    class Slow(Base):
        size = 10
        def __getitem__(self, index):
            if index == 5:
                reached()
                time.sleep(1000)
            return index
    make = Slow
    """
    seen = []
    rules = (Told("HR801", (SampleReads,), lambda reads: seen.append(reads) or []), silent("HR802", CollateTrial))
    report = report_on(code, *rules, per_sample_s=100)
    assert report.runs[2].name == "reads"
    assert report.runs[2].outcome == "over-budget"
    assert "sample 5" in report.runs[2].detail
    assert [read.index for read in seen[0].reads] == [0, 1, 2, 3, 4]
    assert not seen[0].is_full
    assert [row.reason for row in report.skipped] == ["the samples were not joined: over budget"]


@pytest.mark.slow
def test_a_contract_is_held_against_samples_and_batch(report_on, tmp_path):
    from headrace.contract import Contract, Field

    path = tmp_path / "contract.toml"
    Contract(
        fields=(
            Field(name="0", dtype="float32", shape=(3,)),
            Field(name="1", role="target", num_classes=2),
        ),
        num_samples=12,
    ).save(path)
    seen = []

    def keep(check, reads):
        seen.extend((check, reads))
        return []

    report_on(LIST, Told("HR801", (ContractCheck, SampleReads), keep), contract=path)
    check, reads = seen
    assert check.contract == str(path)
    assert check.num_checked == 10
    assert [(one.sample_id, one.field) for one in check.violations] == [(None, None), (2, "1"), (5, "1"), (8, "1")]
    assert reads.target_fields == ("1",)
    assert (reads.num_classes, reads.num_classes_from) == (2, "the contract")


@pytest.mark.slow
def test_what_the_user_says_of_classes_comes_before_what_the_data_set_says(report_on):
    seen = []
    rule = Told("HR801", (SampleReads,), lambda reads: seen.append((reads.num_classes, reads.num_classes_from)) or [])
    code = """
    class Named(Base):
        size = 3
        classes = ["a", "b"]
        def __getitem__(self, index):
            return index
    make = Named
    """
    report_on(code, rule)
    report_on(code, rule, num_classes=7)
    assert seen == [(2, "Named.classes"), (7, "--num-classes")]


@pytest.mark.slow
def test_a_stream_is_examined_as_a_stream(report_on):
    code = """
    import torch
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(20))
    make = Stream
    """
    rule = Told(
        "HR802", (WorkerStreams,), lambda found: [Finding(message=f"{found.num_duplicated} of {found.num_workers}")]
    )
    report = report_on(code, silent("HR801", SampleReads, CollateTrial), rule)
    assert [row.message for row in report.findings] == ["20 of 2"]
    assert (report.skipped, report.cleared, report.target["examined"]) == ([], ["HR801"], 20)


def test_bad_options_and_targets_are_refused_before_anything_starts(report_on, tmp_path):
    with pytest.raises(ConfigurationError, match=r"^full and quick"):
        Options(full=True, quick=True)
    with pytest.raises(ConfigurationError, match=r"^budget_s=0"):
        Options(budget_s=0)
    with pytest.raises(ConfigurationError, match=r"^max_samples=0"):
        Options(max_samples=0)
    with pytest.raises(TargetError):
        diagnose("nothing", command="")
    with pytest.raises(ContractFileError):
        report_on(LIST, contract=tmp_path / "none.toml")


@pytest.mark.slow
def test_only_what_the_rules_need_is_run(report_on):
    assert [row.name for row in report_on(LIST, silent("HR801", LoaderFacts)).runs] == ["load target", "facts"]
    assert [row.name for row in report_on(LIST, silent("HR801", SampleReads)).runs] == ["load target", "facts", "reads"]


@pytest.mark.slow
def test_what_cannot_be_examined_is_refused_with_what_can(report_on):
    code = """
    class NoLength:
        def __getitem__(self, index):
            return index
    make = NoLength
    """
    with pytest.raises(TargetError, match=r"^there is nothing to examine in a train\.NoLength") as caught:
        report_on(code)
    assert "no __len__" in caught.value.why


@pytest.mark.slow
def test_the_shipped_rules_are_silent_on_a_healthy_loader(write_target, monkeypatch):
    monkeypatch.setattr("headrace.doctor.lab.outside.cpu_pressure", lambda: 99.0)  # others keep the machine busy
    code = """
    from torch.utils.data import DataLoader
    import torch

    def make():
        data = [(torch.randn(3, 8, 8), i % 4) for i in range(200)]
        return DataLoader(data, batch_size=16, shuffle=True, num_workers=2)
    """
    target = write_target(code)
    report = diagnose(target, Options(num_classes=4), command="headrace diagnose")
    assert report.findings == []
    assert (report.verdict, report.exit_status) == ("clean", 0)
    assert len(report.cleared) >= 8
    (asked,) = diagnose(target, Options(select=["HR004"]), command="headrace diagnose").findings
    assert asked.message.startswith("in 99 % of the last ten seconds")
