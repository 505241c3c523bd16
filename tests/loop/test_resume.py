"""A run that goes on from a checkpoint is the run that was never interrupted, to the last bit."""

import itertools

import pytest
from tests.loop.sensitive import BATCHES_PER_EPOCH, LOADERS, NUM_EPOCHS, Run, whole

from headrace.loop.checkpoint import Promise

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

PLACES = NUM_EPOCHS * (BATCHES_PER_EPOCH + 1)


def cut_and_go_on(folder, at, *, save=True, **more):
    """Records of a run that was saved and forgotten behind its `at`-th record, and of the one that goes on."""
    run = Run(folder, **more)
    steps = run.micro_steps()
    records = list(itertools.islice(steps, at))
    run.checkpoint.save()
    run.checkpoint.close()
    # Another seed: what is not restored shows.
    again = Run(folder, **{**more, "seed": 99})
    records += again.micro_steps()
    again.checkpoint.close()
    return records, again.checkpoint.restored


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
