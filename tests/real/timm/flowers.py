"""A folder of small photographs, as timm expects it: train/<class>/*.jpg and validation/<class>/*.jpg."""
import pathlib
import tempfile

import numpy as np
from PIL import Image, ImageFilter

CLASSES = ("daisy", "rose", "tulip")


def photo(rng, number):
    height, width = (int(rng.integers(72, 128)) for _ in range(2))
    rows, columns = np.mgrid[0:height, 0:width] / 100
    base = np.stack([np.sin(rows * rng.uniform(1, 6) + c) * np.cos(columns * rng.uniform(1, 6) + number) for c in range(3)], -1)
    pixels = 120 + 70 * base + rng.normal(0, 12, base.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.7))


def make_photos(per_class=20):
    root = pathlib.Path(tempfile.mkdtemp(prefix="flowers-"))
    rng = np.random.default_rng(11)
    for split, count in (("train", per_class), ("validation", per_class // 2)):
        for number, name in enumerate(CLASSES):
            folder = root / split / name
            folder.mkdir(parents=True)
            for index in range(count):
                photo(rng, number).save(folder / f"{name}_{index:03d}.jpg", quality=92)
    return root
