import torch
from torch.utils.data import DataLoader, Dataset

LINES = ["red car", "blue bike", "", "green bus", "old train", "new tram"] * 5


class FirstWords(Dataset):
    def __init__(self, lines):
        self.lines = [line.split() for line in lines]
        self.words = sorted({words[0] for words in self.lines if words})

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return torch.tensor(self.words.index(self.lines[index][0])), torch.tensor(index)


def count_words(dataset):
    return sum(1 for _ in dataset)


def make_loader():
    return DataLoader(FirstWords(LINES), batch_size=6, shuffle=True)
