import torch
from monai.data import CacheDataset, list_data_collate
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged, RandRotate90d, RandSpatialCropd, ScaleIntensityd
from organs import make_volumes


def make_loader():
    transform = Compose(
        [
            LoadImaged(keys=["image", "label"]),
            EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
            ScaleIntensityd(keys="image"),
            RandSpatialCropd(keys=["image", "label"], roi_size=(16, 16, 16), random_size=False),
            RandRotate90d(keys=["image", "label"], prob=0.5, spatial_axes=(0, 1)),
        ]
    )
    dataset = CacheDataset(make_volumes(), transform, cache_rate=1.0, progress=False)
    return torch.utils.data.DataLoader(dataset, batch_size=2, shuffle=True, num_workers=2, collate_fn=list_data_collate)
