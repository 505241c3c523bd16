"""The ImageNet example's shape: folders of classes, random resized crops, a distributed sampler if asked."""
import os
import random
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def find_classes(directory):
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    return classes, {name: number for number, name in enumerate(classes)}


class ImageFolder(Dataset):
    def __init__(self, root, transform):
        self.root, self.transform = root, transform
        self.classes, self.class_to_idx = find_classes(root)
        self.samples = [
            (os.path.join(root, name, file), self.class_to_idx[name])
            for name in self.classes
            for file in sorted(os.listdir(os.path.join(root, name)))
        ]
        self.targets = [target for _, target in self.samples]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        with open(path, "rb") as f:
            image = Image.open(f).convert("RGB")
        return self.transform(image), target


class TrainTransform:
    def __call__(self, image):
        side = int(min(image.size) * random.uniform(0.6, 1.0))
        left, top = random.randint(0, image.width - side), random.randint(0, image.height - side)
        image = image.crop((left, top, left + side, top + side)).resize((64, 64), Image.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        return normalize(image)


def eval_transform(image):
    return normalize(image.resize((73, 73), Image.BILINEAR).crop((4, 4, 68, 68)))


def normalize(image):
    x = torch.from_numpy(np.array(image, np.float32) / 255).permute(2, 0, 1)
    return (x - torch.tensor([0.485, 0.456, 0.406])[:, None, None]) / torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def make_loaders():
    root = tempfile.mkdtemp()
    rng = np.random.default_rng(0)
    for split, count in (("train", 40), ("val", 12)):
        for name in ("n01440764", "n01443537", "n01484850"):
            os.makedirs(os.path.join(root, split, name))
            for number in range(count):
                small = Image.fromarray(rng.integers(0, 255, (12, 16, 3), dtype=np.uint8))
                small.resize((128, 96), Image.BICUBIC).save(os.path.join(root, split, name, f"{number}.JPEG"))
    train = ImageFolder(os.path.join(root, "train"), TrainTransform())
    val = ImageFolder(os.path.join(root, "val"), eval_transform)
    train_loader = DataLoader(train, batch_size=16, shuffle=True, num_workers=2, pin_memory=True)
    val_loader = DataLoader(val, batch_size=16, shuffle=False, num_workers=2, pin_memory=True)
    return train_loader, val_loader
