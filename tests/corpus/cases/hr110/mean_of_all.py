import torch
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, num):
        self.num = num

    def __len__(self):
        return self.num

    def __getitem__(self, index):
        return torch.sin(torch.arange(32) * (0.1 + 0.01 * index)), torch.tensor(index % 4)


def mean_and_std(dataset):
    total = torch.zeros(32)
    for wave, _ in dataset:
        total += wave
    return total / len(dataset)


def make_loader():
    train = Waves(80)
    return DataLoader(train, batch_size=16, shuffle=True)


def main():
    train = Waves(80)
    print(mean_and_std(train))


if __name__ == "__main__":
    main()
