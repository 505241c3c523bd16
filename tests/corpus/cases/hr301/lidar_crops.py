import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    """Fixed-size crops of point clouds around an object; near the border there are fewer points."""

    def __init__(self, num=40, radius=2.0):
        rng = np.random.default_rng(4)
        self.clouds = [rng.uniform(0, 6, (60, 3)).astype(np.float32) for _ in range(num)]
        self.radius = radius

    def __len__(self):
        return len(self.clouds)

    def __getitem__(self, index):
        cloud = self.clouds[index]
        near = cloud[np.linalg.norm(cloud - cloud[0], axis=1) < self.radius]
        return torch.from_numpy(near), index % 2


def make_loader():
    return DataLoader(Crops(), batch_size=8, shuffle=True)
