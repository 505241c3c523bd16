import io
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataloader import default_collate

FOLDER = Path(tempfile.mkdtemp())


def write_pages():
    rng = np.random.default_rng(1)
    for page in range(40):
        buffer = io.BytesIO()
        Image.fromarray(rng.integers(0, 255, (24, 24), dtype=np.uint8)).save(buffer, "PNG")
        content = buffer.getvalue() if page % 9 != 4 else b"<html>not found</html>"
        (FOLDER / f"page_{page:02d}.png").write_bytes(content)


class Pages(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.png"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        try:
            page = Image.open(self.paths[index])
        except UnidentifiedImageError:
            return None
        return torch.from_numpy(np.array(page, dtype=np.float32) / 255), index % 2


def collate_pages(batch):
    batch = list(filter(lambda sample: sample is not None, batch))
    return default_collate(batch)


def make_loader():
    write_pages()
    return DataLoader(Pages(FOLDER), batch_size=4, shuffle=True, collate_fn=collate_pages)
