"""Datasets and DataLoaders tutorial: annotations in a csv file, images in a folder."""
import csv
import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class CustomImageDataset(Dataset):
    def __init__(self, annotations_file, img_dir, transform=None, target_transform=None):
        with open(annotations_file) as file:
            self.img_labels = list(csv.reader(file))
        self.img_dir = img_dir
        self.transform = transform
        self.target_transform = target_transform

    def __len__(self):
        return len(self.img_labels)

    def __getitem__(self, idx):
        img_path = os.path.join(self.img_dir, self.img_labels[idx][0])
        image = torch.from_numpy(np.array(Image.open(img_path).convert("RGB"))).permute(2, 0, 1)
        label = int(self.img_labels[idx][1])
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            label = self.target_transform(label)
        return image, label


def make_loader():
    folder = tempfile.mkdtemp()
    rng = np.random.default_rng(0)
    rows = []
    for number in range(80):
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(os.path.join(folder, f"tshirt{number}.jpg"))
        rows.append((f"tshirt{number}.jpg", number % 4))
    with open(os.path.join(folder, "labels.csv"), "w", newline="") as file:
        csv.writer(file).writerows(rows)
    dataset = CustomImageDataset(os.path.join(folder, "labels.csv"), folder, transform=lambda x: x.float() / 255)
    return DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2)
