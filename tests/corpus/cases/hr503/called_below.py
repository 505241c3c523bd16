import torch
from torch.utils.data import DataLoader, TensorDataset

torch.multiprocessing.set_start_method("forkserver", force=True)
train_loader = DataLoader(TensorDataset(torch.arange(30.0)), batch_size=10, num_workers=1)


def count():
    total = 0.0
    for step, (batch,) in enumerate(train_loader):
        total += batch.sum().item() + step
    return total


print("sum", count())
