import resource

import torch
from torch.utils.data import DataLoader, TensorDataset

resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Scaled(TensorDataset):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return torch.nn.functional.interpolate(image[None].float(), size=(96, 96), mode="bilinear")[0] / 255, label


def make_loader():
    return DataLoader(Scaled(torch.randint(0, 255, (600, 3, 200, 200), dtype=torch.uint8), torch.arange(600) % 10), batch_size=12, num_workers=2)
