import tempfile
from pathlib import Path
import numpy as np, torch
from PIL import Image
from torch.utils.data import IterableDataset, DataLoader, get_worker_info

root = Path(tempfile.mkdtemp())
for k in range(24):
    im = Image.fromarray(np.random.randint(0, 255, (48, 64, 3)).astype("uint8"))
    ex = Image.Exif()
    if k % 4 == 1:
        ex[0x0112] = 6
    im.save(root / f"p{k:02}.jpg", exif=ex)


class Stream(IterableDataset):
    def __iter__(self):
        wi = get_worker_info()
        for k, p in enumerate(sorted(root.glob("*.jpg"))):
            if wi and k % wi.num_workers != wi.id:
                continue
            im = Image.open(p).convert("RGB").resize((32, 32))
            yield {"img": torch.from_numpy(np.array(im)).permute(2, 0, 1), "path": str(p)}


def make_loader():
    return DataLoader(Stream(), batch_size=4, num_workers=2)
