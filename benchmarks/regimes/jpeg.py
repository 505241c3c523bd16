"""jpeg: 1,024 JPEG files of about 500x375 from real photographs, random resized crop to 224, uint8, batches of 64.

The crop of each file is drawn once and kept beside the files, so that every side decodes and resizes the same pixels.
Kernel: Pillow decodes the whole file and resizes the crop in one call. Sides that decode less say so.
"""

from __future__ import annotations

import io
import math
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.libraries import grain_side, headrace_sides, spdl_side, torch_sides, torchdata_side
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Work

from benchmarks import limits

BATCH = 64
SIZE = 224
WIDTH, HEIGHT = 500, 375
PHOTOGRAPHS = ("astronaut", "coffee", "chelsea", "rocket", "immunohistochemistry", "hubble_deep_field")
"""Colour images that are inside the scikit-image package; scikit-learn adds china.jpg and flower.jpg."""


def make(work: Work) -> dict[str, Any]:
    """Cuts pieces of 500x375 out of photographs, at many places and scales, and draws one crop of each."""
    from PIL import Image

    photographs = _photographs()
    rng = np.random.default_rng(0)
    count = work.size["num_samples"]
    crops = np.empty((count, 4), np.float32)
    (work.folder / "files").mkdir()
    for number in range(count):
        image = Image.fromarray(photographs[number % len(photographs)])
        scale = rng.uniform(0.7, 1) * min(image.width / WIDTH, image.height / HEIGHT)
        width, height = scale * WIDTH, scale * HEIGHT
        left, top = rng.uniform(0, image.width - width), rng.uniform(0, image.height - height)
        piece = image.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC, box=(left, top, left + width, top + height))
        piece.save(work.folder / "files" / f"{number:05}.jpg", quality=90)
        crops[number] = draw_crop(rng, WIDTH, HEIGHT)
    np.save(work.folder / "crops.npy", crops)
    with tarfile.open(work.folder / "shard.tar", "w") as tar:
        for number in range(count):
            tar.add(work.folder / "files" / f"{number:05}.jpg", f"{number:05}.jpg")
    size = sum(path.stat().st_size for path in (work.folder / "files").iterdir())
    return {"photographs": len(photographs), "mean_file_bytes": size // count}


def _photographs() -> list[np.ndarray]:
    from sklearn.datasets import load_sample_images

    found = list(load_sample_images().images)
    import skimage.data

    for name in PHOTOGRAPHS:
        try:
            image = getattr(skimage.data, name)()
        except Exception as error:  # images that are not in the package would have to be downloaded
            print(f"without {name}: {error}")
            continue
        if min(image.shape[:2]) >= SIZE:
            found.append(np.ascontiguousarray(image))
    return found


def draw_crop(rng: np.random.Generator, width: int, height: int) -> tuple[int, int, int, int]:
    """Returns a box as torchvision's RandomResizedCrop draws it: 8 to 100 % of the area, aspect 3/4 to 4/3."""
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1)
        aspect = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if w <= width and h <= height:
            left, top = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
            return left, top, left + w, top + h
    return 0, 0, width, height


def decode(data: bytes, crop: np.ndarray) -> np.ndarray:
    """The kernel: whole file decoded, the crop resized. (224, 224, 3) uint8"""
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGB")
    return np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=tuple(crop.tolist())))


class Photographs:
    """The data set that people write: a list of paths, opened, cropped, resized; and the number of the file."""

    def __init__(self, work: Work) -> None:
        self.crops = np.load(work.folder / "crops.npy")
        self.paths = [str(work.folder / "files" / f"{number:05}.jpg") for number in range(len(self.crops))]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        # A copy, because Pillow's own pixels may not be written to, which torch warns of.
        return decode(Path(self.paths[index]).read_bytes(), self.crops[index]).copy(), index


