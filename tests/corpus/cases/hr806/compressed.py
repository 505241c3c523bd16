import zlib

import numpy as np

import headrace as hr

PIXELS = np.random.default_rng(0).integers(0, 255, (16, 256, 256), dtype=np.uint8)
BLOBS = [zlib.compress(image.tobytes()) for image in PIXELS]


class Packed:
    def __len__(self):
        return 320

    def __getitem__(self, index):
        pixels = np.frombuffer(zlib.decompress(BLOBS[index % 16]), np.uint8).reshape(256, 256)
        return {"pixels": np.sqrt(pixels.astype(np.float32)), "label": index % 4}


def make_loader():
    return hr.DataLoader(Packed(), batch_size=16, num_workers=2, runner="threads")
