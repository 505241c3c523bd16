"""The fixture `headrace_check` fails a test for findings, and only for those of the severity that is asked for."""

import subprocess
import sys
import types

import msgspec
import pytest

from headrace import pytest_plugin

SOURCE = """
import torch
from torch.utils.data import DataLoader

images = [torch.zeros(3, 4, 4) for _ in range(11)]
sound = DataLoader(images[:7], batch_size=4)
images[7] = torch.zeros(1, 4, 4)
loader = DataLoader(images, batch_size=4)
"""
TESTS = """
import pytest
from train import images
from torch.utils.data import DataLoader

def test_a_loader_made_here(headrace_check):
    loader = DataLoader(images, batch_size=4)
    with pytest.raises(pytest.fail.Exception, match="HR301"):
        headrace_check(loader, select="HR3")
    headrace_check(DataLoader(images[:7], batch_size=4), select="HR3")

def test_sound(headrace_check):
    assert headrace_check("train.py:sound", select="HR3").verdict == "clean"

def test_broken(headrace_check):
    headrace_check("train.py:loader", select="HR3", max_samples=20)

def test_ignored(headrace_check):
    headrace_check("train.py:loader", select="HR3", ignore="HR301")
"""


@pytest.mark.slow
def test_in_a_real_run_with_pages(tmp_path):
    (tmp_path / "train.py").write_text(SOURCE)
    (tmp_path / "test_data.py").write_text(TESTS)
    # By name and not by its entry point, so that a checkout which is not installed is tested too.
    words = ["-p", "no:headrace", "-p", "headrace.pytest_plugin", "-p", "no:cacheprovider", "--headrace-html", "pages"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 3 passed" in done.stdout
    assert "E HR301 shape-mismatch" in done.stdout
    assert "page: pages/test_data.py-test_broken.html" in done.stdout
    assert "Traceback" not in done.stdout
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == [
        "test_data.py-test_a_loader_made_here-2.html",
        "test_data.py-test_a_loader_made_here.html",
        "test_data.py-test_broken.html",
        "test_data.py-test_ignored.html",
        "test_data.py-test_sound.html",
    ]


@pytest.fixture
def check(request, monkeypatch):
    """The function that the fixture gives, with a doctor that finds one thing of each severity."""
    asked = []
    monkeypatch.setattr(request.config.option, "headrace_html", None, raising=False)

    def diagnose(target, options, *, command):
        asked.append((target, options, command))
        return target

    monkeypatch.setattr("headrace.doctor.diagnose.diagnose", diagnose)
    return types.SimpleNamespace(run=pytest_plugin.make_check(request), asked=asked)


def reported(*severities, verdict=None):
    from headrace.doctor.report.model import ChosenFix, Environment, FindingRow, Report

    rows = [
        FindingRow(
            code=f"HR{number}01", name="made-up", stage="", severity=severity, basis="observed", confidence=1.0,
            message=f"a fault of severity {severity} \x1b[31m", sample_ids=[], where=None, evidence={},
            fix=ChosenFix(text="mend it", safety="none"),
        )
        for number, severity in enumerate(severities, start=1)
    ]  # fmt: skip
    return Report(
        tool="", created="", command="", target={"spec": "a loader"}, findings=rows, runs=[], stages=[], skipped=[],
        cleared=[], verdict=verdict or ("findings" if rows else "clean"),
        environment=Environment(python="", torch=None, numpy="", headrace="", platform="", usable_cores=1),
    )  # fmt: skip


@pytest.mark.parametrize("severity", ["error", "warning", "info"])
@pytest.mark.parametrize("found", ["error", "warning", "info"])
def test_the_severity_decides(check, severity, found):
    order = ["info", "warning", "error"]
    if order.index(found) >= order.index(severity):
        with pytest.raises(pytest.fail.Exception, match=rf"a fault of severity {found} \\x1b"):
            check.run(reported(found), severity=severity)
    else:
        assert check.run(reported(found), severity=severity).findings


def test_less_severe_findings_are_left_out_of_the_message(check):
    with pytest.raises(pytest.fail.Exception) as failed:
        check.run(reported("error", "info"))
    assert "severity error" in str(failed.value)
    assert "severity info" not in str(failed.value)


def test_options_go_on_to_the_doctor(check):
    target = reported()
    check.run(target, ignore=["HR1"], select="HR3, HR6", num_classes=3)
    ((asked, options, command),) = check.asked
    assert asked is target
    assert (options.ignore, options.select, options.num_classes) == (("HR1",), ("HR3", "HR6"), 3)
    assert command.startswith("pytest ")


def test_undecided_is_said_and_is_no_failure(check):
    with pytest.warns(pytest.PytestWarning, match="undecided"):
        check.run(msgspec.structs.replace(reported(), verdict="inconclusive"))


def test_a_severity_that_is_none_is_refused(check):
    with pytest.raises(ValueError, match="severity='fatal'"):
        check.run(reported(), severity="fatal")
