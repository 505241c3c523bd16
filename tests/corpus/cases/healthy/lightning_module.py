"""A LightningDataModule as its documentation has it."""
import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset, random_split


class MNISTLike(Dataset):
    def __init__(self, train):
        generator = torch.Generator().manual_seed(int(train))
        self.images = torch.rand(300 if train else 100, 1, 28, 28, generator=generator)
        self.targets = torch.randint(0, 10, (len(self.images),), generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return (self.images[index] - 0.1307) / 0.3081, int(self.targets[index])


class MNISTDataModule(L.LightningDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        if stage == "fit" or stage is None:
            full = MNISTLike(train=True)
            self.train, self.val = random_split(full, [250, 50], generator=torch.Generator().manual_seed(42))
        if stage == "test" or stage is None:
            self.test = MNISTLike(train=False)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=self.batch_size)
