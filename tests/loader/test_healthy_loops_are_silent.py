"""Tensors, arrays and samples through every runner: no warning, no line, in no process."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import torch
from torch.utils.data import TensorDataset
import headrace as hr

if __name__ == "__main__":
    options = eval(sys.argv[1])
    tensors = TensorDataset(torch.arange(100.0).reshape(50, 2), torch.arange(50))
    for dataset in (tensors, torch.arange(50), np.arange(50), hr.arrays(x=np.ones((50, 3)), y=torch.arange(50)), range(50)):
        for shuffle in (False, True):
            loader = hr.DataLoader(dataset, batch_size=8, shuffle=shuffle, **options)
            for epoch in range(2):
                assert len(list(loader)) == 7
"""
LAYOUTS = [
    {},
    {"num_workers": 2, "runner": "threads"},
    {"num_workers": 2, "multiprocessing_context": "fork"},
    {"num_workers": 2, "multiprocessing_context": "fork", "runner": "host", "persistent_workers": True},
    {"num_workers": "auto"},
    pytest.param(
        {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True}, marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize("options", LAYOUTS)
def test_nothing_is_printed(tmp_path, options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "always", program, repr(options)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
