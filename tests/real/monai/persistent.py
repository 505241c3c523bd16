"""Slices cached on the disk; augmentation by affine and noise; ThreadDataLoader for validation."""
import tempfile

from monai.data import DataLoader, PersistentDataset, ThreadDataLoader
from monai.transforms import (
    Compose,
    EnsureChannelFirstd,
    LoadImaged,
    NormalizeIntensityd,
    RandAffined,
    RandGaussianNoised,
    Resized,
)
from organs import make_volumes


def make_loaders():
    files = make_volumes(count=20, size=(32, 40, 24), seed=2)
    first = [
        LoadImaged(keys=["image", "label"]),
        EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
        Resized(keys=["image", "label"], spatial_size=(32, 32, 16), mode=("trilinear", "nearest")),
        NormalizeIntensityd(keys="image"),
    ]
    augment = [
        RandAffined(keys=["image", "label"], prob=0.8, rotate_range=0.2, mode=("bilinear", "nearest"), padding_mode="zeros"),
        RandGaussianNoised(keys="image", prob=0.5, std=0.05),
    ]
    cache = tempfile.mkdtemp(prefix="cache-")
    train = PersistentDataset(files[:14], Compose(first + augment), cache_dir=cache)
    val = PersistentDataset(files[14:], Compose(first), cache_dir=cache)
    return DataLoader(train, batch_size=4, shuffle=True, num_workers=2), ThreadDataLoader(val, batch_size=2, num_workers=0)
