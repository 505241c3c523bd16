"""What spies see of one sample beyond the names of its files: pictures, what is done to them, decoders that refuse."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

from headrace.doctor.evidence import Refusal
from headrace.doctor.evidence.decoding import ImageStep

__all__ = ["Picture", "Sightings"]

MAX_KEPT = 32
"""Pictures, refusals and steps of each picture that are kept for one sample."""
MAX_OPENS = 256
MESSAGE_CHARS = 300
"""Characters of a message that are kept: some libraries put the data itself into it."""


@dataclasses.dataclass(slots=True)
class Picture:
    """One image or array that a decoder gave, and what was done to it since."""

    reader: str
    source: Any
    """A path, or the encoded bytes."""
    path: str | None
    steps: list[ImageStep] = dataclasses.field(default_factory=list)
    is_tolerant: bool = False
    """True if it was decoded while truncated loading was on."""


class Sightings:
    """Of one sample; made anew for each."""

    def __init__(self) -> None:
        self.opens: list[str] = []
        """Every opening of a data file, in order, a file as often as it was opened."""
        self.pictures: list[Picture] = []
        # Exceptions by their identity: keeping them would keep the frames that they passed, with the images in them.
        self._refused: list[tuple[Refusal, int]] = []
        self._read_well: set[str] = set()
        self._followed: dict[int, tuple[weakref.ref[Any], int]] = {}

    @property
    def in_hand(self) -> str | None:
        """The file that was opened last."""
        return self.opens[-1] if self.opens else None

    def note_open(self, path: str) -> None:
        """A data file is being opened."""
        if len(self.opens) < MAX_OPENS:
            self.opens.append(path)

    # Decoders.

    def note_read(self, path: str | None) -> None:
        """A decoder has read a file, or part of it, without an error."""
        if path is not None and len(self._read_well) < MAX_OPENS:
            self._read_well.add(path)

    def note_refusal(self, path: str | None, error: BaseException | None, message: str = "") -> None:
        """A decoder has refused a file; one inside another lets the same exception pass twice."""
        if len(self._refused) >= MAX_KEPT or any(kept == id(error) and one.path == path for one, kept in self._refused):
            return
        try:
            text = message or str(error).partition("\n")[0][:MESSAGE_CHARS]
        except Exception:  # a __str__ of somebody's own that fails
            text = ""
        name = "" if error is None else type(error).__name__
        self._refused.append((Refusal(path=path, error_type=name, error_message=text), id(error)))

    def was_read(self, path: str | None) -> bool:
        """True if a decoder has read this file."""
        return path in self._read_well

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Files that were refused and never read: an attempt with another decoder mends a refusal."""
        return tuple(refusal for refusal, _ in self._refused if refusal.path not in self._read_well)

    def is_refusal(self, error: BaseException) -> bool:
        """True if this exception came out of a decoder."""
        return any(kept == id(error) and one.error_type == type(error).__name__ for one, kept in self._refused)

    # Pictures.

    def add(self, picture: Picture, thing: Any) -> None:
        """Keeps a picture and follows the object that holds it."""
        if len(self.pictures) < MAX_KEPT:
            self.pictures.append(picture)
            self._follow(thing, len(self.pictures) - 1)

    def of(self, thing: Any) -> Picture | None:
        """The picture that an object holds; if there is only one, an object that was not followed is taken for it."""
        reference, slot = self._followed.get(id(thing), (None, -1))
        if reference is not None and reference() is thing:
            return self.pictures[slot]
        return self.pictures[0] if len(self.pictures) == 1 else None

    def derive(self, thing: Any, made: Any) -> None:
        """An object was made of another one: it holds the same picture."""
        reference, slot = self._followed.get(id(thing), (None, -1))
        if reference is not None and reference() is thing:
            self._follow(made, slot)

    def note_step(self, thing: Any, step: ImageStep) -> None:
        """Something was done to the picture that an object holds."""
        picture = self.of(thing)
        if picture is not None and len(picture.steps) < MAX_KEPT:
            picture.steps.append(step)

    def _follow(self, thing: Any, slot: int) -> None:
        try:
            self._followed[id(thing)] = (weakref.ref(thing), slot)
        except TypeError:  # cannot be referred to weakly; keeping it alive would change the memory that is measured
            return
