"""jpeg: 1,024 JPEG files of about 500x375 from real photographs, random resized crop to 224, uint8, batches of 64.

The crop of each file is drawn once and kept beside the files, so that every side decodes and resizes the same pixels.
Kernel: Pillow decodes the whole file and resizes the crop in one call. Sides that decode less say so.
"""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.libraries import (
    AUTO,
    HOST,
    PROCESSES,
    grain_side,
    headrace_sides,
    notes,
    spdl_side,
    torch_sides,
    torchdata_side,
)
from benchmarks.regime import LIMIT, PEERS, Epochs, Regime, Side, Target, Work
from benchmarks.shards import litdata_side, streaming_side, written

from benchmarks import limits

BATCH = 64
SIZE = 224
SHARDS = 16
WORKERS = {f"{number} workers": {"num_workers": number, "persistent_workers": True} for number in (2, 3, 4)}
CROP_ONLY = "headrace, hr.image, crop only, auto"
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
        images = fn.decoders.image_random_crop(
            jpegs, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
        )
        return fn.resize(images, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR), labels

    built = chain()
    built.build()

    def epoch(_: int) -> Any:
        for _ in range(len(data) // BATCH):
            yield tuple(output.as_array() for output in built.run())

    return Epochs(epoch)


class Encoded(Photographs):
    """What libraries with a format of their own keep: the bytes of the file and its number."""

    def __getitem__(self, index: int) -> tuple[bytes, int]:
        return Path(self.paths[index]).read_bytes(), index


def decoded_by(work: Work) -> Callable[[tuple[bytes, int]], tuple[np.ndarray, int]]:
    crops = Photographs(work).crops

    def load(stored: tuple[bytes, int]) -> tuple[np.ndarray, int]:
        data, number = stored
        return decode(data, crops[int(number)]).copy(), int(number)

    return load


def write_shards(work: Work, folder: Path) -> None:
    """Writes 16 tars, so that workers share them out; one would have to be read whole by each."""
    import webdataset as wds

    samples = Encoded(work)
    with wds.ShardWriter(str(folder / "%03d.tar"), maxcount=len(samples) // SHARDS) as out:
        for data, number in (samples[index] for index in range(len(samples))):
            out.write({"__key__": f"{number:05}", "jpg": data})


def webdataset(work: Work) -> Any:
    import webdataset as wds

    load = decoded_by(work)
    shards = sorted(map(str, (work.folder / "webdataset").glob("*.tar")))
    chain = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(work.size["num_samples"] // 2)
    chain = chain.map(lambda sample: load((sample["jpg"], int(sample["__key__"])))).batched(BATCH)
    return wds.WebLoader(chain, batch_size=None, num_workers=2, persistent_workers=True)


def hr_image(*, crop_only: bool) -> Callable[[Work], Any]:
    """Ours from the folder on, as the guide does it; the crop is drawn anew in each epoch, from the same distribution."""

    def make_plan(work: Work) -> Any:
        import headrace as hr

        plan = hr.folder(work.folder / "files", labels=False)
        if not crop_only:
            plan = plan.map(hr.image.decode(layout="HWC"))
        return plan.map(hr.image.random_resized_crop(SIZE, layout="HWC"))

    return make_plan


def hr_image_sides() -> list[Side]:
    """Whole decode, and of the crop only, each automatic."""

    def numbers(loader: Any, batch: Any) -> np.ndarray:  # noqa: ARG001 one signature
        return np.array([int(Path(name).stem) for name in loader.last.sample_ids])

    def said(loader: Any) -> dict[str, Any]:
        from headrace.engine.transform import image_region

        return {**notes(loader), "native_region": image_region.is_there()}

    return [
        dataclasses.replace(side, same_bytes=False, labels=numbers, notes=said)
        for crop_only, what in ((False, "hr.image, whole decode, "), (True, "hr.image, crop only, "))
        for side in headrace_sides(hr_image(crop_only=crop_only), BATCH, AUTO, what)
    ]


REGIMES = [
    Regime(
        name="jpeg",
        title="JPEG files of 500x375, random resized crop to 224, uint8, batch 64",
        sizes={"full": {"num_samples": 1024}, "tiny": {"num_samples": 128}},
        make=make,
        made_in="photographs",
        sides=(
            Side(name="LIMIT, two bare threads, Pillow", library=LIMIT, open=limit, imports=("PIL.Image",)),
            *headrace_sides(Photographs, BATCH, {**AUTO, **HOST, **PROCESSES}),
            *hr_image_sides(),
            *torch_sides(Photographs, BATCH, WORKERS),
            torchdata_side(Photographs, BATCH, 2),
            grain_side(Photographs, BATCH, threads=2),
            spdl_side(Photographs, BATCH, threads=2),
            Side(
                name="tf.data, decodes the crop only",
                library="tensorflow",
                open=tf_crop,
                imports=("tensorflow",),
                same_bytes=False,
                warm_s=3,
            ),
            Side(
                name="DALI (CPU), own crop only", library="dali", open=dali, imports=("nvidia.dali",), same_bytes=False
            ),
            Side(
                name="WebDataset, 2 workers, 16 shards, own shuffle",
                library="webdataset",
                open=webdataset,
                imports=("webdataset",),
                prepare=written(write_shards, "webdataset"),
            ),
            litdata_side(Encoded, BATCH, decoded_by),
            streaming_side(Encoded, BATCH, {"jpg": "bytes", "number": "int"}, decoded_by),
        ),
        seconds=3,
        targets=(
            Target(side="headrace, auto", against="LIMIT", at_least=0.97),
            Target(side=CROP_ONLY, against="LIMIT", at_least=1.2),
            Target(side=CROP_ONLY, against="torch,", at_least=2.5),
            Target(side=CROP_ONLY, against=PEERS, at_least=1),
        ),
    )
]
