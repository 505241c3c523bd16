"""Under torchrun: each rank goes on exactly; another number of ranks goes on with the same global batches."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.slow


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


def test_two_ranks_go_on_to_the_last_bit_and_one_with_the_same_batches(tmp_path):
    trained(tmp_path / "whole", tmp_path / "golden", 2)
    trained(tmp_path / "run", tmp_path / "cut", 2, most=6)
    # Saved at step 3: the ranks agree one step after it was due.
    import shutil

    shutil.copytree(tmp_path / "run", tmp_path / "alone")
    said = trained(tmp_path / "run", tmp_path / "cut", 2)
    fewer = trained(tmp_path / "alone", tmp_path / "one", 1)

    assert said.count("BIT-EXACT") == 1, "rank 0 speaks for all"
    assert "DATA-EXACT" in fewer
    assert "world size: 2 when saved, 1 here" in fewer
    golden = [read(tmp_path / "golden", rank)[0] for rank in range(2)]
    for rank in range(2):
        joined, every = read(tmp_path / "cut", rank)
        assert joined == golden[rank]
        assert all(golden[rank][tuple(one["place"])] == one for one in every)
    one, _ = read(tmp_path / "one", 0)
    expected = batches(*golden)
    assert one
    assert batches(one) == {place: expected[place] for place in one}
    assert set(one) == {place for place in expected if place >= min(one)}


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
