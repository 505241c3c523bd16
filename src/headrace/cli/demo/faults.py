"""Four faults that real data sets have, each made in one file, and undone from the originals."""

from __future__ import annotations

import hashlib
import pathlib

from headrace.cli.demo.data import Digits, write_labels

__all__ = ["FAULTY", "break_data", "mend_data"]

GREY, TRUNCATED, POINTER, MISTYPED = 301, 702, 1003, 1500
"""Numbers of the digits concerned: any four training digits, apart from each other, would do."""
FAULTY = {
    GREY: "saved with one channel among files with three",
    TRUNCATED: "cut off in the middle, as by an interrupted copy",
    POINTER: "a git-lfs pointer: the text that stands for a file that was never fetched",
    MISTYPED: "labelled by a slip of the keyboard: the key was hit twice",
}


def break_data(root: pathlib.Path, digits: Digits) -> None:
    """Makes the four faults in freshly written files."""
    from PIL import Image

    grey = root / digits.path(GREY)
    Image.fromarray(digits.pixels[GREY, :, :, 0]).save(grey)

    truncated = root / digits.path(TRUNCATED)
    whole = truncated.read_bytes()
    truncated.write_bytes(whole[: len(whole) // 2])

    pointer = root / digits.path(POINTER)
    content = pointer.read_bytes()
    # The format of https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md, version 1.
    pointer.write_text(
        "version https://git-lfs.github.com/spec/v1\n"
        f"oid sha256:{hashlib.sha256(content).hexdigest()}\n"
        f"size {len(content)}\n",
        encoding="ascii",
    )

    write_labels(root, digits, slips={MISTYPED: int(str(digits.labels[MISTYPED]) * 2)})


def mend_data(root: pathlib.Path, digits: Digits) -> None:
    """Writes the three files and the label again from the originals."""
    for index in (GREY, TRUNCATED, POINTER):
        digits.write(root, index)
    write_labels(root, digits)
