"""The data module of Lightning's documentation."""
import lightning as L
import torch
from digits import Digits, draw_digits
from torch.utils.data import DataLoader, random_split
from torchvision import transforms


class DigitsDataModule(L.LightningDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()
        self.save_hyperparameters()
        self.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1,), (0.3,))])

    def prepare_data(self):
        draw_digits(400, "train", seed=1)
        draw_digits(100, "test", seed=2)

    def setup(self, stage: str):
        if stage == "fit":
            digits_full = Digits(draw_digits(400, "train"), self.transform)
            self.train, self.val = random_split(digits_full, [320, 80], generator=torch.Generator().manual_seed(42))
        if stage in ("test", "predict"):
            self.test = Digits(draw_digits(100, "test"), self.transform)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.hparams.batch_size, shuffle=True, num_workers=2, persistent_workers=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.hparams.batch_size, num_workers=2)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=self.hparams.batch_size)

    def predict_dataloader(self):
        return DataLoader(self.test, batch_size=self.hparams.batch_size)
