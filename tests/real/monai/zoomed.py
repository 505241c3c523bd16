from monai.data import Dataset, DataLoader
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged, RandFlipd, Resized, ScaleIntensityd
from organs import make_volumes


def make_loader():
    transform = Compose(
        [
            LoadImaged(keys=["image", "label"]),
            EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
            ScaleIntensityd(keys="image"),
            Resized(keys=["image", "label"], spatial_size=(32, 32, 32), mode="trilinear"),
            RandFlipd(keys=["image", "label"], spatial_axis=0, prob=0.5),
        ]
    )
    return DataLoader(Dataset(make_volumes(num_organs=4), transform), batch_size=2, shuffle=True, num_workers=1)
