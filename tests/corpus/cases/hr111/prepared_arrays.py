import pathlib
import tempfile

import numpy as np
from torch.utils.data import DataLoader, Dataset

LOCK = """schema: '2.0'
stages:
  prepare:
    cmd: python prepare.py
    deps:
    - path: prepare.py
      hash: md5
      md5: 0cc175b9c0f1b6a831c399e269772661
      size: 1312
    outs:
    - path: data/features.npy
      hash: md5
      md5: 900150983cd24fb0d6963f7d28e17f72
      size: {size}
    - path: data/labels.npy
      hash: md5
      md5: {labels}
      size: {labels_size}
"""


class Features(Dataset):
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def __len__(self):
        return 40

    def __getitem__(self, row):
        features = np.load(self.folder / "features.npy", mmap_mode="r")
        labels = np.load(self.folder / "labels.npy")
        return np.array(features[row]), labels[row]


def make_loader():
    import hashlib

    repository = pathlib.Path(tempfile.mkdtemp())
    data = repository / "data"
    data.mkdir()
    rng = np.random.default_rng(4)
    np.save(data / "features.npy", rng.normal(size=(40, 6)).astype(np.float32))
    np.save(data / "labels.npy", rng.integers(0, 3, 40))
    labels = (data / "labels.npy").read_bytes()
    (repository / "dvc.lock").write_text(
        LOCK.format(
            size=(data / "features.npy").stat().st_size,
            labels=hashlib.md5(labels).hexdigest(),
            labels_size=len(labels),
        )
    )
    return DataLoader(Features(data), batch_size=8)
