"""Spies see, while one sample is prepared, which files are opened and what decoders do; they change neither.

Installed once in the child, before the TARGET is loaded, so that `from PIL.Image import open` is seen as well. A
library is spied on when the user's code imports it, and never imported for it.

    files ── Python's own openings        pillow, opencv ── images, and what is done to them
    readers ── arrays, tables, sound      transforms ── what the data set keeps in an attribute
"""

from __future__ import annotations

import functools

from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.spies import opencv, pillow, readers
from headrace.doctor.lab.spies.calls import StandIn, stand_in
from headrace.doctor.lab.spies.files import describe_files, spy_on_open
from headrace.doctor.lab.spies.hooks import when_imported
from headrace.doctor.lab.spies.transforms import Around, enter_transforms, placeholder, without_spy

__all__ = [
    "Around", "StandIn", "describe_files", "enter_transforms", "install", "installed", "placeholder", "stand_in",
    "without_spy",
]  # fmt: skip

_installed: Bench | None = None


def install(bench: Bench) -> None:
    """Sets the spies for the life of this interpreter."""
    global _installed
    _installed = bench
    spy_on_open(bench)
    for library in (pillow, opencv, readers):
        for name, spy in library.SPIES.items():
            when_imported(name, functools.partial(spy, bench))


def installed() -> Bench | None:
    """Returns the bench that spies of this process tell: it set them, or it is a fork of one that did; None: there are none."""
    return _installed
