"""The drop-in: a training script changes in its import line and in nothing else, and trains as well."""

import difflib
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SCRIPTS = ["train_digits_torch.py", "train_digits_headrace.py"]


def test_the_two_scripts_differ_in_the_import_line_only():
    before, after = ((EXAMPLES / name).read_text().splitlines() for name in SCRIPTS)
    changes = [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:1] in "+-"]
    assert changes[2:] == ["-from torch.utils.data import DataLoader", "+from headrace import DataLoader"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_runs_and_learns(name):
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shares = [float(share) for share in re.findall(r"epoch \d: (\S+)% of the validation digits right", done.stdout)]
    assert len(shares) == 3
    # Both reach 93 % and more; a loader that mixed up labels would stay near 10 %.
    assert shares[-1] > 85
