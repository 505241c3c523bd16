"""What a loader is now, and what of it can be changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from headrace.doctor.timing.setting import Setting

__all__ = ["LoaderNow", "changes_of", "includes"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoaderNow:
    """The present setting of a loader, and the machine that it runs on. The record of `AskLoader`."""

    library: Literal["torch", "headrace", "other"]
    kind: str
    """Class of the loader."""
    present: Setting
    """As its user set it: every knob that it has is filled in."""
    num_samples: int | None = None
    batch_size: int | None = None
    num_batches: int | None = None
    """Of one epoch; None: it does not say."""
    is_iterable: bool = False
    """True: a stream."""
    can_read_batches: bool = False
    """True: the data set answers `dataset[[3, 1, 4]]`."""
    shares_generator: bool = False
    """True: the sampler draws from the generator that seeds of workers are drawn from; see `reshuffles`."""
    has_device: bool = False
    """True: there is an accelerator, so pinned memory can matter."""
    num_cores: int = 1
    """That this process may use."""
    cannot: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What cannot be changed -> why, in a user's words; `workers` and `loader` are looked at."""
    default_start_method: str = "fork"
    """That workers get if nothing is said."""
    file: str | None = None
    """Source of the module that TARGET names; None: a file, whose name is TARGET's, or an object."""
    num_siblings: int = 1
    """Loaders of TARGET: the first of several is looked at."""

    def under(self, change: Setting) -> Setting:
        """Returns the whole setting that a change leads to; what needs workers is gone without them."""
        given = {
            field.name: value
            for field in dataclasses.fields(change)
            if (value := getattr(change, field.name)) is not None
        }
        whole = dataclasses.replace(self.present, **given)
        if whole.num_workers == 0:
            whole = dataclasses.replace(whole, prefetch_factor=None, persistent_workers=False, start_method=None)
        elif whole.num_workers is not None and whole.prefetch_factor is None and self.library != "other":
            whole = dataclasses.replace(whole, prefetch_factor=2)  # torch's own default
        return whole

    def difference(self, change: Setting) -> Setting:
        """Returns the change without what is so already: two changes with one difference are one setting."""
        whole = self.under(change)
        left = {
            field.name: value
            for field in dataclasses.fields(whole)
            if (value := getattr(whole, field.name)) != getattr(self.present, field.name) and value is not None
        }
        if whole.num_workers == 0:
            left.pop("persistent_workers", None)
        elif self.present.num_workers == 0 and left.get("prefetch_factor") == 2:
            del left["prefetch_factor"]  # the default of those that have workers
        return Setting(**left)

    def reshuffles(self, change: Setting) -> bool:
        """True if a change gives another shuffle under the same seed, from the second epoch on.

        PyTorch draws one number in each epoch for the seeds of workers, and none for workers that stay. Where the sampler
        draws from the same generator, it finds it elsewhere.
        """
        stay = [bool(one.num_workers and one.persistent_workers) for one in (self.present, self.under(change))]
        return self.shares_generator and stay[0] != stay[1]

    def describe(self, change: Setting) -> str:
        """What people call it: `num_workers=2 -> 4, prefetch_factor=2 -> 4`; `as it is`."""
        parts = [
            "headrace.DataLoader" if name == "loader" else f"{name}={'' if old is None else f'{old!r} -> '}{new!r}"
            for name, old, new in changes_of(self.present, self.difference(change))
        ]
        return ", ".join(parts) or "as it is"


def changes_of(present: Setting, change: Setting) -> list[tuple[str, object, object]]:
    """Returns (knob, present value, new value) of all that a change names."""
    found = []
    for field in dataclasses.fields(change):
        new = getattr(change, field.name)
        if new is not None:
            found.append((field.name, getattr(present, field.name), new))
    return found


def includes(setting: Setting, other: Setting) -> bool:
    """True if it changes all that the other changes, in the same way, and is no other loader."""
    return setting.loader == other.loader and all(
        getattr(setting, name) == new for name, _, new in changes_of(setting, other)
    )
