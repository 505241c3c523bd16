"""Mixup in the collate function, repeated augmentation left out, AutoAugment of the original policy."""
import torch
from flowers import make_photos
from timm.data import FastCollateMixup, create_dataset, create_loader


def make_loader():
    dataset = create_dataset("", root=str(make_photos()), split="train", is_training=True, batch_size=8)
    collate_fn = FastCollateMixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=3)
    return create_loader(
        dataset,
        input_size=(3, 64, 64),
        batch_size=8,
        is_training=True,
        auto_augment="original",
        hflip=0.5,
        vflip=0.5,
        num_workers=2,
        collate_fn=collate_fn,
        pin_memory=False,
        device=torch.device("cpu"),
    )
