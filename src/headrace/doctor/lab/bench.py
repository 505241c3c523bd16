"""The child's workbench: marks what is in hand, knows the stage, listens to the spies.

A stage is known from outside: the data set's own code is not changed. `read` until a decoder opens, `decode` while it
works, `transform` while a transform of the data set's own runs, or the names that a plan gives its stages.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

from headrace.doctor.evidence import DecodedImage
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.lab.sightings import Sightings
from headrace.errors import SampleId
from headrace.keys import derive_key

__all__ = ["Bench"]

MAX_FILES = 16
"""Files and images kept per sample; a sample made of more names its first ones."""


class Bench:
    """What an experiment works with. One sample is in hand at a time."""

    def __init__(self, recorder: FlightRecorder) -> None:
        self._recorder = recorder
        self._failed: tuple[BaseException, str] | None = None
        self._entered_s = 0.0
        self.is_listening = False
        """True while a sample is in hand; spies are silent otherwise."""
        self.stage = "read"
        self.opened: list[str] = []
        """Paths of the data files that were opened for this sample, in order."""
        self.images: list[DecodedImage] = []
        self.seen = Sightings()
        """What the spies saw of this sample beyond that."""
        self.stage_s: dict[str, float] = {}
        """Seconds in each stage of this sample, without the stages inside it."""

    @contextlib.contextmanager
    def holding(
        self, index: int | None, sample_id: SampleId | None, *, path: str | None = None, stage: str = "read"
    ) -> Iterator[None]:
        """Takes a sample in hand: from here on its deadline runs and the spies listen."""
        self._recorder.begin(index, sample_id, path, stage)
        self.stage, self._failed = stage, None
        self.opened, self.images, self.stage_s = [], [], {}
        self.seen = Sightings()
        self._entered_s = time.perf_counter()
        self.is_listening = True
        try:
            yield
        finally:
            if self.is_listening:
                self.stop_listening()
            self._recorder.end()

    def stop_listening(self) -> None:
        """The sample has come out: what the doctor itself does with it is not part of it. The deadline still runs."""
        self._count_time()
        self.is_listening = False

    def enter(self, stage: str) -> None:
        """Goes on to another stage."""
        self._count_time()
        self.stage = stage
        self._recorder.note_stage(stage)

    @contextlib.contextmanager
    def inside(self, stage: str) -> Iterator[None]:
        """Is in a stage for a while; an exception that leaves it remembers the innermost stage that it left."""
        if not self.is_listening:
            yield
            return
        outer = self.stage
        self.enter(stage)
        try:
            yield
        except BaseException as error:
            if self._failed is None or self._failed[0] is not error:
                self._failed = (error, stage)
            raise
        finally:
            self.enter(outer)

    def stage_of(self, error: BaseException) -> str:
        """Returns the stage that an exception comes from, also where the user's code raised it anew as another."""
        link: BaseException | None = error
        for _ in range(16):  # a chain may be circular
            if link is None or self._failed is None:
                break
            if link is self._failed[0]:
                return self._failed[1]
            link = link.__cause__ or link.__context__
        return self.stage

    def note_opened(self, path: str) -> None:
        """A spy saw a data file being opened."""
        self.seen.note_open(path)
        if not self.opened:
            self._recorder.note_path(path)
        if len(self.opened) < MAX_FILES and path not in self.opened:
            self.opened.append(path)

    def note_image(self, image: DecodedImage) -> None:
        """A spy saw an image being opened."""
        if len(self.images) < MAX_FILES:
            self.images.append(image)

    def _count_time(self) -> None:
        now = time.perf_counter()
        self.stage_s[self.stage] = self.stage_s.get(self.stage, 0.0) + now - self._entered_s
        self._entered_s = now

    @staticmethod
    def reseed(seed: int, *parts: SampleId) -> None:
        """Seeds the global generators for one sample, so that a report can be made again.

        Only those that the target has imported: random, numpy's and torch's.
        """
        key = derive_key("doctor", seed, *parts)
        random.seed(key)
        numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
        if numpy_random is not None:
            numpy_random.seed(key % 2**32)
        torch: Any = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "manual_seed"):
            torch.manual_seed(key % 2**63)
