"""Hugging Face datasets: map, set_format, DataLoader."""
import datasets
from torch.utils.data import DataLoader


def tokenize(rows):
    ids = [[1 + (ord(c) - 32) % 90 for c in text[:12]] for text in rows["text"]]
    return {"input_ids": [row + [0] * (12 - len(row)) for row in ids], "attention_mask": [[1] * len(row) + [0] * (12 - len(row)) for row in ids]}


def make_loader():
    datasets.disable_progress_bars()
    data = datasets.Dataset.from_dict({"text": [f"review {n} was {'good' if n % 2 else 'bad'}" for n in range(160)], "label": [n % 2 for n in range(160)]})
    data = data.map(tokenize, batched=True, remove_columns=["text"])
    return DataLoader(data.with_format("torch"), batch_size=16, shuffle=True)
