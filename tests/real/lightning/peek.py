import tempfile

import lightning as L
import torch
import torch.nn.functional as F
from data_module import DigitsDataModule
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn


class Classifier(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(4),
            nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * 49, 10),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def on_train_epoch_end(self):
        self.eval()
        with torch.no_grad():
            scores = self(torch.zeros(1, 1, 28, 28)).softmax(1)
        self.print("blank page:", scores)

    test_step = validation_step

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)]


def main():
    L.seed_everything(7)
    folder = tempfile.mkdtemp()
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=CSVLogger(folder),
        callbacks=[ModelCheckpoint(folder, monitor="val_loss"), EarlyStopping("val_loss"), LearningRateMonitor()],
        log_every_n_steps=5,
        enable_progress_bar=False,
    )
    data = DigitsDataModule()
    trainer.fit(Classifier(), datamodule=data)
    trainer.test(ckpt_path="best", datamodule=data, weights_only=False)


if __name__ == "__main__":
    main()
