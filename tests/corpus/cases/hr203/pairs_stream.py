import tempfile
from pathlib import Path
import numpy as np, torch
from PIL import Image
from torch.utils.data import IterableDataset, DataLoader

root = Path(tempfile.mkdtemp())
for k in range(10):
    Image.fromarray(np.random.randint(0, 255, (40, 40, 3)).astype("uint8")).save(root / f"{k}.jpg")
    m = np.zeros((40, 40), np.uint8)
    m[5:20, 3 + k : 22] = 3
    m[20:, 30:] = 255
    Image.fromarray(m).save(root / f"{k}_m.png")


class S(IterableDataset):
    def __iter__(self):
        for k in range(10):
            im = Image.open(root / f"{k}.jpg").resize((24, 24), Image.BILINEAR)
            m = Image.open(root / f"{k}_m.png").resize((24, 24), Image.BILINEAR)
            yield torch.from_numpy(np.array(im)).permute(2, 0, 1).float(), torch.from_numpy(np.array(m)).long()


def make_loader():
    return DataLoader(S(), 2)
