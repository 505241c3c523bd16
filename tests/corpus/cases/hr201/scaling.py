import numpy as np
import torch
from torch.utils.data import Dataset


class ScaleBoxes:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, image, target):
        image = image[:, ::2, ::2]
        target["boxes"] = target["boxes"] * self.factor
        return image, target


class Street(Dataset):
    def __init__(self, num_images, transforms=None):
        rng = np.random.default_rng(11)
        self.images = torch.from_numpy(rng.random((num_images, 3, 32, 32), dtype=np.float32))
        self.annotations = [
            {
                "boxes": torch.from_numpy(rng.uniform(1, 30, (int(rng.integers(1, 4)), 4)).astype(np.float32)),
                "image_id": number,
            }
            for number in range(num_images)
        ]
        self.transforms = transforms

    def __len__(self):
        return len(self.annotations)

    def __getitem__(self, index):
        image, target = self.images[index], self.annotations[index]
        if self.transforms is not None:
            image, target = self.transforms(image, target)
        return image, target
