import tempfile
from pathlib import Path
import numpy as np, torch
from PIL import Image
from torch.utils.data import IterableDataset, DataLoader, get_worker_info

root = Path(tempfile.mkdtemp())
for k in range(30):
    p = root / f"{k:02}.png"
    Image.fromarray(np.random.randint(0, 255, (16, 16, 3)).astype("uint8")).save(p)
    if k == 7:
        p.write_bytes(p.read_bytes()[:50])


class S(IterableDataset):
    def __iter__(self):
        w = get_worker_info()
        n, k = (w.num_workers, w.id) if w else (1, 0)
        for p in sorted(root.glob("*.png"))[k::n]:
            try:
                a = np.array(Image.open(p).convert("RGB"))
            except OSError:
                a = np.zeros((16, 16, 3), np.uint8)
            yield torch.from_numpy(a).permute(2, 0, 1), int(p.stem)


def make_loader():
    return DataLoader(S(), 5, num_workers=2)
