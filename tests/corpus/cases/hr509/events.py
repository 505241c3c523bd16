"""A stream of events; a checksum that does not fit ends it."""

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def checked(events):
    class ChecksumError(ValueError):
        pass

    for number, (values, total) in enumerate(events):
        if sum(values) != total:
            raise ChecksumError(f"event {number}: {sum(values)} instead of {total}")
        yield torch.tensor(values, dtype=torch.float32)


class Events(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        yield from checked(([n, n + 1], 2 * n + 1 + (n == 90)) for n in range(worker, 120, workers))


def make_loader():
    return DataLoader(Events(), batch_size=4, num_workers=2)
