import torch
from torch.utils.data import DataLoader, Dataset


class Tweets(Dataset):
    def __init__(self):
        self.ids = torch.randint(0, 90, (40, 12), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": index % 2}


class Collator:
    def __init__(self, label_name="label"):
        self.label_name = label_name

    def __call__(self, samples):
        return {
            "input_ids": torch.stack([one["input_ids"] for one in samples]),
            "labels": torch.tensor([one[self.label_name] for one in samples]),
        }


def make_loader():
    return DataLoader(Tweets(), batch_size=8, shuffle=True, collate_fn=Collator())
