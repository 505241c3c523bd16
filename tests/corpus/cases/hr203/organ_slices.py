import os, tempfile
import numpy as np, torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Organs(Dataset):
    def __init__(self, root, size=48):
        self.root, self.size = root, size
        self.names = sorted(n for n in os.listdir(root) if n.startswith("scan"))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        scan = torch.from_numpy(np.load(f"{self.root}/{self.names[i]}"))
        seg = torch.from_numpy(np.load(f"{self.root}/{self.names[i].replace('scan', 'seg')}"))
        size = (self.size, self.size)
        scan = F.interpolate(scan[None, None].float(), size=size, mode="bilinear", align_corners=False)[0]
        seg = F.interpolate(seg[None, None].float(), size=size, mode="bilinear", align_corners=False)[0, 0]
        return {"image": scan, "label": seg.long()}


def make_loader():
    root = tempfile.mkdtemp()
    rng = np.random.default_rng(0)
    for n in range(10):
        np.save(f"{root}/scan_{n:02d}.npy", rng.normal(0, 1, (32, 32)).astype(np.float32))
        seg = np.zeros((32, 32), np.uint8)
        seg[(slice(4 + n, 20),) * 2] = 4
        seg[(slice(10 + n, 28),) * 2] = 7
        np.save(f"{root}/seg_{n:02d}.npy", seg)
    return DataLoader(Organs(root), batch_size=2, shuffle=True)
