import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler


class Scans(Dataset):
    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        return {"scan": torch.full((64, 96, 96), index / 20_000), "id": str(index)}


def make_loader():
    data = Scans()
    return DataLoader(data, sampler=RandomSampler(data), batch_size=16, num_workers=4, prefetch_factor=24)
