"""Where a loader stands: a few integers, the same on every rank, that say all that is needed to go on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from headrace.errors import StateMismatch, Where, nearest

__all__ = ["FORMAT", "Cursor"]

FORMAT: Final = "headrace-cursor-1"
"""Name of this layout of the state; a loader reads only what it knows."""

MEANINGS: Final = {
    "num_samples": "number of samples",
    "data": "the data set's records and ids",
    "order": "shuffling or sampler",
    "stages": "the stages between reading and collating",
    "order_digest": "the sampler's list of this epoch",
    "layout": "ranks and workers",
}
"""What a key of the fingerprint stands for, in the words of a message."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A point in the stream of samples. Samples on their way count as not handed over, so no work in flight is state.

    Raises:
        StateMismatch: A value is of the wrong type or out of range.

    >>> cursor = Cursor(seed=7, epoch=2, consumed=640, fingerprint={"num_samples": 1797})
    >>> Cursor.from_state_dict(cursor.state_dict()) == cursor
    True
    """

    seed: int
    """Seed of the loader: order and random stages derive from it."""
    epoch: int
    """Epoch, from 0."""
    consumed: int
    """Samples of that epoch handed over on all ranks together, dropped ones not counted."""
    fingerprint: Mapping[str, str | int]
    """What must be the same on load. The loader's keys: num_samples, data, order, stages."""
    order_digest: str | None = None
    """Digest of the epoch's order, where a sampler and not the seed decides it; None = the seed says all."""
    layout: Mapping[str, int] | None = None
    """Ranks and workers, where they decide which samples come (iterable data sets); None = any will do."""

    def __post_init__(self) -> None:
        for name, least in (("seed", None), ("epoch", 0), ("consumed", 0)):
            value = getattr(self, name)
            if not _is_int(value):
                raise _unreadable(name, value, "a whole number")
            if least is not None and value < least:
                raise _unreadable(name, value, f"{least} or more")
        if self.order_digest is not None and not isinstance(self.order_digest, str):
            raise _unreadable("order_digest", self.order_digest, "text")
        _check_mapping("fingerprint", self.fingerprint, text=True)
        if self.layout is not None:
            _check_mapping("layout", self.layout, text=False)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state as plain values that survive JSON unchanged; under 1 KB with the loader's fingerprint."""
        state: dict[str, Any] = {
            "format": FORMAT,
            "seed": self.seed,
            "epoch": self.epoch,
            "consumed": self.consumed,
            "fingerprint": dict(self.fingerprint),
        }
        if self.order_digest is not None:
            state["order_digest"] = self.order_digest
        if self.layout is not None:
            state["layout"] = dict(self.layout)
        return state

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any] | Cursor) -> Cursor:
        """Returns the cursor that `state_dict` described; a cursor is returned as it is.

        Raises:
            StateMismatch: This is no such state; names the key, and the nearest known one.
        """
        if isinstance(state, Cursor):
            return state
        if not isinstance(state, Mapping):
            raise StateMismatch(f"a state is a mapping such as state_dict() returns, not {type(state).__name__}")
        if state.get("format") != FORMAT:
            raise _unknown_format(state)
        fields = dataclasses.fields(cls)
        known = ["format", *(field.name for field in fields)]
        required = [field.name for field in fields if field.default is dataclasses.MISSING]
        unknown = [key for key in state if key not in known]
        missing = [key for key in required if key not in state]
        if unknown:
            raise StateMismatch(f"the saved state has an unknown key {unknown[0]!r}{nearest(str(unknown[0]), known)}")
        if missing:
            raise StateMismatch(
                f"the saved state has no {missing[0]!r}",
                why=f"{FORMAT} has {', '.join(required)}; this state has {', '.join(map(str, state))}",
            )
        return cls(**{key: value for key, value in state.items() if key != "format"})

    def check_fits(
        self,
        fingerprint: Mapping[str, str | int] | Cursor,
        *,
        order_digest: str | None = None,
        layout: Mapping[str, int] | None = None,
    ) -> None:
        """Passes if a loader of that fingerprint can go on from here.

        Args:
            fingerprint: The loader's own; or its cursor, whose other fields then count too.
            order_digest: Digest of the loader's order for this cursor's seed and epoch. Default: not compared.
            layout: The loader's ranks and workers. Compared only if this cursor depends on them.

        Raises:
            StateMismatch: Something that must be the same differs; prints both sides, and what may differ.
        """
        if isinstance(fingerprint, Cursor):
            mine = fingerprint
            fingerprint, layout = mine.fingerprint, mine.layout
            # Digests of two epochs differ by nature and say nothing.
            order_digest = mine.order_digest if (mine.seed, mine.epoch) == (self.seed, self.epoch) else None
        pairs = [(key, self.fingerprint.get(key), fingerprint.get(key)) for key in {**self.fingerprint, **fingerprint}]
        if order_digest is not None and self.order_digest is not None:
            pairs.append(("order_digest", self.order_digest, order_digest))
        if self.layout is not None:
            pairs.append(("layout", _show(self.layout), _show(layout)))
        differing = [pair for pair in pairs if pair[1] != pair[2]]
        if differing:
            raise self._does_not_fit(differing)

    def _does_not_fit(self, differing: list[tuple[str, Any, Any]]) -> StateMismatch:
        rows = [
            f"\n    {key}{f' ({MEANINGS[key]})' if key in MEANINGS else ''}"
            f"\n        saved: {'nothing' if saved is None else saved}"
            f"\n        here:  {'nothing' if here is None else here}"
            for key, saved, here in differing
        ]
        return StateMismatch(
            f"the saved state does not fit this loader; different: {', '.join(key for key, _, _ in differing)}{''.join(rows)}",
            where=Where(epoch=self.epoch, position=self.consumed, seed=self.seed),
            do=(
                "load the state into a loader of the data set, order and stages that it was saved with",
                "batch size may differ safely; ranks and workers may not, because they decide which samples come"
                if self.layout is not None
                else "ranks, workers, runner and batch size may differ safely",
            ),
        )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _show(layout: Mapping[str, int] | None) -> str | None:
    return None if layout is None else ", ".join(f"{name} {layout[name]}" for name in sorted(layout))


def _check_mapping(name: str, value: object, *, text: bool) -> None:
    if not isinstance(value, Mapping):
        raise _unreadable(name, value, "a mapping")
    for key, entry in value.items():
        if not isinstance(key, str) or not (_is_int(entry) or (text and isinstance(entry, str))):
            raise _unreadable(f"{name}[{key!r}]", entry, "text or a whole number" if text else "a whole number")


def _unreadable(name: str, value: object, expected: str) -> StateMismatch:
    return StateMismatch(f"the saved state cannot be read: {name} is {value!r}; it must be {expected}")


def _unknown_format(state: Mapping[str, Any]) -> StateMismatch:
    if "format" not in state:
        keys = ", ".join(map(str, state)) or "none"
        return StateMismatch(f"this is no state of a headrace loader: it has no 'format' (keys: {keys})")
    return StateMismatch(
        f"the saved state has format {state['format']!r}; this version of headrace reads {FORMAT!r}",
        why="probably another version of headrace saved it" if "headrace" in str(state["format"]) else None,
    )
