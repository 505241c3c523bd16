"""From TARGET to finding: the walk with workers ends in evidence whatever they do, and nothing is left running."""

import textwrap

import psutil
import pytest

from headrace.doctor.diagnose import Options, diagnose

pytestmark = pytest.mark.slow  # starts interpreters

HEADER = """
import os, time
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

class Rows(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        if index == 9 and get_worker_info() is not None:
            self.fall()
        return torch.tensor([float(index)]), index % 2
"""


@pytest.fixture
def codes(tmp_path):
    """Codes of the findings about workers, with what they name, of a file with `make`."""

    def find(code):
        file = tmp_path / "train.py"
        file.write_text(HEADER + textwrap.dedent(code))
        options = Options(select=["HR205", "HR206", "HR5", "HR602", "HR603"])
        report = diagnose(f"{file}:make", options, command="")
        assert not [
            one for one in psutil.Process().children(recursive=True) if "doctor.lab.inside" in " ".join(one.cmdline())
        ]
        assert not [row for row in report.skipped if row.crashed]
        return {row.code: (row.severity, row.sample_ids) for row in report.findings}

    return find


def test_a_worker_that_ends(codes):
    code = """
    class Falls(Rows):
        def fall(self):
            os._exit(4)
    def make():
        return DataLoader(Falls(), batch_size=4, num_workers=2)
    """
    assert codes(code) == {"HR507": ("error", [9])}


def test_a_worker_that_hangs_where_the_loader_has_none_yet(codes):
    code = """
    class Falls(Rows):
        def fall(self):
            time.sleep(3600)
    def make():
        return DataLoader(Falls(), batch_size=4)
    """
    assert codes(code) == {"HR508": ("info", [9])}


def test_an_error_that_only_workers_have(codes):
    code = """
    class Falls(Rows):
        def fall(self):
            raise ValueError("no device in this process")
    def make():
        return DataLoader(Falls(), batch_size=4, num_workers=2)
    """
    assert codes(code) == {"HR505": ("error", [9])}


def test_a_healthy_loader_with_every_kind_of_healthy_randomness(codes):
    code = """
    class Augmented(Rows):
        def fall(self):
            self.rng = np.random.default_rng(get_worker_info().seed)
        def __getitem__(self, index):
            if not hasattr(self, "rng"):
                self.rng = np.random.default_rng(torch.initial_seed())
            return {"x": torch.rand(3) + np.random.rand() + self.rng.random(), "y": index,
                    "keyed": np.random.default_rng(index).normal()}
    def make():
        return DataLoader(Augmented(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
    """
    assert codes(code) == {}
