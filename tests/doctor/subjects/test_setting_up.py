"""A data set that only `worker_init_fn` makes complete is read in one process as in a worker."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from headrace.doctor.subject import Subject


class Late(Dataset):
    """Opened by a worker only."""

    def __init__(self) -> None:
        self.rows = None

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if self.rows is None:
            raise TypeError("not open")
        return self.rows[index]


def opens(worker: int) -> None:
    info = get_worker_info()
    assert (info.id, worker) == (0, 0)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    info.dataset.rows = [10, 11, 12, 13]


def states():
    return random.getstate(), torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()


def test_a_sample_that_fails_is_tried_after_worker_init_fn_and_random_numbers_stay():
    subject, before = Subject(DataLoader(Late(), num_workers=2, worker_init_fn=opens)), states()
    assert [subject.read(index) for index in range(4)] == [10, 11, 12, 13]
    assert states() == before
    assert get_worker_info() is None


@pytest.mark.parametrize(
    "settings",
    [
        {"num_workers": 0, "worker_init_fn": opens},
        {"num_workers": 2},
        {"num_workers": 2, "worker_init_fn": lambda worker: None},
        {"num_workers": 2, "worker_init_fn": lambda worker: 1 / 0},
    ],
    ids=["no-workers", "no-function", "not-that", "fails"],
)
def test_else_the_first_failure_is_told(settings):
    with pytest.raises(TypeError, match="not open"):
        Subject(DataLoader(Late(), **settings)).read(0)
