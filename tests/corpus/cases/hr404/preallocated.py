import torch
from torch.utils.data import DataLoader, TensorDataset


class FastCollate:
    def __init__(self, batch_size, width):
        self.inputs = torch.empty(batch_size, width)
        self.targets = torch.empty(batch_size, dtype=torch.long)

    def __call__(self, samples):
        for row, (x, y) in enumerate(samples):
            self.inputs[row] = x
            self.targets[row] = y
        return {"x": self.inputs[: len(samples)], "y": self.targets[: len(samples)]}


def make_loader():
    generator = torch.Generator().manual_seed(3)
    data = TensorDataset(torch.randn(96, 12, generator=generator), torch.randint(0, 4, (96,), generator=generator))
    return DataLoader(data, batch_size=16, shuffle=True, collate_fn=FastCollate(16, 12))
