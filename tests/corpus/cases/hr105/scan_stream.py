import tempfile
from pathlib import Path
import numpy as np, torch
from PIL import Image
from torch.utils.data import IterableDataset, DataLoader, get_worker_info

root = Path(tempfile.mkdtemp())
for k in range(20):
    Image.fromarray((np.linspace(0, 60000, 32 * 32).reshape(32, 32) + k).astype(np.uint16)).save(root / f"{k:02}.png")


class X(IterableDataset):
    def __iter__(self):
        for p in sorted(root.glob("*.png")):
            yield torch.from_numpy(np.array(Image.open(p).convert("L")))[None].float()


def make_loader():
    return DataLoader(X(), batch_size=4)
