"""Real loaders of real libraries, examined from end to end in a real child. Libraries that are not there are skipped."""

import importlib.util
import textwrap

import pytest

from headrace.doctor.diagnose import Options, diagnose

HEADER = """
import os, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
HERE = os.path.dirname(__file__)
"""


@pytest.fixture
def examine(tmp_path):
    """Writes a user's file, diagnoses `make` in it, and returns the report."""

    def run(code, **options):
        path = tmp_path / "train.py"
        path.write_text(HEADER + textwrap.dedent(code))
        return diagnose(f"{path}:make", Options(budget_s=100.0, per_sample_s=60.0, **options), command="test")

    return run


def needs(*modules):
    """Marks a test that is skipped, with the reason, where a library is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")
