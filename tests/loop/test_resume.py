"""A run that goes on from a checkpoint is the run that was never interrupted, to the last bit."""

import itertools
import time

import pytest
from tests.loop.sensitive import BATCHES_PER_EPOCH, LOADERS, NUM_EPOCHS, Run, whole

from headrace.loop.checkpoint import Promise, checkpointer
from headrace.loop.checkpoint.saved import write_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

PLACES = NUM_EPOCHS * (BATCHES_PER_EPOCH + 1)


def cut_and_go_on(folder, at, *, after=None, **more):
    """Records of a run that was saved and forgotten behind its `at`-th record, and of the one that goes on.

    `after` are arguments of the loader that goes on, if they are others.
    """
    run = Run(folder, **more)
    steps = run.micro_steps()
    records = list(itertools.islice(steps, at))
    run.checkpoint.save()
    run.checkpoint.close()
    # Another seed: what is not restored shows.
    again = Run(folder, **{**more, "seed": 99, **({} if after is None else {"loader_args": after})})
    records += again.micro_steps()
    again.checkpoint.close()
    return records, again.checkpoint.restored


@pytest.mark.parametrize("at", [8, 12])
@pytest.mark.parametrize("loader", LOADERS)
def test_saved_again_before_it_goes_on_nothing_is_lost(tmp_path, golden, loader, at):
    run = Run(tmp_path, loader=loader)
    records = list(itertools.islice(run.micro_steps(), at))
    run.checkpoint.save()
    run.checkpoint.close()
    between = Run(tmp_path, loader=loader, seed=42)
    between.checkpoint.restore()
    between.checkpoint.save()
    between.checkpoint.close()
    again = Run(tmp_path, loader=loader, seed=99)
    records += again.micro_steps()
    again.checkpoint.close()

    assert records == golden(loader)


def test_what_is_still_being_written_is_the_newest(tmp_path, monkeypatch):
    def slowly(*args, **kwargs):
        time.sleep(0.3)
        return write_checkpoint(*args, **kwargs)

    monkeypatch.setattr(checkpointer, "write_checkpoint", slowly)
    run = Run(tmp_path, background=True)
    list(itertools.islice(run.micro_steps(), 4))
    run.checkpoint.save()

    assert run.checkpoint.restore().step == run.checkpoint.steps == 2
    run.checkpoint.close()


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    runs = {}

    def of(loader, **more):
        if loader not in runs:
            runs[loader] = whole(tmp_path_factory.mktemp("golden"), loader=loader, **more)
        return runs[loader]

    return of


@pytest.mark.parametrize("at", range(1, PLACES))
def test_a_cut_at_any_place_changes_no_bit(tmp_path, golden, at):
    records, restored = cut_and_go_on(tmp_path, at)

    assert records == golden("own")
    assert restored.promise is Promise.BIT_EXACT, str(restored)


@pytest.mark.parametrize("at", [1, 6, 8, 9, 10, 17, 26])
@pytest.mark.parametrize("loader", [name for name in LOADERS if name != "own"])
def test_so_it_is_with_other_loaders(tmp_path, golden, loader, at):
    records, restored = cut_and_go_on(tmp_path, at, loader=loader)

    assert records == golden(loader)
    assert restored.promise is Promise.BIT_EXACT, str(restored)


LAYOUTS = {
    "inline": {},
    "one process": {"num_workers": 1},
    "two processes": {"num_workers": 2, "prefetch_factor": 4},
    "four that stay": {"num_workers": 4, "persistent_workers": True, "prefetch_factor": 1},
    "forkserver": {"num_workers": 1, "multiprocessing_context": "forkserver"},
    "threads": {"num_workers": 3, "runner": "threads"},
    "host": {"num_workers": 2, "runner": "host"},
    "auto": {"num_workers": "auto"},
}


@pytest.mark.parametrize(
    ("before", "after", "at"),
    [
        ("inline", "two processes", 5),
        ("two processes", "inline", 9),
        ("four that stay", "threads", 12),
        ("threads", "four that stay", 8),
        ("host", "forkserver", 17),
        ("forkserver", "host", 3),
        ("one process", "auto", 10),
        ("auto", "one process", 26),
    ],
)
def test_how_headraces_loader_is_executed_may_change(tmp_path, golden, before, after, at):
    records, restored = cut_and_go_on(tmp_path, at, loader_args=LAYOUTS[before], after=LAYOUTS[after])

    assert records == golden("own")
    assert restored.promise is Promise.BIT_EXACT, str(restored)


@pytest.mark.parametrize("at", [5, 8, 9, 12])
@pytest.mark.parametrize("loader", ["torch", "streamed"])
def test_with_the_same_workers_other_loaders_go_on_too(tmp_path, tmp_path_factory, loader, at):
    records, restored = cut_and_go_on(tmp_path, at, loader=loader, loader_args={"num_workers": 2})

    assert records == whole(tmp_path_factory.mktemp("golden"), loader=loader, loader_args={"num_workers": 2})
    assert restored.promise is Promise.BIT_EXACT, str(restored)


@pytest.mark.parametrize(
    ("loader", "more", "words"),
    [
        ("torch", {"persistent_workers": True}, "workers that stay go on with their random streams"),
        ("stateful", {}, "workers begin their random streams anew"),
    ],
)
def test_random_draws_that_cannot_be_brought_back_are_told(tmp_path, loader, more, words):
    _, restored = cut_and_go_on(tmp_path, 12, loader=loader, loader_args={"num_workers": 1, **more})

    assert restored.promise is Promise.CLOSE
    assert words in restored.lost[0]
