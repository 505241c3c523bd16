import os, tempfile, numpy as np, torch
from PIL import Image
from torch.utils.data import Dataset, DataLoader

D = tempfile.mkdtemp()
r = np.random.default_rng(0)
for i in range(30):
    a = r.gamma(3, 60, (72, 72))
    yy, xx = np.mgrid[:72, :72]
    for _ in range(8):
        a += r.uniform(500, 20000) * np.exp(-((yy - r.integers(72)) ** 2 + (xx - r.integers(72)) ** 2) / 12)
    Image.fromarray(np.clip(a, 0, 65535).astype(np.uint16)).save(f"{D}/cell_{i:02d}.tif")


class Cells(Dataset):
    def __init__(self, d):
        self.f = sorted(os.path.join(d, x) for x in os.listdir(d))

    def __len__(self):
        return len(self.f)

    def __getitem__(self, i):
        a = np.asarray(Image.open(self.f[i])).astype(np.float32)
        low, high = np.percentile(a, (1, 99.8))
        a = np.clip((a - low) / (high - low), 0, 1).astype(np.float32)
        y, x = (int(v) for v in torch.randint(0, 9, (2,)))
        return torch.from_numpy(a[y : y + 64, x : x + 64].copy())[None], i % 2


def make_loader():
    return DataLoader(Cells(D), batch_size=6, shuffle=True)
