from PIL import Image

import torch
from flowers import make_photos
from timm.data import create_dataset, create_loader


def make_loader():
    root = make_photos()
    for number, path in enumerate(sorted((root / "train").rglob("*.jpg"))):
        if number % 3 == 0:
            image = Image.open(path)
            exif = image.getexif()
            exif[0x0110] = "Pixel 7"
            exif[0x0112] = 6
            image.save(path, quality=92, exif=exif)
    dataset = create_dataset("", root=str(root), split="train", is_training=True, batch_size=8)
    return create_loader(
        dataset, input_size=(3, 64, 64), batch_size=8, is_training=True, use_prefetcher=False,
        num_workers=2, pin_memory=False, device=torch.device("cpu"),
    )
