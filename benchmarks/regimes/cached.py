"""cached: the JPEG files of `jpeg`, decoded and resized to 224 once; measured is every epoch after that, in batches of 64.

The first epoch is over before anything is measured: each side is opened with its cache filled. LIMIT gathers the same
decoded pictures from one array into preallocated output, in one thread and in two.
"""

from __future__ import annotations

import io
import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.libraries import HEADRACE, INLINE, THREADS, grain_side, spdl_side, torch_sides
from benchmarks.regime import LIMIT, Epochs, Regime, Side, Target, Work
from benchmarks.regimes import jpeg

from benchmarks import limits

BATCH, SIZE = jpeg.BATCH, jpeg.SIZE


def decode(data: bytes) -> np.ndarray:
    """The kernel: whole file decoded, the whole picture resized. (224, 224, 3) uint8"""
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGB")
    return np.array(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR))


def decode_record(record: Any) -> tuple[np.ndarray, int]:
    return decode(record.data), int(Path(record.path).stem)


def files(work: Work) -> list[Path]:
    return sorted((work.folder / "files").iterdir())


def make(work: Work) -> dict[str, Any]:
    """Makes the files of `jpeg`, and decodes them for the sides that hold finished samples."""
    meta = jpeg.make(work)
    np.save(work.folder / "decoded.npy", np.stack([decode(path.read_bytes()) for path in files(work)]))
    return meta


class Decoded:
    """What people write who decode once by hand: a list of finished samples."""

    def __init__(self, work: Work) -> None:
        pictures = np.load(work.folder / "decoded.npy")
        self.samples = [(picture.copy(), number) for number, picture in enumerate(pictures)]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return self.samples[index]


def limit(work: Work, num_threads: int) -> Epochs:
    pictures = np.load(work.folder / "decoded.npy")
    numbers = np.arange(len(pictures))
    out, out_numbers = np.empty((BATCH, SIZE, SIZE, 3), np.uint8), np.empty(BATCH, np.int64)
    pool = ThreadPoolExecutor(num_threads)

    def part(rows: np.ndarray, begin: int, end: int) -> None:
        # "clip" spares numpy a buffer of its own; every row is inside.
        np.take(pictures, rows[begin:end], axis=0, out=out[begin:end], mode="clip")

    def fill(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = len(rows)
        cuts = np.linspace(0, size, num_threads + 1).astype(int)
        others = [pool.submit(part, rows, *pair) for pair in itertools.pairwise(cuts[1:])]
        part(rows, 0, cuts[1])
        np.take(numbers, rows, out=out_numbers[:size], mode="clip")
        for other in others:
            other.result()
        return out[:size], out_numbers[:size]

    return limits.in_caller(len(numbers), BATCH, fill)


def headrace_side(name: str, options: dict[str, Any], *, on_disk: bool = False) -> Side:
    def open_loader(work: Work) -> Any:
        import headrace as hr

        where = work.folder / "kept" if on_disk else "memory"
        plan = hr.folder(work.folder / "files", labels=False).map(decode_record, name="decode")
        plan = plan.cache(at="decode", max_bytes=2 * SIZE * SIZE * 3 * len(plan), where=where)
        for _ in hr.DataLoader(plan, batch_size=BATCH, num_workers=2, runner="threads"):
            pass
        return hr.DataLoader(plan, batch_size=BATCH, shuffle=True, seed=0, **options)

    return Side(
        name=f"headrace, {name}",
        library="headrace",
        open=open_loader,
        imports=("torch.utils.data", "PIL.Image", "headrace.engine.loader"),
    )


def tf_cache(work: Work) -> Any:
    """tf.data decodes and resizes with its own code, and keeps what comes out."""
    import tensorflow as tf

    paths = [str(path) for path in files(work)]

    def load(path: Any, number: Any) -> Any:
        image = tf.image.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.cast(tf.image.resize(image, (SIZE, SIZE)), tf.uint8), number

    chain = tf.data.Dataset.from_tensor_slices((paths, np.arange(len(paths))))
    chain = chain.map(load, num_parallel_calls=tf.data.AUTOTUNE).cache()
    for _ in chain:
        pass
    chain = chain.shuffle(len(paths)).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return Epochs(lambda _: chain.as_numpy_iterator())


REGIMES = [
    Regime(
        name="cached",
        title="JPEG files decoded to 224x224 once, every epoch after the first, batch 64",
        sizes=jpeg.REGIMES[0].sizes,
        make=make,
        made_in="photographs",
        sides=(
            Side(name="LIMIT, one gather", library=LIMIT, open=lambda work: limit(work, 1), imports=("PIL.Image",)),
            Side(
                name="LIMIT, two threads",
                library=LIMIT,
                open=lambda work: limit(work, 2),
            ),
            *[headrace_side(name, options) for name, options in {**HEADRACE, **INLINE, **THREADS}.items()],
            headrace_side("on disk, 2 threads", THREADS["2 threads"], on_disk=True),
            *torch_sides(Decoded, BATCH),
            grain_side(Decoded, BATCH, threads=2),
            spdl_side(Decoded, BATCH, threads=2, unit="batch"),
            Side(
                name="tf.data, cache",
                library="tensorflow",
                open=tf_cache,
                imports=("tensorflow",),
                same_bytes=False,
            ),
        ),
        targets=tuple(
            Target(side=side, against="LIMIT, one gather", at_least=0.8)
            for side in ("headrace, auto", "headrace, no workers")
        ),
    )
]
