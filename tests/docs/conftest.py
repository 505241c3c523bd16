"""The reader of blocks, for the tests of this folder."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def blocks(load_file):
    return load_file(Path(__file__).with_name("blocks.py"))
