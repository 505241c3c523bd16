"""A test that hangs ends with the stacks of all its threads, and the run fails."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HANGING = """
import threading

never = threading.Event()

def wait_for_nobody():
    never.wait()

def test_hangs():
    threading.Thread(target=wait_for_nobody, name="the-other-thread", daemon=True).start()
    never.wait()
"""


@pytest.mark.slow
def test_a_hanging_test_ends_with_all_stacks(tmp_path):
    (tmp_path / "test_hanging.py").write_text(HANGING)
    house = ["-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "no:cacheprovider"]
    impatience = ["-o", "timeout=1", "-o", "faulthandler_timeout=0"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *house, *impatience, "test_hanging.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "Timeout" in said
    assert "the-other-thread" in said
    assert "in wait_for_nobody" in said
    assert "in test_hangs" in said
