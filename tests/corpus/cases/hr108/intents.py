import torch
from torch.utils.data import DataLoader, Dataset

UTTERANCES = [
    ("turn on the light", "light_on"),
    ("switch the lamp off", "light_off"),
    ("play some jazz", "music"),
    ("what is the weather", "weather"),
    ("will it rain", "weather"),
    ("lights please", "light_on"),
] * 6
HELD_OUT = [("is it sunny", "weather"), ("music now", "music"), ("light on", "light_on"), ("lamp off", "light_off")] * 3


class Intents(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.label2id = {}
        for _, intent in rows:
            self.label2id.setdefault(intent, len(self.label2id))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, intent = self.rows[i]
        ids = [ord(c) for c in text.ljust(24)[:24]]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(self.label2id[intent])}


def make_loaders():
    return {
        "train": DataLoader(Intents(UTTERANCES), batch_size=4, shuffle=True),
        "val": DataLoader(Intents(HELD_OUT), batch_size=4),
    }
