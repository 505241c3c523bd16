"""The words of `headrace watch`: what is headrace's, what is the script's, and the exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from headrace.cli import main
from headrace.cli.watch import WatchCommand

WORDS = {
    "train.py": ({}, ["train.py"]),
    "train.py --quiet -m x": ({}, ["train.py", "--quiet", "-m", "x"]),
    "--quiet train.py --format json": ({"quiet": True}, ["train.py", "--format", "json"]),
    "-m package.module --output x": ({}, ["-m", "package.module", "--output", "x"]),
    "--format json -m package.module": ({"output_format": "json"}, ["-m", "package.module"]),
    "--select HR8 --ignore=HR807 train.py -h": ({"select": "HR8", "ignore": "HR807"}, ["train.py", "-h"]),
    "--exit-zero -- train.py -- x": ({"exit_zero": True}, ["train.py", "--", "x"]),
    "torchrun --nproc-per-node 2 train.py --lr 1": ({}, ["torchrun", "--nproc-per-node", "2", "train.py", "--lr", "1"]),
}


@pytest.mark.parametrize("typed", WORDS)
def test_options_come_before_the_script_and_the_rest_is_its_own(typed, monkeypatch):
    from typer.main import get_command

    from headrace.cli.app import app

    command = get_command(app).commands["watch"]
    assert isinstance(command, WatchCommand)
    context = command.make_context("watch", typed.split())
    options, script = WORDS[typed]
    assert list(context.params["script"]) == script
    assert {name: getattr(context.params[name], "value", context.params[name]) for name in options} == options


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("watch missing.py", "there is no script missing.py"),
        ("watch no-such-command-here", "there is no script and no command no-such-command-here"),
        ("watch -m", "what to run is missing"),
        ("watch --select HR999 train.py", "no rule has the code 'HR999'"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence(typed, message, capsys):
    assert main(typed.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_without_a_script_it_says_how_to_use_it(capsys):
    assert main(["watch"]) == 2
    assert "SCRIPT" in capsys.readouterr().err


SICK = """
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.arange(20.0)), batch_size=5)
for _ in range(12):
    next(iter(loader))
print("done")
"""


def run(folder, *words):
    command = [sys.executable, "-m", "headrace", "watch", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def sick(tmp_path):
    (tmp_path / "train.py").write_text(SICK)
    return tmp_path


def test_findings_of_a_script_that_ended_well_are_status_1(sick):
    ended = run(sick, "train.py")
    assert (ended.returncode, ended.stdout) == (1, "done\n")
    assert "HR702 rebuilt-iterator" in ended.stderr


def test_exit_zero_and_ignored_rules_do_not_fail(sick):
    ended = run(sick, "--exit-zero", "--format", "json", "train.py")
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert [finding["code"] for finding in json.loads(ended.stderr)["findings"]] == ["HR702"]
    ended = run(sick, "--ignore", "HR702", "--quiet", "train.py")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_the_report_goes_to_the_file_that_is_named(sick):
    ended = run(sick, "--output", "verdict.txt", "train.py")
    assert ended.stderr == "headrace: wrote verdict.txt\n"
    assert (sick / "verdict.txt").read_text().startswith("WATCHED  train.py: finished\n")


def test_the_status_of_a_script_that_failed_is_its_own(sick):
    for ending, status in (("raise SystemExit(4)", 4), ("import os; os.kill(os.getpid(), 15)", 128 + signal.SIGTERM)):
        (sick / "train.py").write_text(SICK + ending)
        assert run(sick, "train.py").returncode == status


def test_a_script_without_any_loader_is_undecided_and_does_not_fail(tmp_path):
    ended = run(tmp_path, "-c", "print(1)")
    assert (ended.returncode, ended.stdout) == (0, "1\n")
    assert "imported neither torch nor headrace's loader" in " ".join(ended.stderr.split())


def test_diagnose_sends_rules_of_a_running_script_here(sick, monkeypatch, capsys):
    monkeypatch.chdir(sick)
    assert main(["diagnose", "--select", "HR801", "train.py:loader"]) == 2
    error = capsys.readouterr().err
    assert "HR801: only a running script shows that" in error
    assert "headrace watch train.py" in error
