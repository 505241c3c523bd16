"""Under torchrun: each rank goes on exactly; another number of ranks goes on with the same global batches."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]  # a start of torchrun takes five seconds, or thirty beside others


def under_torchrun(ranks, module, *arguments):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)),
            *("-m", module, *map(str, arguments)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def trained(folder, records, ranks, most=0):
    return under_torchrun(ranks, "tests.loop.ranked", folder, records, most).stderr


def read(records, rank):
    lines = pathlib.Path(f"{records}-{rank}").read_text(encoding="utf-8").splitlines()
    return {tuple(one["place"]): one for one in map(json.loads, lines)}, [json.loads(line) for line in lines]


def batches(*of_ranks):
    """Global batches: the parts of all ranks, in order."""
    return {place: [one for of in of_ranks for one in of[place]["ids"]] for place in of_ranks[0]}


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """A run of two ranks that nobody interrupts, and a checkpoint in the midst of the same run."""
    place = tmp_path_factory.mktemp("ranks")
    trained(place / "whole", place / "golden", 2)
    trained(place / "run", place / "cut", 2, most=6)
    # Saved at step 5: the ranks agree one step after it was due.
    return place


def test_two_ranks_go_on_to_the_last_bit(golden, tmp_path):
    folder = shutil.copytree(golden / "run", tmp_path / "run")
    said = trained(folder, tmp_path / "rest", 2)

    assert said.count("BIT-EXACT") == 1, "rank 0 speaks for all"
    for rank in range(2):
        expected, _ = read(golden / "golden", rank)
        before, _ = read(golden / "cut", rank)
        rest, _ = read(tmp_path / "rest", rank)
        assert before | rest == expected
        assert all(expected[place] == one for place, one in before.items())


@pytest.mark.parametrize("between", [1, 4])
def test_fewer_and_more_ranks_go_on_with_the_same_batches(golden, tmp_path, between):
    """Two ranks, then others, then two again: 2 -> 1 -> 2 and 2 -> 4 -> 2."""
    folder = shutil.copytree(golden / "run", tmp_path / "run")
    there = trained(folder, tmp_path / "others", between, most=9)
    again = trained(folder, tmp_path / "two", 2)

    for said, saved, here in ((there, 2, between), (again, between, 2)):
        assert said.count("DATA-EXACT") == 1
        assert f"world size: {saved} when saved, {here} here" in said
    expected = batches(*(read(golden / "golden", rank)[0] for rank in range(2)))
    others = batches(*(read(tmp_path / "others", rank)[0] for rank in range(between)))
    two = batches(*(read(tmp_path / "two", rank)[0] for rank in range(2)))
    assert others
    assert two
    assert all(expected[place] == one for part in (others, two) for place, one in part.items())
    assert set(others) | set(two) == {place for place in expected if place >= min(others)}
    of_net = [{one["net"] for one in read(tmp_path / "others", rank)[0].values()} for rank in range(between)]
    assert all(one == of_net[0] for one in of_net), "all ranks have one model"


def test_the_loop_of_two_ranks_learns_what_one_does(tmp_path):
    import numpy as np

    ends = [
        json.loads(under_torchrun(ranks, "tests.loop.ranked_loop", tmp_path / str(ranks)).stdout) for ranks in (1, 2)
    ]
    (steps, history, weights), (steps_2, history_2, weights_2) = ends

    assert steps == steps_2 == 6
    for one, two in zip(history, history_2, strict=True):
        assert one["one"] == two["one"] == 1.0
        assert abs(one["loss"] - two["loss"]) < 1e-5
    for one, two in zip(weights, weights_2, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
