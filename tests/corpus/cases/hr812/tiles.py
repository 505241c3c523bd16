import os
import random
import tempfile

import numpy as np
import product_photos
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    """Crops at full resolution: the whole file has to be decoded."""

    def __init__(self, root):
        self.root, self.names = root, sorted(os.listdir(root))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        image = Image.open(os.path.join(self.root, self.names[index])).convert("RGB")
        left, top = random.randint(0, image.width - 260), random.randint(0, image.height - 260)
        tile = image.crop((left, top, left + 256, top + 256)).resize((224, 224))
        return torch.from_numpy(np.array(tile)), index % 2


def make_loader():
    root = tempfile.mkdtemp()
    product_photos.write_photos(root)
    return DataLoader(Tiles(root), batch_size=4)
