import tempfile

import numpy as np
from monai.data import DataLoader, PersistentDataset
from monai.transforms import Compose, EnsureChannelFirstd, EnsureTyped, Lambdad, LoadImaged, ScaleIntensityd
from organs import make_volumes


def add_noise(image):
    return image + np.random.normal(0, 0.1, image.shape).astype(np.float32)


def shift(image):
    return image * np.random.uniform(0.8, 1.2)


def make_loader():
    transform = Compose(
        [
            LoadImaged(keys=["image", "label"], image_only=True, ensure_channel_first=False),
            EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
            ScaleIntensityd(keys="image"),
            Lambdad(keys="image", func=add_noise),
            Lambdad(keys="image", func=shift),
            EnsureTyped(keys=["image", "label"]),
        ]
    )
    dataset = PersistentDataset(make_volumes(), transform, cache_dir=tempfile.mkdtemp())
    return DataLoader(dataset, batch_size=2, shuffle=True, num_workers=2)
