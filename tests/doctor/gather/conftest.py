"""Real targets: a file with a few lines of a user's code, held in a real child."""

import textwrap

import pytest

from headrace.doctor.lab import Budget, Lab

HEADER = """
import ctypes, os, re, signal, subprocess, sys, time
import numpy as np

class Base:
    def __len__(self):
        return self.size
"""


@pytest.fixture
def write_target(tmp_path):
    """Writes a user's file; returns the TARGET for `make` in it."""

    def write(code, name="train"):
        path = tmp_path / f"{name}.py"
        path.write_text(HEADER + textwrap.dedent(code))
        return f"{path}:make"

    return write


@pytest.fixture
def open_lab(write_target):
    """Returns a lab on a user's file; all are closed at the end."""
    labs = []

    def open_one(code, *, budget_s=60.0, per_sample_s=30.0):
        labs.append(Lab(write_target(code), budget=Budget(budget_s), per_sample_s=per_sample_s))
        return labs[-1]

    yield open_one
    for lab in labs:
        lab.close()
