"""Real targets: a file with a few lines of a user's code, held in a real child."""

import textwrap

import pytest

from headrace.doctor.lab.outside import Budget, Lab

HEADER = """
import ctypes, os, re, signal, subprocess, sys, time
import numpy as np

def reached():
    with open(os.path.join(os.path.dirname(__file__), "reached"), "w"):
        pass

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
def spent_at(tmp_path):
    """A budget of 60 s that is spent when the user's code writes a file: no timing decides a test."""

    def make(name="reached"):
        return Budget(60.0, clock=lambda: 1000.0 if (tmp_path / name).exists() else 0.0)

    return make


@pytest.fixture
def open_lab(write_target):
    """Returns a lab on a user's file; all are closed at the end."""
    labs = []

    def open_one(code, *, budget=None, per_sample_s=30.0):
        labs.append(Lab(write_target(code), budget=budget or Budget(60.0), per_sample_s=per_sample_s))
        return labs[-1]

    yield open_one
    for lab in labs:
        lab.__exit__()
