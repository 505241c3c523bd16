"""Identity and state of a batch cost nothing until they are asked for, and are the same whenever that is."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from torch.utils.data import RandomSampler

import headrace as hr

IDS = [f"id-{row}" for row in range(10)]


class Flaky:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 6:
            raise OSError("unreadable")
        return float(index)


def loaders():
    return {
        "gathered": hr.DataLoader(hr.arrays(x=np.arange(10), ids=IDS), batch_size=4, shuffle=True, seed=5),
        "read one by one": hr.DataLoader(list(range(10)), batch_size=4, shuffle=True, seed=5),
        "skipped": hr.DataLoader(Flaky(), batch_size=4, shuffle=True, seed=5, on_error=hr.Skip(max_rate=None)),
        "replaced": hr.DataLoader(Flaky(), batch_size=4, shuffle=True, seed=5, on_error=hr.Replace(max_rate=None)),
        "padded": hr.DataLoader(list(range(10)), batch_size=4, tail="pad"),
        "sampled": hr.DataLoader(list(range(10)), batch_size=4, sampler=RandomSampler(range(10)), seed=5),
    }


def told(info):
    arrays = info.positions.tolist(), info.is_pad.tolist(), info.is_replaced.tolist()
    return info.sample_ids, info.cursor, info.epoch, info.step, arrays


@pytest.mark.parametrize("kind", list(loaders()))
def test_asked_late_is_asked_at_once(kind):
    at_once, later = loaders()[kind], loaders()[kind]
    now = [told(at_once.last) for _ in range(3) for _ in at_once]
    kept = [later.last for _ in range(3) for _ in later]
    assert [told(info) for info in reversed(kept)] == now[::-1]
    assert [told(info) for info in kept] == now
    assert [told(pickle.loads(pickle.dumps(info))) for info in kept] == now
    assert all(type(sample_id) in {int, str} for info in kept for sample_id in info.sample_ids)


def test_a_stand_in_stands_under_its_own_identity():
    loader = loaders()["replaced"]
    ids = [sample_id for _ in loader for sample_id in loader.last.sample_ids]
    assert len(ids) == 10
    assert 6 not in ids
    assert loader.ledger.replaced == 1


def test_identity_keeps_no_batch_alive():
    loader = loaders()["gathered"]
    batch = next(iter(loader))
    rows, info = weakref.ref(batch["x"]), loader.last
    del batch
    gc.collect()
    assert rows() is None
    assert len(info.sample_ids) == 4


def test_what_is_told_may_be_written():
    loader = loaders()["gathered"]
    seen = []
    for _ in loader:
        loader.last.positions[:] = -1
        loader.last.is_pad[:] = True
        loader.last.is_replaced[:] = True
        seen += loader.last.sample_ids
    assert sorted(seen) == IDS
    assert (loader.ledger.padded, loader.ledger.replaced) == (0, 0)
    assert not any(loader.last.is_replaced.any() for _ in loader)


def test_an_unknown_attribute_is_none():
    loader = loaders()["gathered"]
    next(iter(loader))
    with pytest.raises(AttributeError, match="sampel_ids"):
        _ = loader.last.sampel_ids
    assert "sample_ids=('id-" in repr(loader.last)
