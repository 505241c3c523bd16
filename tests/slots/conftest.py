"""Makes `slot_acts` importable by the tests and by worker processes that start by spawn."""

import os
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
sys.path.insert(0, HERE)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))


@pytest.fixture
def make_pair():
    from slot_acts import Pair

    pairs = []

    def make(**options):
        pairs.append(Pair(**options))
        return pairs[-1]

    yield make
    for pair in pairs:
        pair.close()
