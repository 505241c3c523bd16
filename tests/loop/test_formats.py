"""Checkpoints of every format that was ever written are read with the right values and gone on from; of others it is said why not."""

import hashlib
import json
import math
import pathlib
import random
import shutil
import warnings

import numpy as np
import pytest
import torch
from tests.loop.formats.make import Run, notes

from headrace.errors import CheckpointError
from headrace.loop.checkpoint import Promise
from headrace.loop.checkpoint.manifest import FORMAT

KEPT = pathlib.Path(__file__).with_name("formats")
FORMATS = sorted(path for path in KEPT.iterdir() if (path / "expected.json").exists())
RELATIVE = 1e-4
"""How far losses may be off on another version of torch, of Python or of numpy, or on another processor: there the last bits may
differ, and nine steps do not grow them beyond this. Where all is as it was when saved, nothing may be off."""


@pytest.fixture(params=FORMATS, ids=lambda path: path.name)
def kept(request, tmp_path):
    """(folder with a copy of a checkpoint, what it must hold)."""
    folder = tmp_path / "run"
    for path in request.param.glob("step-*"):
        shutil.copytree(path, folder / path.name)
    return folder, json.loads((request.param / "expected.json").read_text(encoding="utf-8"))


def rewritten(folder, **changes):
    """Changes the manifest of the newest checkpoint, and its checksum, as a program of another version would have it."""
    path = max(folder.glob("step-*")) / "manifest.json"
    said = json.loads(path.read_text(encoding="utf-8")) | changes
    text = json.dumps({key: value for key, value in said.items() if value is not ...}).encode()
    path.write_bytes(text)
    path.with_name("manifest.sha256").write_text(f"{hashlib.sha256(text).hexdigest()}  manifest.json\n")
    return path


def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray | np.generic):
        return type(one) is type(other) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return type(one) is type(other) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and not isinstance(one, torch.Size):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return type(other) is float and one.hex() == other.hex()
    return type(one) is type(other) and one == other


def test_there_is_one_of_the_format_that_is_written_today():
    assert FORMAT.rpartition("-")[2] in [path.name for path in FORMATS]


def test_it_is_read_with_the_right_values(kept):
    folder, expected = kept
    run = Run(folder, seed=99)
    restored = run.checkpoint.restore(quiet=True)
    run.checkpoint.close()
    assert restored.lost == ()
    assert (restored.step, restored.epoch, restored.batch) == (4, 1, 3)
    assert json.loads(json.dumps(run.facts())) == expected["facts"]
    assert any(expected["facts"]["pending"].values()), "the point of it: a gradient that waits"
    assert same(run.notes, notes())


def test_it_is_gone_on_from_with_the_same_losses(kept):
    folder, expected = kept
    before, was = torch.get_num_threads(), [float.fromhex(loss) for loss in expected["losses"]]
    torch.set_num_threads(1)
    try:
        run = Run(folder, seed=99)
        found = list(run.losses())
    finally:
        torch.set_num_threads(before)
    assert len(found) == len(was) == 18 - 9
    if run.checkpoint.restored.promise is Promise.BIT_EXACT:
        assert found == was
    else:
        assert run.checkpoint.restored.promise is Promise.DATA_EXACT
        assert found == pytest.approx(was, rel=RELATIVE)


DRAWS = {
    "python": lambda run: random.random(),
    "numpy": lambda run: np.random.rand(),
    "torch": lambda run: torch.rand(()),
    "own": lambda run: run.generator.random(),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_one_other_random_number_is_farther_off_than_what_is_allowed(kept, draw):
    folder, expected = kept
    run = Run(folder, seed=99)
    losses = run.losses()
    found = [next(losses)]
    DRAWS[draw](run)
    found += losses
    was = [float.fromhex(loss) for loss in expected["losses"]]
    assert found[0] == pytest.approx(was[0], rel=RELATIVE)
    assert found[1] != pytest.approx(was[1], rel=10 * RELATIVE)


def test_a_manifest_that_lacks_what_came_later_is_read(kept):
    folder, _ = kept
    rewritten(folder, contract=..., config=..., data=..., repeats=..., metric=..., world_size=...)
    run = Run(folder, seed=99)
    restored = run.checkpoint.restore(quiet=True)
    run.checkpoint.close()
    assert (restored.step, restored.lost) == (4, ())


def test_a_manifest_that_has_more_than_is_known_is_read(kept):
    folder, _ = kept
    rewritten(folder, weather={"sun": True})
    run = Run(folder, seed=99)
    assert run.checkpoint.restore(quiet=True).lost == ()
    run.checkpoint.close()


@pytest.mark.parametrize("which", ["newest", "named"])
def test_a_newer_format_is_refused_and_it_is_said_what_reads_it(kept, which):
    folder, _ = kept
    older = max(folder.glob("step-*"))
    shutil.copytree(older, folder / "step-000000009")
    path = rewritten(
        folder, format="headrace-checkpoint-9", environment={"headrace": "7.1.0"}, something=[1], files="elsewhere"
    )
    run = Run(folder, seed=99)
    before = run.facts()
    with warnings.catch_warnings(), pytest.raises(CheckpointError) as caught:
        warnings.simplefilter("error")  # not passed over either: its steps would be thrown away
        run.checkpoint.restore("newest" if which == "newest" else path.parent)
    run.checkpoint.close()
    assert run.facts() == before, "nothing was half loaded"
    assert str(caught.value) == "\n".join(
        [
            f"{path} has format 'headrace-checkpoint-9'; this version of headrace reads 'headrace-checkpoint-1'",
            "  why:   another version of headrace saved it: 7.1.0",
            "  do:    pip install headrace==7.1.0    to go on from it",
            "  do:    move its folder away    to go on from an older one, or to begin anew",
        ]
    )
    shutil.move(path.parent, folder.parent / "away")
    run = Run(folder, seed=99)
    assert run.checkpoint.restore(quiet=True).step == 4
    run.checkpoint.close()


@pytest.mark.parametrize(
    ("form", "words"), [("somebody-elses-3", "format 'somebody-elses-3'"), (..., "no format"), (7, "format 7")]
)
def test_what_is_of_no_format_of_headraces_is_refused(kept, form, words):
    folder, _ = kept
    path = rewritten(folder, format=form)
    run = Run(folder, seed=99)
    with pytest.raises(CheckpointError) as caught:
        run.checkpoint.restore(quiet=True)
    run.checkpoint.close()
    assert str(caught.value).startswith(f"{path} has {words}; this version of headrace reads ")
    assert "why:   it is no checkpoint of headrace" in str(caught.value)


def test_no_value_of_the_made_up_ones_is_compared_by_chance():
    changed = notes()
    changed["numbers"][3] = 0.0
    assert not same(changed, notes())
    assert math.isnan(notes()["nan"])
