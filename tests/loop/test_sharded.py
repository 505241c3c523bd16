"""Models that ranks share: each rank writes its pieces, any number of ranks loads them, and the same number goes on exactly."""

import json
import os
import shutil
import subprocess
import sys
import types

import pytest
import torch
from tests.loop import sharded
from tests.loop.test_damage import DAMAGES
from tests.loop.test_ranks import ROOT, read

import headrace as hr
from headrace.errors import CheckpointWarning
from headrace.loop.checkpoint import files, tree

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]  # a start of torchrun takes five seconds, or thirty beside others
CUT = [1, 2]
"""Epoch and batch at which the run is killed; saved before is the middle of an accumulation, at step 4."""


def under_torchrun(ranks, *jobs):
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)),
            *("-m", "tests.loop.sharded", json.dumps(jobs)),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def done(ranks, *jobs):
    result = under_torchrun(ranks, *jobs)
    assert result.returncode == 0, result.stderr


def said(path):
    return json.loads(path.read_text(encoding="utf-8"))


def job(do, kind, folder, **more):
    return {"do": do, "kind": kind, "folder": str(folder), **{key: _text(one) for key, one in more.items()}}


def _text(value):
    return value if isinstance(value, list | int) else str(value)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("sharded")


@pytest.fixture(scope="module")
def of_two(place):
    """A run of two ranks, whole; and the same one, killed."""
    more = {"save_at": [1, 1]}
    done(
        2,
        job("train", "fsdp", place / "golden", records=place / "golden-records", **more),
        job("repeats", "fsdp", place / "repeats", out=place / "repeats.json"),
        job("refused", "fsdp", place / "refused", out=place / "refused.json"),
    )
    killed = under_torchrun(2, job("train", "fsdp", place / "run", records=place / "cut-records", die_at=CUT, **more))
    assert killed.returncode != 0
    shutil.copytree(place / "run", place / "two")
    for path in (place / "two").glob("step-*"):
        if path.name > "step-000000004":  # if the kill left it time
            shutil.rmtree(path)
    return place


@pytest.fixture(scope="module")
def of_four(of_two):
    """Four ranks: what two saved, and runs of their own."""
    done(
        4,
        job("load", "fsdp", of_two / "two", out=of_two / "two-on-4.json"),
        job("load", "hsdp", of_two / "two", out=of_two / "two-on-2x2.json"),
        job("train", "fsdp", of_two / "four", records=of_two / "four-records", until=[0, 3]),
        job("train", "hsdp", of_two / "2x2", records=of_two / "2x2-records", until=[0, 3]),
        job("train", "tensor", of_two / "tensor", records=of_two / "tensor-records", until=[0, 3]),
        job("load", "fsdp", of_two / "four", out=of_two / "four-on-4.json"),
        job("load", "hsdp", of_two / "2x2", out=of_two / "2x2-on-2x2.json"),
        job("load", "tensor", of_two / "tensor", out=of_two / "tensor-on-2x2.json"),
    )
    return of_two


@pytest.fixture(scope="module")
def of_one(of_four):
    """One rank that shards for itself."""
    done(
        1,
        job("train", "fsdp", of_four / "one", records=of_four / "one-records", until=[0, 3]),
        job("load", "fsdp", of_four / "one", out=of_four / "one-on-1.json"),
        job("load", "fsdp", of_four / "two", out=of_four / "two-on-1.json"),
        job("train", "plain", of_four / "plain", records=of_four / "plain-records", until=[0, 3]),
        job("load", "plain", of_four / "plain", out=of_four / "plain-on-1.json"),
    )
    return of_four


@pytest.fixture(scope="module")
def of_two_again(of_one):
    """Two ranks: the killed run to its end, and what others saved."""
    done(
        2,
        job("load", "fsdp", of_one / "two", out=of_one / "two-on-2.json"),
        job("by_torch", "fsdp", of_one / "two", out=of_one / "by-torch.json"),
        job("load", "fsdp", of_one / "four", out=of_one / "four-on-2.json"),
        job("load", "fsdp", of_one / "2x2", out=of_one / "2x2-on-2.json"),
        job("load", "fsdp", of_one / "one", out=of_one / "one-on-2.json"),
        job("load", "fsdp", of_one / "plain", out=of_one / "plain-on-2.json"),
        job("train", "fsdp", of_one / "run", records=of_one / "cut-records", seed=99),
    )
    return of_one


def newest(folder):
    return max(folder.glob("step-*"))


def test_each_rank_writes_its_pieces_and_none_the_whole(of_two):
    folder = newest(of_two / "two")
    whole = sum(one.numel() * one.element_size() for one in sharded.Net().state_dict().values())
    sizes = [(folder / "model" / f"rank-{rank}.safetensors").stat().st_size for rank in range(2)]

    assert not (folder / "model.safetensors").exists()
    assert sum(sizes) > 0.9 * (whole - 37 * 37 * 4), "the tied weight is there once"
    assert max(sizes) < 0.7 * whole
    moments = [(folder / "optimizer" / f"rank-{rank}.safetensors").stat().st_size for rank in range(2)]
    assert max(moments) < 0.7 * sum(moments)


def test_whether_steps_repeat_can_be_asked_and_which_gradients_are_pending_is_known(of_two):
    assert said(of_two / "repeats.json") == [True, True, True, True]


