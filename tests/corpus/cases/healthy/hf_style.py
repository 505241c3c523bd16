"""Token classification in the way of the transformers course: attention masks and -100 for what has no label."""
import torch
from torch.utils.data import DataLoader, Dataset


class Encoded(Dataset):
    def __init__(self, encodings, labels):
        self.encodings, self.labels = encodings, labels

    def __getitem__(self, idx):
        item = {key: torch.tensor(values[idx]) for key, values in self.encodings.items()}
        item["labels"] = torch.tensor(self.labels[idx])
        return item

    def __len__(self):
        return len(self.labels)


def encode(count=96, length=24):
    ids, masks, labels = [], [], []
    for number in range(count):
        used = 6 + number % 17
        ids.append([101] + [1000 + (number * k) % 500 for k in range(used)] + [102] + [0] * (length - used - 2))
        masks.append([1] * (used + 2) + [0] * (length - used - 2))
        labels.append([-100] + [(number + k) % 5 for k in range(used)] + [-100] * (length - used - 1))
    return {"input_ids": ids, "attention_mask": masks}, labels


def make_loaders():
    train = Encoded(*encode(96))
    val = Encoded(*encode(32, length=24))
    return DataLoader(train, batch_size=16, shuffle=True), DataLoader(val, batch_size=64)
