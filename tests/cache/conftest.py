"""Makes `cache_pupils` importable by the tests and by worker processes that start by spawn."""

import os
import sys
import time
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
sys.path.insert(0, HERE)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))


@pytest.fixture
def root(tmp_path):
    """Files of two classes, settled."""
    from cache_pupils import make_files

    root = make_files(tmp_path / "data")
    time.sleep(0.06)  # files younger than the clock of the file system are not trusted
    return root


@pytest.fixture
def counter(tmp_path):
    """A file whose size is the number of decodings, over all processes."""
    path = tmp_path / "decodings"
    path.touch()
    return path
