"""Small photographs on the disk in the layouts that torchvision's data sets read."""
import gzip
import pathlib
import struct
import tempfile

import numpy as np
from PIL import Image, ImageFilter


def photo(rng, number):
    height, width = (int(rng.integers(80, 140)) for _ in range(2))
    rows, columns = np.mgrid[0:height, 0:width] / 100
    base = np.stack([np.sin(rows * rng.uniform(1, 6) + c) * np.cos(columns * rng.uniform(1, 6) + number) for c in range(3)], -1)
    pixels = 120 + 70 * base + rng.normal(0, 12, base.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.7))


def make_folder(per_class=24, names=("n01440764", "n02102040", "n03000684", "n03888257")):
    root = pathlib.Path(tempfile.mkdtemp(prefix="imagenet-"))
    rng = np.random.default_rng(3)
    for split, count in (("train", per_class), ("val", per_class // 2)):
        for number, name in enumerate(names):
            (root / split / name).mkdir(parents=True)
            for index in range(count):
                photo(rng, number).save(root / split / name / f"{name}_{index}.JPEG", quality=90)
    return root


def make_mnist():
    """The four files of MNIST, of fewer digits."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="mnist-"))
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(4)
    prototypes = np.asarray([[np.sin((r + d) * (c + 1 + d) / 40) > 0.4 for c in range(28)] for d in range(10) for r in range(28)])
    prototypes = prototypes.reshape(10, 28, 28) * 200.0
    for prefix, count in (("train", 640), ("t10k", 200)):
        labels = rng.integers(0, 10, count)
        pixels = (prototypes[labels] + rng.normal(20, 15, (count, 28, 28))).clip(0, 255).astype(np.uint8)
        images = struct.pack(">IIII", 2051, count, 28, 28) + pixels.tobytes()
        targets = struct.pack(">II", 2049, count) + labels.astype(np.uint8).tobytes()
        for name, content in ((f"{prefix}-images-idx3-ubyte", images), (f"{prefix}-labels-idx1-ubyte", targets)):
            (raw / name).write_bytes(content)
            (raw / f"{name}.gz").write_bytes(gzip.compress(content))
    return root
