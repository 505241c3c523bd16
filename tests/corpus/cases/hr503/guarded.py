import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    return DataLoader(TensorDataset(torch.arange(30.0)), batch_size=10, num_workers=1, multiprocessing_context="spawn")


def main():
    for (batch,) in make_loader():
        print(batch.sum().item())


if __name__ == "__main__":
    main()
