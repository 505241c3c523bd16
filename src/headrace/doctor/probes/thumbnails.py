"""Prepares flagged samples once more and makes a small picture of each image-like field.

Only where the user asks for it: pictures are data. They go to the page that asked, and into no evidence.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from headrace.contract.view import as_array, flatten
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.outside import Lab
from headrace.doctor.report.thumbnail import Thumbnail
from headrace.doctor.subject import Subject
from headrace.engine.plan import Plan
from headrace.errors import SampleId

__all__ = ["MakeThumbnails", "make_thumbnails", "picture_of"]

SIDE = 112
"""Pixels of the longer side: enough to see what is wrong, some 10 KB, and too little to stand for the data."""
SMALLEST = 4
"""Pixels of the shorter side below which a grid of numbers is a table and no picture."""
MOST_FIELDS = 3
"""Pictures of one sample: an image, its mask, one more."""
MOST_DEATHS = 3
"""Samples that may take the child with them: each costs a deadline."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MakeThumbnails:
    """The experiment; yields at least one Thumbnail for each id, in their order."""

    name: ClassVar[str] = "thumbnails"
    starts_processes: ClassVar[bool] = False

    sample_ids: Sequence[SampleId]
    seed: int
    """As for the reads: the same draws give the same pictures that were judged."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[list[Thumbnail]]:
        """Yields the pictures of one sample after another; what fails says so in the place of a picture."""
        if subject.is_iterable:
            return
        plan = Plan.of(subject.dataset)
        for sample_id in self.sample_ids:
            yield self._pictures(sample_id, plan, subject, bench)

    def _pictures(self, sample_id: SampleId, plan: Plan, subject: Subject, bench: Bench) -> list[Thumbnail]:
        try:
            index = plan.index_of(sample_id)
            with bench.holding(index, sample_id, path=subject.locate(index)):
                bench.reseed(self.seed, index)
                sample = subject.read(index, bench.enter)
                bench.stop_listening()
                found = list(itertools.islice(_pictures_in(sample, sample_id), MOST_FIELDS))
        except BaseException as error:  # also sys.exit() in a sample
            return [Thumbnail(sample_id=sample_id, note=f"no picture: {type(error).__name__} while it was prepared")]
        return found or [Thumbnail(sample_id=sample_id, note="no picture: no field of it looks like an image")]


def make_thumbnails(lab: Lab, sample_ids: Sequence[SampleId], *, seed: int) -> list[Thumbnail]:
    """Returns pictures of samples, in their order; a sample that is stuck or ends the interpreter has none."""
    pending, made, num_deaths = list(sample_ids), list[Thumbnail](), 0
    while pending and num_deaths < MOST_DEATHS:
        num_done = 0

        def receive(pictures: list[Thumbnail]) -> None:
            nonlocal num_done
            made.extend(pictures)
            num_done += 1

        ending = lab.run(MakeThumbnails(sample_ids=pending, seed=seed), receive)
        pending = pending[num_done:]
        if ending.outcome not in {"stuck", "crashed"} or not pending:
            break
        num_deaths += 1
        made.append(Thumbnail(sample_id=pending.pop(0), note=f"no picture: {ending.outcome} while it was prepared"))
    return made


def _pictures_in(sample: Any, sample_id: SampleId) -> Iterator[Thumbnail]:
    for field, value in flatten(sample):
        pixels, note = picture_of(value)
        if pixels is not None:
            yield Thumbnail(sample_id=sample_id, field=field, png=_as_png(pixels), note=note)


def picture_of(value: Any) -> tuple[npt.NDArray[np.uint8] | None, str]:
    """Returns the pixels of an image-like value, [H, W] or [H, W, 3] of uint8, and how they came about; None: no image.

    Args:
        value: A tensor or an array: [C, H, W] or [H, W, C] with one, three or four channels, or [H, W]; or a picture
            of Pillow's. Values other than uint8 are stretched from their own smallest to their own largest.
    """
    array = np.asarray(value) if hasattr(value, "getbands") else as_array(value)
    if array is None or array.ndim not in {2, 3} or not array.size:
        return None, ""
    shape = f"[{', '.join(map(str, array.shape))}] {array.dtype}"
    pixels: npt.NDArray[Any] = array
    if array.ndim == 3:
        if array.shape[0] in {1, 3, 4}:
            pixels = np.moveaxis(array, 0, -1)
        elif array.shape[-1] not in {1, 3, 4}:
            return None, ""
        pixels = pixels[..., 0] if pixels.shape[-1] == 1 else pixels[..., :3]
    if min(pixels.shape[:2]) < SMALLEST:
        return None, ""
    step = max(1, -(-max(pixels.shape[:2]) // SIDE))
    shrunk = "" if step == 1 else f", every {_ordinal(step)} pixel"
    pixels = pixels[::step, ::step]
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels), f"{shape}{shrunk}"
    return _stretched(pixels, f"{shape}{shrunk}")


def _stretched(pixels: npt.NDArray[Any], told: str) -> tuple[npt.NDArray[np.uint8], str]:
    """Brightness from the smallest to the largest finite value; what is not finite is black."""
    values = pixels.astype(np.float64)
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros(values.shape, np.uint8), f"{told}, no finite value"
    low, high = float(values[finite].min()), float(values[finite].max())
    told += f", {low:.3g} shown as black, {high:.3g} as white" if high > low else f", all {low:.3g}, shown as grey"
    told += "" if finite.all() else ", not finite as black"
    # Halved before they are subtracted: the range of doubles may be wider than a double.
    unit = (values / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.full(values.shape, 0.5)
    return np.where(finite, 255 * unit, 0).round().astype(np.uint8), told


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _as_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    from PIL import Image

    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()
