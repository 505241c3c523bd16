import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class ProductPhotos(Dataset):
    def __init__(self, root):
        self.paths = sorted(os.path.join(root, name) for name in os.listdir(root))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        image = image.resize((96, 96), Image.BILINEAR)
        return {"image": torch.from_numpy(np.array(image)).permute(2, 0, 1), "price": float(index)}


def write_photos(root, count=8, size=(2400, 1800)):
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (60, 80, 3), dtype=np.uint8))
    for number in range(count):
        small.rotate(number * 7).resize(size, Image.BICUBIC).save(f"{root}/{number:04d}.jpg", quality=90)


def make_loader():
    root = tempfile.mkdtemp()
    write_photos(root)
    return DataLoader(ProductPhotos(root), batch_size=4, shuffle=True, num_workers=2)
