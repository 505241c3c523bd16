"""`HEADRACE_UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew; read the difference before it is committed."""

from __future__ import annotations

import os
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def golden():
    """Compares bytes with a file beside this one; writes the file instead if the user asks for it."""

    def compare(name: str, found: bytes) -> None:
        path = HERE / name
        if os.environ.get("HEADRACE_UPDATE_GOLDEN"):
            path.write_bytes(found)
        assert found.decode() == path.read_text(encoding="utf-8"), (
            f"{name} differs; HEADRACE_UPDATE_GOLDEN=1 updates it"
        )

    return compare