def limit(work: Work, batch_size: int = BATCH) -> Epochs:
    samples = Photographs(work)

    def write(slot: list[np.ndarray], row: int, index: int) -> None:
        slot[0][row] = decode(Path(samples.paths[index]).read_bytes(), samples.crops[index])
        slot[1][row] = index

    return limits.threads(
        2,
        len(samples),
        batch_size,
        lambda: [np.empty((batch_size, SIZE, SIZE, 3), np.uint8), np.empty(batch_size, np.int64)],
        write,
    )


def tf_crop(work: Work) -> Any:
    """tf.data decodes only the crop, with its own JPEG code and resizing."""
    import tensorflow as tf

    data = Photographs(work)
    crops = data.crops.astype(np.int32)
    windows = np.stack([crops[:, 1], crops[:, 0], crops[:, 3] - crops[:, 1], crops[:, 2] - crops[:, 0]], axis=1)

    def load(path: Any, window: Any, number: Any) -> Any:
        image = tf.image.decode_and_crop_jpeg(tf.io.read_file(path), window, channels=3)
        return tf.cast(tf.image.resize(image, (SIZE, SIZE)), tf.uint8), number

    chain = tf.data.Dataset.from_tensor_slices((data.paths, windows, np.arange(len(data)))).shuffle(len(data))
    chain = chain.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return Epochs(lambda _: chain.as_numpy_iterator())


def dali(work: Work) -> Any:
    """DALI on the CPU decodes only a crop that it draws itself."""
    from nvidia.dali import fn, pipeline_def, types

    data = Photographs(work)

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
    def chain() -> Any:
        jpegs, labels = fn.readers.file(
            files=data.paths, labels=list(range(len(data))), random_shuffle=True, initial_fill=len(data), name="files"
        )
        images = fn.decoders.image_random_crop(jpegs, device="cpu", random_area=[0.08, 1.0])
        return fn.resize(images, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR), labels

    built = chain()
    built.build()

    def epoch(_: int) -> Any:
        for _ in range(len(data) // BATCH):
            yield tuple(output.as_array() for output in built.run())

    return Epochs(epoch)


def webdataset(work: Work) -> Any:
    import webdataset as wds

    crops = np.load(work.folder / "crops.npy")
    count = len(crops)

    def load(sample: dict[str, Any]) -> tuple[np.ndarray, int]:
        number = int(sample["__key__"])
        return decode(sample["jpg"], crops[number]).copy(), number

    # One shard read by both workers would come twice; each worker takes every other sample instead.
    chain = wds.WebDataset(str(work.folder / "shard.tar"), shardshuffle=False, nodesplitter=None, workersplitter=None)
    chain = chain.compose(wds.split_by_worker).shuffle(count).map(load).batched(BATCH)
    return wds.WebLoader(chain, batch_size=None, num_workers=2, persistent_workers=True)


REGIMES = [
    Regime(
        name="jpeg",
        title="JPEG files of 500x375, random resized crop to 224, uint8, batch 64",
        sizes={"full": {"num_samples": 1024}, "tiny": {"num_samples": 128}},
        make=make,
        made_in="photographs",
        sides=(
            Side(name="LIMIT, two bare threads, Pillow", library=LIMIT, open=limit, imports=("PIL.Image",)),
            *headrace_sides(Photographs, BATCH),
            *torch_sides(Photographs, BATCH),
            torchdata_side(Photographs, BATCH, 2),
            grain_side(Photographs, BATCH, threads=2),
            grain_side(Photographs, BATCH, workers=2),
            spdl_side(Photographs, BATCH, threads=2),
            spdl_side(Photographs, BATCH, threads=2, unit="batch"),
            Side(
                name="tf.data, decodes the crop only",
                library="tensorflow",
                open=tf_crop,
                imports=("tensorflow",),
                same_bytes=False,
            ),
            Side(
                name="DALI (CPU), own crop only", library="dali", open=dali, imports=("nvidia.dali",), same_bytes=False
            ),
            Side(name="WebDataset, 2 workers", library="webdataset", open=webdataset, imports=("webdataset",)),
        ),
    )
]
