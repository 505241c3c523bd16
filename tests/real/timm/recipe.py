"""The loaders of timm's train.py, with the recipe of the small ResNets: RandAugment, random erasing, no prefetcher."""
import timm
import torch
from flowers import make_photos
from timm.data import create_dataset, create_loader, resolve_data_config


def make_loaders(use_prefetcher=False):
    root = make_photos()
    model = timm.create_model("resnet18", pretrained=False, num_classes=3)
    config = resolve_data_config({"input_size": (3, 64, 64)}, model=model)
    dataset_train = create_dataset("", root=str(root), split="train", is_training=True, batch_size=8)
    dataset_eval = create_dataset("", root=str(root), split="validation", is_training=False, batch_size=8)
    loader_train = create_loader(
        dataset_train,
        input_size=config["input_size"],
        batch_size=8,
        is_training=True,
        use_prefetcher=use_prefetcher,
        re_prob=0.25,
        re_mode="pixel",
        scale=[0.35, 1.0],
        hflip=0.5,
        color_jitter=0.4,
        auto_augment="rand-m9-mstd0.5-inc1",
        interpolation="random",
        mean=config["mean"],
        std=config["std"],
        num_workers=2,
        distributed=False,
        pin_memory=False,
        device=torch.device("cpu"),
    )
    loader_eval = create_loader(
        dataset_eval,
        input_size=config["input_size"],
        batch_size=8,
        is_training=False,
        use_prefetcher=use_prefetcher,
        interpolation=config["interpolation"],
        mean=config["mean"],
        std=config["std"],
        num_workers=2,
        distributed=False,
        crop_pct=config["crop_pct"],
        pin_memory=False,
        device=torch.device("cpu"),
    )
    return loader_train, loader_eval


def make_prefetched():
    return make_loaders(use_prefetcher=True)
