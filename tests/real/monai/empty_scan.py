import numpy as np
from monai.data import CacheDataset, DataLoader
from monai.transforms import Compose, EnsureChannelFirstd, Lambdad, LoadImaged, RandFlipd
from organs import make_volumes


def standardise(image):
    return (image - image.mean()) / image.std()


def make_loader():
    files = make_volumes()
    np.save(files[5]["image"], np.full((40, 40, 24), -1024, np.float32))
    transform = Compose(
        [
            LoadImaged(keys=["image", "label"]),
            EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
            Lambdad(keys="image", func=standardise),
            RandFlipd(keys=["image", "label"], spatial_axis=0, prob=0.5),
        ]
    )
    return DataLoader(CacheDataset(files, transform, progress=False), batch_size=2, shuffle=True)
