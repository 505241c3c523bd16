"""Made-up evidence, in few words: for the examples of the rules and the golden reports. Nothing here is measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from headrace.contract.view import ValueView
from headrace.doctor.evidence import CollateTrial, DecodedImage, LoaderFacts, OpenedFile, SampleRead, SampleReads
from headrace.errors import SampleId

__all__ = ["collated", "failed", "file", "image", "label", "loader", "ok", "opened", "reads", "values"]

JPEG_HEAD = b"\xff\xd8\xff\xe0\x00\x10JFIF"


def values(field: str, *shape: int, dtype: str = "float32", kind: str = "tensor", **more: Any) -> ValueView:
    """One numeric field of a sample."""
    return ValueView(field=field, kind=kind, dtype=dtype, shape=shape, **more)


def image(*shape: int) -> ValueView:
    """A float32 tensor called `image`."""
    return values("image", *shape)


def label(value: float, *, field: str = "label", dtype: str = "int", kind: str = "number") -> ValueView:
    """A single number called `label`."""
    return values(field, dtype=dtype, kind=kind, minimum=value, maximum=value, is_whole=float(value).is_integer())


def opened(path: str, *, size_bytes: int | None = 41_305, head: bytes = JPEG_HEAD) -> OpenedFile:
    """A file that was opened; a healthy JPEG if nothing else is said."""
    return OpenedFile(path=path, size_bytes=size_bytes, head=head)


def file(mode: str, width: int = 16, height: int = 16) -> DecodedImage:
    """A PNG file as a decoder sees it."""
    return DecodedImage(path=None, format="PNG", mode=mode, size=(width, height))


def ok(*fields: ValueView, sample_id: SampleId | None = None, **more: Any) -> SampleRead:
    """A sample that came out. `reads` gives it its row number, which is its id if none is given."""
    more = {"path": None, **more}
    return SampleRead(
        index=-1, sample_id=-1 if sample_id is None else sample_id, outcome="ok", stage="done", fields=fields, **more
    )


def failed(
    error_type: str,
    message: str = "",
    *,
    stage: str = "read",
    outcome: str = "error",
    sample_id: SampleId = -1,
    **more: Any,
) -> SampleRead:
    """A sample that did not come out."""
    more = {"path": None, **more}
    return SampleRead(
        index=-1,
        sample_id=sample_id,
        outcome=outcome,
        stage=stage,
        error_type=error_type,
        error_message=message,
        **more,
    )


def reads(*samples: SampleRead, num_samples: int | None = None, **more: Any) -> SampleReads:
    """The samples as rows 0, 1, 2, ... of a data set, `num_samples` long if more than those exist."""
    rows = tuple(
        dataclasses.replace(read, index=row, sample_id=row if read.sample_id == -1 else read.sample_id)
        for row, read in enumerate(samples)
    )
    total = len(rows) if num_samples is None else num_samples
    return SampleReads(num_samples=total, reads=rows, is_full=len(rows) == total, **more)


def collated(
    *batch_fields: ValueView, ids: tuple[SampleId, ...] = (0, 1), own: str | None = None, **more: Any
) -> CollateTrial:
    """An attempt to join samples: by torch's default rules, or by the user's `own` function.

    It succeeded unless an `error_type` is given.
    """
    more.setdefault("succeeded", more.get("error_type") is None)
    return CollateTrial(
        collate=own or "default_collate", is_default=own is None, sample_ids=ids, batch_fields=batch_fields, **more
    )


def loader(**more: Any) -> LoaderFacts:
    """A DataLoader over four samples in batches of four, if nothing else is said."""
    facts: dict[str, Any] = {
        "kind": "torch.utils.data.DataLoader",
        "is_iterable": False,
        "num_samples": 4,
        "batch_size": 4,
        "drop_last": False,
        "num_batches": 1,
        "num_workers": 0,
        "collate": "default_collate",
    }
    return LoaderFacts(**{**facts, **more})
