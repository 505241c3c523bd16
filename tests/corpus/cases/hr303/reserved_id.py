import torch
from torch.utils.data import DataLoader

WORDS = {"<pad>": 0, "<unk>": 1}


class Lines:
    def __init__(self, lines):
        self.lines = [line.split() for line in lines]
        for word in sorted({word for line in self.lines for word in line}):
            WORDS[word] = len(WORDS)

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        ids = [WORDS[word] for word in self.lines[index]]
        return {"input_ids": ids, "labels": [*ids[1:], 1]}


def collate(samples):
    longest = max(len(one["input_ids"]) for one in samples)
    batch = {"input_ids": [], "labels": []}
    for one in samples:
        missing = longest - len(one["input_ids"])
        batch["input_ids"].append(one["input_ids"] + [0] * missing)
        batch["labels"].append(one["labels"] + [-100] * missing)
    return {name: torch.tensor(rows) for name, rows in batch.items()}


def make_loader():
    lines = ["a b c", "a c", "b b b b a", "c", "c a b a", "b a"] * 6
    return DataLoader(Lines(lines), batch_size=4, shuffle=True, collate_fn=collate)
