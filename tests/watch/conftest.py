"""Runs real scripts, with and without `headrace watch`."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import psutil
import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "src"
PYTHON = [sys.executable]
WATCH = [sys.executable, "-m", "headrace", "watch"]


class Ended:
    """How a command ended."""

    def __init__(self, status, stdout, stderr, report):
        self.status, self.stdout, self.stderr, self.report = status, stdout, stderr, report

    @property
    def verdict(self):
        """What headrace printed, after the script's own words on stderr."""
        return self.stderr[self.stderr.index("WATCHED") :] if "WATCHED" in self.stderr else ""

    @property
    def codes(self):
        """Of findings that count: no evaluation, for one, is only mentioned."""
        return [finding["code"] for finding in self.report["findings"] if finding["severity"] != "info"]

    @property
    def loop(self):
        return self.report["target"]["watch"]["loop"]


class Scripts:
    """Scripts in a folder of their own."""

    def __init__(self, folder):
        self.folder = folder
        # Not below `folder`: torch's workers make sockets there, whose paths may have about a hundred characters.
        self.temporary = pathlib.Path(tempfile.mkdtemp(prefix="hr"))
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "TMPDIR": str(self.temporary),
            "TEST_FOLDER": str(folder),
        }
        self.environment.pop("RANK", None)
        self.environment.pop("WORLD_SIZE", None)

    def write(self, text, name="train.py"):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(textwrap.dedent(text))
        return name

    def start(self, *command, **more):
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **more,
        )

    def run(self, *command, stdin="", timeout=90):
        process = self.start(*command, stdin=subprocess.PIPE)
        stdout, stderr = process.communicate(stdin, timeout=timeout)
        return Ended(process.returncode, stdout, stderr, None)

    def plain(self, *words, **more):
        return self.run(*PYTHON, *words, **more)

    def watched(self, *words, options=(), **more):
        return self.run(*WATCH, *options, *words, **more)

    def reported(self, *words, options=(), **more):
        """Runs it with the report as JSON."""
        path = self.folder / "report.json"
        ended = self.watched(*words, options=("--format", "json", "--output", str(path), *options), **more)
        ended.report = json.loads(path.read_text())
        return ended

    def leftovers(self, marker):
        """Processes that were started here and are alive, and what they left in the temporary folder."""
        deadline = time.monotonic() + 15  # workers of torch look every few seconds whether their parent is there
        while time.monotonic() < deadline and (alive := _alive(marker)):
            time.sleep(0.1)
        return alive, [path.name for path in self.temporary.glob("headrace*")]


def _alive(marker):
    found = []
    for process in psutil.process_iter():
        try:
            if marker in process.environ().get("TEST_FOLDER", "") and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture
def scripts(tmp_path):
    made = Scripts(tmp_path)
    yield made
    for process in _alive(str(tmp_path)):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    shutil.rmtree(made.temporary, ignore_errors=True)


TRAIN = """
    import os, signal, sys, time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 96

        def __getitem__(self, row):
            return torch.randn(4) + row, row % 2

    def main(num_workers=0, epochs=2, context=None, at_step=lambda step: None, **more):
        torch.manual_seed(3)
        loader = DataLoader(Rows(), batch_size=8, shuffle=True, num_workers=num_workers,
                            multiprocessing_context=context, **more)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        step = 0
        for epoch in range(epochs):
            for features, labels in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(features), labels)
                loss.backward()
                optimizer.step()
                print(step, loss.item().hex(), flush=True)
                at_step(step)
                step += 1
"""


@pytest.fixture
def train(scripts):
    """Writes a script that trains, ending in the given lines."""

    def write(ending, name="train.py"):
        return scripts.write(textwrap.dedent(TRAIN) + "\n" + textwrap.dedent(ending), name)

    return write
