"""Writing custom datasets: dict samples and composed transforms with random crops."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Rescale:
    def __init__(self, output_size):
        self.output_size = output_size

    def __call__(self, sample):
        image, landmarks = sample["image"], sample["landmarks"]
        h, w = image.shape[:2]
        rows = np.linspace(0, h - 1, self.output_size).astype(int)
        cols = np.linspace(0, w - 1, self.output_size).astype(int)
        scaled = landmarks * [self.output_size / w, self.output_size / h]
        return {"image": image[rows][:, cols], "landmarks": scaled}


class RandomCrop:
    def __init__(self, output_size):
        self.output_size = (output_size, output_size)

    def __call__(self, sample):
        image, landmarks = sample["image"], sample["landmarks"]
        h, w = image.shape[:2]
        new_h, new_w = self.output_size
        top = np.random.randint(0, h - new_h + 1)
        left = np.random.randint(0, w - new_w + 1)
        return {"image": image[top : top + new_h, left : left + new_w], "landmarks": landmarks - [left, top]}


class ToTensor:
    def __call__(self, sample):
        image = sample["image"].transpose((2, 0, 1)).copy()
        return {"image": torch.from_numpy(image), "landmarks": torch.from_numpy(sample["landmarks"]).float()}


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, sample):
        for transform in self.transforms:
            sample = transform(sample)
        return sample


class FaceLandmarksDataset(Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 69

    def __getitem__(self, idx):
        rng = np.random.default_rng(idx)
        size = (rng.integers(60, 90), rng.integers(60, 90), 3)
        sample = {"image": rng.random(size, np.float32), "landmarks": rng.random((68, 2)) * [size[1], size[0]]}
        return self.transform(sample) if self.transform else sample


def make_loader():
    transformed = FaceLandmarksDataset(transform=Compose([Rescale(56), RandomCrop(48), ToTensor()]))
    return DataLoader(transformed, batch_size=4, shuffle=True, num_workers=4)
