import torch
from shapes import make_folder
from torchvision import datasets
from torchvision.transforms import v2


def make_loaders():
    transform = v2.Compose(
        [v2.RandomResizedCrop(64), v2.ColorJitter(0.3, 0.3, 0.3), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    )
    photos = datasets.ImageFolder(make_folder() / "train", transform)
    train_set, val_set = torch.utils.data.random_split(photos, [0.8, 0.2], torch.Generator().manual_seed(0))
    return (
        torch.utils.data.DataLoader(train_set, batch_size=16, shuffle=True),
        torch.utils.data.DataLoader(val_set, batch_size=16),
    )
