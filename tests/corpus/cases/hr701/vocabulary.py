import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Corpus:
    def __init__(self, count):
        self.lines = [f"document {n} speaks of topic {n % 97} at length and then of {n % 89}" for n in range(count)]


class Sentences(Dataset):
    def __init__(self, corpus):
        self.corpus = corpus

    def __len__(self):
        return len(self.corpus.lines)

    def __getitem__(self, index):
        text = self.corpus.lines[index]
        return {"ids": torch.tensor([ord(c) for c in text[:20]]), "label": index % 2}


def make_loader():
    data = Sentences(Corpus(300_000))
    return DataLoader(Subset(data, range(250_000)), batch_size=50, num_workers=4, persistent_workers=True)
