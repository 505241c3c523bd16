"""The recipe of torchvision's reference training: transforms v2, RandAugment, CutMix and MixUp in the collate function."""
import torch
from shapes import make_folder
from torch.utils.data import default_collate
from torchvision import datasets
from torchvision.transforms import v2


def make_loaders():
    root = make_folder()
    normalize = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))]
    augment = [v2.PILToTensor(), v2.RandomResizedCrop(64, antialias=True), v2.RandomHorizontalFlip(), v2.RandAugment(magnitude=9)]
    train = datasets.ImageFolder(root / "train", v2.Compose([*augment, *normalize, v2.RandomErasing(p=0.1), v2.ToPureTensor()]))
    val = datasets.ImageFolder(
        root / "val", v2.Compose([v2.PILToTensor(), v2.Resize(72, antialias=True), v2.CenterCrop(64), *normalize, v2.ToPureTensor()])
    )
    mixup_or_cutmix = v2.RandomChoice([v2.MixUp(num_classes=4), v2.CutMix(num_classes=4)])

    def collate_fn(batch):
        return mixup_or_cutmix(*default_collate(batch))

    train_loader = torch.utils.data.DataLoader(
        train, batch_size=16, sampler=torch.utils.data.RandomSampler(train), num_workers=2, collate_fn=collate_fn
    )
    val_loader = torch.utils.data.DataLoader(val, batch_size=16, sampler=torch.utils.data.SequentialSampler(val), num_workers=2)
    return train_loader, val_loader
