"""Every item of a checkpoint is needed, and the tests of exactness would notice its loss: each is changed in turn."""

import copy
import itertools
import pathlib
import shutil

import numpy as np
import pytest
import torch
from tests.loop.sensitive import Run, whole

from headrace.loop.checkpoint import files
from headrace.loop.checkpoint.tree import leaves

PLACES = (12, 4, 17)
"""Records behind which the run is saved: between two micro-steps, with gradients pending and averages under way; in the
warm-up, at a step; behind the last batch, where the end of the epoch is still to come."""
FOLLOWED = 9
"""Records that are compared: the rest of the epoch, its end, and the beginning of the next, or less."""

INERT = {
    "place.used_s": "seconds of the run so far: told, and nothing depends on it",
    "optimizer.main.groups.0.decoupled_weight_decay": "AdamW sets it itself",
    "optimizer.main.groups.1.decoupled_weight_decay": "AdamW sets it itself",
    "scheduler.plateau.mode_worse": "infinite, and anything else is not finite either",
    **{
        f"scheduler.main._schedulers.{one}.{word}": "torch keeps it for its warnings"
        for one in (0, 1)
        for word in ("_get_lr_called_within_step", "_step_count")
    },
    **{f"scheduler.main._schedulers.{one}._last_lr.{group}": "told" for one in (0, 1) for group in (0, 1)},
    **{f"scheduler.main._schedulers.0.base_lrs.{group}": "used by its closed form only" for group in (0, 1)},
}
"""Items that have no effect on any number, and why."""
WHOLE = [("random", "python"), ("random", "numpy"), ("random", "torch"), ("random", "generators")]
"""Mutated as one: a generator's state is many numbers that mean something only together."""


FOLLOWED = 9
"""Records that are compared: the rest of the epoch, its end, and the beginning of the next."""


def go_on(folder):
    again = Run(folder, seed=99)
    steps = again.micro_steps()
    try:
        return list(itertools.islice(steps, FOLLOWED))
    finally:
        again.checkpoint.close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Per place: (folder of a run saved there, records of what comes after it)."""
    golden = whole(tmp_path_factory.mktemp("golden"))
    found = {}
    for at in PLACES:
        folder = tmp_path_factory.mktemp("saved") / "runs"
        run = Run(folder)
        steps = run.micro_steps()
        assert list(itertools.islice(steps, at)) == golden[:at]
        run.checkpoint.save()
        run.checkpoint.close()
        found[at] = folder, golden[at : at + FOLLOWED]
    return found


def items(folder: pathlib.Path):
    """Every item of a checkpoint, as (path, value)."""
    (place,) = folder.glob("step-*")
    parts = {**files.read(place, "state"), **files.read(place, "rank-0")}
    for path, value in leaves(parts):
        if not any(path[: len(one)] == one for one in WHOLE):
            yield path, value
    for one in WHOLE:
        yield one, parts[one[0]][one[1]]


def mutated(value):
    """Another value of the same kind; None: there is none."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.25 + 0.01
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, torch.Tensor):
        return value.logical_not() if value.dtype is torch.bool else value + 1
    if isinstance(value, np.ndarray):
        return value + 1
    return None


def other_random(path):
    """The state of other generators, in the same form."""
    from headrace.loop.checkpoint.parts import Randomness

    torch.manual_seed(1234)
    np.random.seed(1234)
    import random

    random.seed(1234)
    ours = {"torch": torch.Generator().manual_seed(77), "numpy": np.random.default_rng(77)}
    return Randomness(ours).state()[path[1]]


def write_back(folder, path, change):
    """Changes one item of the checkpoint in a folder, with the checksums that fit."""
    import msgspec

    (place,) = folder.glob("step-*")
    manifest = files.read_manifest(place)
    shared, mine = files.read(place, "state"), files.read(place, "rank-0")
    parts = shared if path[0] in shared else mine
    holder = parts
    for key in path[:-1]:
        inner = copy.copy(holder[key])
        holder[key] = list(inner) if isinstance(inner, tuple) else inner
        holder = holder[key]
    change(holder, path[-1])
    for record in manifest.files:
        (place / record.name).unlink()
    records = [*files.write(place, "rank-0", mine), *files.write(place, "state", shared)]
    files.write_manifest(place, msgspec.structs.replace(manifest, files=tuple(records)))


def is_noticed(saved, tmp_path, path, change):
    """Whether the run that goes on from the changed checkpoint is refused, or another one."""
    spare, golden = saved
    folder = shutil.copytree(spare, tmp_path / "-".join(map(str, path))[:100])
    write_back(folder, path, change)
    try:
        return go_on(folder) != golden
    except Exception:
        return True
    finally:
        shutil.rmtree(folder)


def change_to(value):
    def change(holder, key):
        holder[key] = value

    return change


def test_without_a_change_nothing_is_noticed(saved, tmp_path):
    for one in saved.values():
        assert not is_noticed(one, tmp_path, ("place", "steps"), lambda holder, key: None)


def test_each_item_counts_at_one_place_or_another(saved, tmp_path):
    unnoticed = None
    for at in PLACES:
        still = set()
        for path, value in items(saved[at][0]):
            name = ".".join(map(str, path))
            if unnoticed is not None and name not in unnoticed:
                continue
            new = other_random(path) if path in WHOLE else mutated(value)
            if new is not None and not is_noticed(saved[at], tmp_path, path, change_to(new)):
                still.add(name)
        unnoticed = still

    assert sorted(unnoticed) == sorted(INERT)
