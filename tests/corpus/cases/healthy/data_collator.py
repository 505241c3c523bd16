"""Dynamic padding by a collator object, as transformers' DataCollatorWithPadding does."""
import torch
from torch.utils.data import DataLoader, Dataset


class Tokenized(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, index):
        length = 4 + (index * 5) % 11
        return {"input_ids": [2 + (index + k) % 90 for k in range(length)], "attention_mask": [1] * length, "label": index % 2}


class DataCollatorWithPadding:
    def __init__(self, pad_token_id=0):
        self.pad_token_id = pad_token_id

    def __call__(self, features):
        longest = max(len(feature["input_ids"]) for feature in features)
        batch = {
            "input_ids": [f["input_ids"] + [self.pad_token_id] * (longest - len(f["input_ids"])) for f in features],
            "attention_mask": [f["attention_mask"] + [0] * (longest - len(f["input_ids"])) for f in features],
        }
        batch = {name: torch.tensor(rows) for name, rows in batch.items()}
        batch["labels"] = torch.tensor([f["label"] for f in features])
        return batch


def make_loader():
    return DataLoader(Tokenized(), shuffle=True, batch_size=8, collate_fn=DataCollatorWithPadding(), num_workers=2)