def test_gradients_that_fsdp_holds_back_are_not_lost_silently(of_two):
    text = said(of_two / "refused.json")
    assert "have not been summed over the ranks yet" in text
    assert "set_requires_gradient_sync(False)" in text
    assert not list((of_two / "refused").glob("step-*"))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name", ["model/rank-0.safetensors", "model/rank-1.safetensors", "optimizer/rank-1.safetensors"]
)
def test_a_damaged_piece_is_passed_over_by_name(of_two, tmp_path, name, damage):
    folder = shutil.copytree(of_two / "golden", tmp_path / "run")
    before = sorted(folder.glob("step-*"))
    DAMAGES[damage](before[-1] / name)
    with pytest.warns(CheckpointWarning, match=f"{before[-1].name} is passed over: "):
        found = on_one(folder)

    assert found.path == str(before[-2])
    assert name in found.refused[0]


def on_one(folder):
    """What a process on its own restores into a model that nobody shards."""
    net, optimizer = sharded.sharded("plain", 77)
    with hr.Checkpointer(folder, model=net, optimizer=optimizer, loader=loader()) as checkpoint:
        found = checkpoint.restore(quiet=True)
    on_one.state = {name: sharded.digest(one) for name, one in sharded.state(net, optimizer).items()}
    return found


def loader():
    plan = hr.Plan.of(range(sharded.NUM_SAMPLES)).map(sharded.sample).map(sharded.shake)
    return hr.DataLoader(plan, 8, shuffle=True, seed=5, tail="drop")


def test_four_ranks_load_what_two_saved_and_one_that_nobody_shards(of_four):
    found = on_one(of_four / "two")
    for name in ("two-on-4", "two-on-2x2"):
        other = said(of_four / f"{name}.json")
        assert other["state"] == on_one.state
        assert other["step"] == found.step
        assert any("world size: 2 when saved, 4 here" in one for one in other["differs"])
        assert all("was another on each rank: that of rank 0 is taken" in one for one in other["lost"])
    assert {one.split()[0] for one in found.lost} >= {"'norm.running_mean'", "'scale'"}


def test_replicas_write_nothing_twice(of_four):
    folder = newest(of_four / "2x2")
    assert [path.name for path in sorted((folder / "model").iterdir())] == ["rank-0.safetensors", "rank-1.safetensors"]
    on_one(of_four / "2x2")
    assert said(of_four / "2x2-on-2x2.json")["state"] == on_one.state


def test_two_ways_of_dividing_at_once(of_four):
    found = said(of_four / "tensor-on-2x2.json")
    records, _ = read(of_four / "tensor-records", 0)
    assert found["promise"] == "BIT-EXACT"
    assert records[0, 3]["digests"] == found["state"]


def test_one_rank_that_shards_for_itself_loads_what_two_saved(of_one):
    on_one(of_one / "two")
    assert said(of_one / "two-on-1.json")["state"] == on_one.state


def test_two_ranks_load_what_four_one_and_unsharded_ones_saved(of_two_again):
    for name, own in (("four", "four-on-4"), ("2x2", "2x2-on-2x2"), ("one", "one-on-1"), ("plain", "plain-on-1")):
        loaded, expected = said(of_two_again / f"{name}-on-2.json"), said(of_two_again / f"{own}.json")
        assert loaded["state"] == expected["state"], name
        assert expected["promise"] == "BIT-EXACT"
        assert loaded["promise"] in {"DATA-EXACT", "CLOSE"}
        assert any("world size" in one for one in loaded["differs"])
    assert any("sharding: None when saved" in one for one in said(of_two_again / "plain-on-2.json")["differs"])


def test_the_killed_run_ends_as_the_one_that_was_not(of_two_again):
    for rank in range(2):
        golden, _ = read(of_two_again / "golden-records", rank)
        joined, every = read(of_two_again / "cut-records", rank)
        assert joined == golden
        assert all(golden[tuple(one["place"])] == one for one in every)

    found = said(of_two_again / "two-on-2.json")
    records, _ = read(of_two_again / "golden-records", 0)
    assert found["promise"] == "BIT-EXACT"
    assert found["state"] == records[1, 1]["digests"]
    assert found["state"]["gradients"] != records[1, 2]["digests"]["gradients"], "some were pending"


def test_torch_loads_the_same_from_the_files_of_a_model(of_two_again):
    assert said(of_two_again / "by-torch.json") is True


def test_pieces_that_are_missing_are_told(tmp_path):
    from headrace.loop.checkpoint.shards import Piece, arranged

    whole = torch.arange(20.0).reshape(5, 4)
    for rank, (start, end) in enumerate([(0, 2), (2, 5)]):
        piece = Piece(local=whole[start:end], shape=(5, 4), offsets=(start, 0), placements=("S0",), is_written=True)
        split = tree.split({"w": piece}, "model")
        files.write_pieces(tmp_path, rank, {"model": split})
        if rank == 0:
            files.write_split(tmp_path, "state", {"model": split})

    found = files.read(tmp_path, "state")["model"]["w"]
    for start in range(5):
        for end in range(start, 6):
            assert found.region((start, 1), (end - start, 2)).equal(whole[start:end, 1:3])
    assert arranged({"w": found}, {"w": torch.zeros(5, 4)})["w"].equal(whole)
    (tmp_path / "model" / "rank-0.safetensors").unlink()
    with pytest.raises(hr.errors.CheckpointError, match="holds 12 of the 20 numbers of 'w'"):
        arranged(files.read(tmp_path, "state"), types.MappingProxyType({}))
