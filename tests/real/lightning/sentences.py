import lightning as L
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    """Ids of words, 0 to 39, and whether the sentence is a question."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        lengths = torch.randint(4, 20, (count,), generator=generator)
        self.rows = [torch.randint(0, 40, (int(n),), generator=generator) for n in lengths]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"ids": self.rows[index], "label": int(self.rows[index][-1] % 2)}


def collate(rows):
    ids = pad_sequence([row["ids"] for row in rows], batch_first=True)
    return {"ids": ids, "label": torch.tensor([row["label"] for row in rows])}


class SentenceModule(L.LightningDataModule):
    def setup(self, stage):
        self.train, self.val = Sentences(200, 1), Sentences(60, 2)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=16, shuffle=True, collate_fn=collate, num_workers=1)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=16, collate_fn=collate)
