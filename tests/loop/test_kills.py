"""Whatever kills the process, and wherever: nothing is lost but the time since the last save, and no half state is read."""

import json
import pathlib
import signal
import subprocess
import sys

import pytest
from tests.loop.sensitive import whole

ROOT = pathlib.Path(__file__).parents[2]
EIGHT_PLACES = [
    2,  # behind the first step
    5,  # between two micro-steps, in mid-epoch
    3,  # at a step in mid-epoch
    1,  # behind the first batch after a start
    7,  # in the first batches of the next epoch
    2,  # again, soon after a start
    6,  # near the end of an epoch
    4,  # behind an evaluation, before the next epoch
]


def started(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(("loader", "places"), [("own", EIGHT_PLACES), ("torch", EIGHT_PLACES[:3])])
def test_killed_again_and_again_a_run_is_the_run_that_nobody_killed(tmp_path, loader, places):
    golden = {tuple(one["place"]): one for one in whole(tmp_path / "golden", loader=loader)}
    records = tmp_path / "records.jsonl"
    for num in places:
        assert started("tests.loop.killed", tmp_path / "run", records, num, loader).returncode == -signal.SIGKILL
    last = started("tests.loop.killed", tmp_path / "run", records, 0, loader)

    assert last.stdout == "done\n", last.stderr
    assert "BIT-EXACT" in last.stderr
    seen = [json.loads(line) for line in records.read_text().splitlines()]
    assert {tuple(one["place"]) for one in seen} == set(golden)
    for one in seen:
        assert {**one, "place": tuple(one["place"])} == golden[tuple(one["place"])]


@pytest.mark.slow
def test_killed_while_it_writes_the_newest_good_checkpoint_is_whole(tmp_path):
    done = started("tests.loop.dying_writes", tmp_path / "run")

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()][1:]
    killed = [line for line in lines if line[0] == -signal.SIGKILL]
    assert len(killed) >= 10, "a save syncs at least ten times"
    assert all(refused == [] for _, _, refused in lines), "what was half written is not even looked at"
    steps = [step for _, step, _ in lines]
    assert steps == sorted(steps)
    assert lines[-1][0] == 0
    assert steps[-1] > 0
    leftovers = {entry.name for entry in (tmp_path / "run").iterdir()}
    assert len([name for name in leftovers if name.startswith("writing-")]) == 0, "the next start clears away"
