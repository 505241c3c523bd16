"""Small CT-like slices and volumes with their labels, as .npy and .nii-like arrays on the disk."""
import pathlib
import tempfile

import numpy as np


def make_volumes(count=12, size=(40, 40, 24), seed=0, num_organs=2):
    root = pathlib.Path(tempfile.mkdtemp(prefix="organs-"))
    rng = np.random.default_rng(seed)
    files = []
    grid = np.stack(np.meshgrid(*map(np.arange, size), indexing="ij"), -1)
    for index in range(count):
        label = np.zeros(size, np.uint8)
        for organ in range(1, num_organs + 1):
            centre = rng.uniform(10, np.array(size) - 10)
            label[((grid - centre) ** 2).sum(-1) < rng.uniform(20, 60)] = organ
        image = rng.normal(-100, 60, size) + 180 * (label > 0) + 40 * label
        np.save(root / f"image_{index:02d}.npy", image.astype(np.float32))
        np.save(root / f"label_{index:02d}.npy", label)
        files.append({"image": str(root / f"image_{index:02d}.npy"), "label": str(root / f"label_{index:02d}.npy")})
    return files
