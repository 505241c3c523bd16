"""MONAI's spleen tutorial in short: CacheDataset, dictionary transforms, random crops, a 3-D UNet."""
import torch
from monai.data import CacheDataset, DataLoader, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    EnsureTyped,
    LoadImaged,
    Orientationd,
    RandCropByPosNegLabeld,
    RandFlipd,
    RandShiftIntensityd,
    ScaleIntensityRanged,
)
from organs import make_volumes

first = [
    LoadImaged(keys=["image", "label"]),
    EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
    EnsureTyped(keys=["image", "label"]),
    ScaleIntensityRanged(keys=["image"], a_min=-300, a_max=300, b_min=0.0, b_max=1.0, clip=True),
]
train_transforms = Compose(
    [
        *first,
        RandCropByPosNegLabeld(
            keys=["image", "label"], label_key="label", spatial_size=(16, 16, 16), pos=1, neg=1, num_samples=2,
            image_key="image", image_threshold=0,
        ),
        RandFlipd(keys=["image", "label"], spatial_axis=0, prob=0.5),
        RandShiftIntensityd(keys=["image"], offsets=0.1, prob=0.5),
    ]
)
val_transforms = Compose(first)


def make_loaders():
    files = make_volumes()
    train_files, val_files = files[:-4], files[-4:]
    train_ds = CacheDataset(data=train_files, transform=train_transforms, cache_rate=1.0, num_workers=2, progress=False)
    val_ds = CacheDataset(data=val_files, transform=val_transforms, cache_rate=1.0, progress=False)
    train_loader = DataLoader(train_ds, batch_size=2, shuffle=True, num_workers=2)
    return train_loader, DataLoader(val_ds, batch_size=1, num_workers=1)


def main():
    train_loader, val_loader = make_loaders()
    model = UNet(3, 1, 3, channels=(4, 8, 16), strides=(2, 2), num_res_units=1, norm="batch", dropout=0.1)
    loss_function = DiceLoss(to_onehot_y=True, softmax=True)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    dice_metric = DiceMetric(include_background=False, reduction="mean")
    post_pred = Compose([AsDiscrete(argmax=True, to_onehot=3)])
    post_label = Compose([AsDiscrete(to_onehot=3)])
    for epoch in range(3):
        model.train()
        epoch_loss = 0
        for batch_data in train_loader:
            inputs, labels = batch_data["image"], batch_data["label"]
            optimizer.zero_grad()
            loss = loss_function(model(inputs), labels)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        model.eval()
        with torch.no_grad():
            for val_data in val_loader:
                val_inputs, val_labels = val_data["image"], val_data["label"]
                val_outputs = sliding_window_inference(val_inputs, (16, 16, 16), 4, model)
                val_outputs = [post_pred(i) for i in decollate_batch(val_outputs)]
                val_labels = [post_label(i) for i in decollate_batch(val_labels)]
                dice_metric(y_pred=val_outputs, y=val_labels)
            print(epoch, epoch_loss, dice_metric.aggregate().item())
            dice_metric.reset()


if __name__ == "__main__":
    main()
