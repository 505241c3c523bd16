"""Palette masks as VOC has them, read by torchvision's transforms v2 with tv_tensors."""
import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from shapes import photo
from torchvision import tv_tensors
from torchvision.transforms import v2


def make_voc(count=24):
    root = pathlib.Path(tempfile.mkdtemp(prefix="voc-"))
    rng = np.random.default_rng(8)
    palette = [c for i in range(256) for c in (128 * (i & 1), 64 * (i & 2), 32 * (i & 4))]
    for index in range(count):
        image = photo(rng, index % 3)
        labels = np.zeros(image.size[::-1], np.uint8)
        labels[10:50, 20:60] = 1 + index % 4
        labels[8:10, 18:62] = 255
        mask = Image.fromarray(labels, mode="P")
        mask.putpalette(palette)
        image.save(root / f"{index:04d}.jpg", quality=92)
        mask.save(root / f"{index:04d}.png")
    return root


class Segmentation(torch.utils.data.Dataset):
    def __init__(self, root, transforms, mode=None):
        self.images = sorted(root.glob("*.jpg"))
        self.transforms, self.mode = transforms, mode

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = Image.open(self.images[index]).convert("RGB")
        mask = Image.open(self.images[index].with_suffix(".png"))
        if self.mode:
            mask = mask.convert(self.mode)
        mask = torch.as_tensor(np.array(mask), dtype=torch.int64)
        return self.transforms(tv_tensors.Image(image), tv_tensors.Mask(mask))


def make_loader(mode=None):
    transforms = v2.Compose(
        [
            v2.RandomResizedCrop(64, scale=(0.5, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True),
            v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            v2.ToPureTensor(),
        ]
    )
    return torch.utils.data.DataLoader(Segmentation(make_voc(), transforms, mode), batch_size=4, shuffle=True, drop_last=True)
