import os, tempfile, numpy as np, torch
from PIL import Image
from torch.utils.data import Dataset, DataLoader

D = tempfile.mkdtemp()
r = np.random.default_rng(0)
for i in range(30):
    Image.fromarray(r.integers(0, 255, (48, 64, 3), dtype=np.uint8)).save(f"{D}/{i:03d}_rgb.jpg")
    z = r.integers(500, 9000, (48, 64)).astype(np.uint16)
    z[:3] = 0
    Image.fromarray(z).save(f"{D}/{i:03d}_depth.png")


class NYU(Dataset):
    def __init__(self, d):
        self.k = sorted({f[:3] for f in os.listdir(d)})
        self.d = d

    def __len__(self):
        return len(self.k)

    def __getitem__(self, i):
        rgb = np.asarray(Image.open(f"{self.d}/{self.k[i]}_rgb.jpg").convert("RGB"), dtype=np.float32) / 255
        dep = np.asarray(Image.open(f"{self.d}/{self.k[i]}_depth.png"), dtype=np.float32) / 1000.0
        if np.random.rand() > 0.5:
            rgb, dep = rgb[:, ::-1], dep[:, ::-1]
        return {
            "image": torch.from_numpy(rgb.transpose(2, 0, 1).copy()),
            "depth": torch.from_numpy(dep.copy())[None],
            "valid": torch.from_numpy((dep > 0).copy()),
        }


def make_loader():
    return DataLoader(NYU(D), batch_size=6, shuffle=True, num_workers=2)
