"""Lightning's own loop, resumed: with the callback and headrace's loader to the last bit."""

import random

import numpy as np
import pytest
import torch
from tests.loop.sensitive import sample, shake
from torch import nn

import headrace as hr

lightning = pytest.importorskip("lightning")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Lightning has much to say of small runs


class Cut(Exception):
    pass


def fit(folder, *, cut=None, seed=0, callback=True, ckpt_path=None):
    """Losses by step of a fit that ends after `cut` steps as if it had been killed."""
    from lightning.pytorch.callbacks import ModelCheckpoint

    from headrace.loop.lightning import ExactResume

    lightning.seed_everything(seed, verbose=False)
    losses = {}

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))

        def training_step(self, batch, index):
            x = batch["x"] + 0.1 * random.random() + 0.1 * np.random.rand()
            loss = nn.functional.cross_entropy(self.net(x), batch["y"])
            losses[self.global_step] = loss.item().hex()
            return loss

        def on_train_batch_end(self, *_):
            if self.global_step == cut:
                raise Cut

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-2)

    loader = hr.DataLoader(hr.Plan.of(range(24)).map(sample).map(shake), 3, shuffle=True, seed=4)
    saves = ModelCheckpoint(folder, every_n_train_steps=3, save_last=True, save_top_k=-1)
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[saves, *([ExactResume()] if callback else [])],
    )
    try:
        trainer.fit(Module(), loader, ckpt_path=ckpt_path)
    except Cut:
        pass
    return losses


@pytest.mark.parametrize("cut", [4, 7, 11])
def test_a_resumed_fit_is_the_one_that_was_never_interrupted(tmp_path, cut):
    golden = fit(tmp_path / "golden")
    first = fit(tmp_path / "run", cut=cut)
    rest = fit(tmp_path / "run", seed=99, ckpt_path=tmp_path / "run" / "last.ckpt")

    assert {**first, **rest} == golden
    assert min(rest) == cut // 3 * 3
    assert {
        **first,
        **fit(tmp_path / "run", seed=99, callback=False, ckpt_path=tmp_path / "run" / "last.ckpt"),
    } != golden
