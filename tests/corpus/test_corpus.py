"""The corpus in the tests: of each rule the first sick case, judged by that rule; all healthy ones of the tutorials by all.

`make corpus` runs every case, and lets every rule judge it; it takes several times as long. HEADRACE_CORPUS=all does it
here. There each case is a command that is typed, here those that diagnose run in the tests' own process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from headrace.cli import main
from headrace.doctor import catalogue

HERE = pathlib.Path(__file__).parent


def load_corpus():
    spec = importlib.util.spec_from_file_location("corpus_of_the_doctor", HERE / "corpus.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


corpus = load_corpus()
CASES = corpus.cases()


def chosen():
    """The cases that the tests run."""
    if os.environ.get("HEADRACE_CORPUS") == "all":
        return CASES
    first = {}
    for case in CASES:
        first.setdefault(case.name if case.folder.name == "healthy" else case.folder.name, case)
    return list(first.values())


def narrowed(case):
    """The case, judged only by the rules of its folder: what they do not ask for is not run."""
    codes = case.expect or ((case.folder.name.upper(),) if case.folder.name.startswith("hr") else ())
    if not codes or os.environ.get("HEADRACE_CORPUS") == "all":
        return case
    return dataclasses.replace(case, options=(*case.options, "--select", ",".join(codes)))


def diagnose_here(arguments, folder, place):
    """As `corpus.type_in`, in this process: what imports torch for the examined file is the same for all cases."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setenv("TMPDIR", place)
        patch.setattr(tempfile, "tempdir", place)  # it is kept from the first time on
        status = main(list(arguments))
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_the_doctor_says_what_must_be_said(case):
    if (reason := case.missing()) is not None:
        pytest.skip(reason)
    if case.needs_all_cores and "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("needs all cores for itself: make corpus")
    type_in = diagnose_here if case.command == "diagnose" else corpus.type_in
    assert corpus.run(narrowed(case), type_in).faults == ()


def test_every_rule_has_two_sick_cases_and_a_healthy_look_alike():
    lacking = {}
    for rule in catalogue.rules():
        if rule.code in NO_CASES:
            continue
        sick = [case for case in CASES if rule.code in case.expect]
        alike = [case for case in CASES if case.folder.name == rule.code.lower() and case.is_healthy]
        if len(sick) < 2 or not alike:
            lacking[rule.code] = (len(sick), len(alike))
    assert lacking == {}


NO_CASES = {
    "HR002",  # a machine with a small /dev/shm
    "HR004",  # a machine that others use
    "HR813",  # needs runs beside the trainer, which `measure` will make
    "HR814",  # bursts that only hours of training show
    "HR401",  # a remark without an accelerator: never above info here
}
"""Rules whose fault a file cannot bring along."""


def test_cases_give_the_tool_no_hint():
    for case in CASES:
        text = case.text.lower()
        assert "hr" + case.folder.name.removeprefix("hr") not in text or case.folder.name == "healthy"
        assert not any(word in text for word in ("# bug", "# fault", "# wrong", "# broken", "headrace: ignore"))
