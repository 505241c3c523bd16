import torch
from torch.utils.data import DataLoader


class Documents:
    def __init__(self):
        self.documents = [[(number * step) % 40 for step in range(1, 3 + number % 6)] for number in range(36)]

    def __len__(self):
        return len(self.documents)

    def __getitem__(self, index):
        return torch.tensor(self.documents[index]), index % 3


def join(samples):
    documents, labels = zip(*samples)
    offsets = torch.tensor([0] + [len(document) for document in documents[:-1]]).cumsum(0)
    return torch.cat(documents), offsets, torch.tensor(labels)


def make_loader():
    return DataLoader(Documents(), batch_size=6, shuffle=True, collate_fn=join)
