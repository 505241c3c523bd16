"""What probes return: frozen records, one per kind of evidence. Rules read these and nothing else.

No payloads: ids, paths, shapes, dtypes, ranges, counts, digests, the first bytes of a file that could not be decoded.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.contract.view import ValueView
from headrace.errors import SampleId

__all__ = [
    "CollateTrial",
    "ContractCheck",
    "DecodedImage",
    "Evidence",
    "LoaderFacts",
    "OpenedFile",
    "Refusal",
    "SampleRead",
    "SampleReads",
    "Violation",
    "WorkerStreams",
]


class Evidence:
    """Base of what a rule may ask for in `needs`; carries nothing."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """One data file that was opened while a sample was prepared."""

    path: str
    size_bytes: int | None
    """Size on disk; None: the file was not there."""
    head: bytes
    """First 64 bytes: enough for every magic number and for the first line of a pointer file."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DecodedImage:
    """One image that a decoder opened while a sample was prepared, as the file has it, before any conversion."""

    path: str | None
    """None: decoded from memory."""
    format: str | None
    """PNG, JPEG, ..."""
    mode: str
    """Pillow's mode: RGB, L, P, RGBA, CMYK, I;16, ..."""
    size: tuple[int, int]
    """(width, height) in pixels."""
    is_cut_off: bool = False
    """True if the file ends before the image does and was decoded all the same, because truncated loading is on."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A decoder that refused a file while a sample was prepared, whatever became of the sample."""

    path: str | None
    """None: decoded from memory, and no file was opened before."""
    error_type: str
    """Class name of the exception; empty if the decoder returned nothing, as `cv2.imread` does."""
    error_message: str
    """First line of the message, or how the decoder said no."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SampleRead:
    """One sample, prepared alone exactly as the data set prepares it."""

    index: int
    """Row number in the data set."""
    sample_id: SampleId
    path: str | None
    """What it was read from, for people: the data set's own word, or the first file that was opened."""
    outcome: str
    """`ok`; `error`: an exception; `stuck`: no answer before the deadline; `crashed`: the interpreter ended."""
    stage: str
    """Where it ended: `read`, `decode`, `transform`, a plan's stage name, or `done`."""
    error_type: str | None = None
    """Class name of the exception; for `crashed` the signal, e.g. SIGSEGV."""
    error_message: str | None = None
    """First line of the exception's message."""
    error_at: str | None = None
    """`file:line in function`: the innermost frame of the user's own code; for `stuck` too."""
    stack: str | None = None
    """Formatted stack: of the exception, or of the stuck or crashed interpreter."""
    wall_s: float = 0.0
    """Seconds that the preparation took."""
    files: tuple[OpenedFile, ...] = ()
    images: tuple[DecodedImage, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    """Files that a decoder refused and did not read later on."""
    digest: str | None = None
    """Of the content of its largest field; None: it has no numeric field with a shape."""
    fields: tuple[ValueView, ...] = ()
    """What came out; empty unless `ok`. A sample that is None has one field of kind `none`."""
    num_again: int = 0
    """For `error`: further readings in the same process, under its own seed and under others; 0: none were made."""
    num_again_failed: int = 0
    """Of those, readings that raised, too."""
    is_drawn: bool = False
    """For what fails by chance: True if it failed under its own seed each time, so that a random step draws the failure."""

    @property
    def is_by_chance(self) -> bool:
        """Whether it failed, and came out when it was read again."""
        return self.outcome == "error" and self.num_again_failed < self.num_again


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SampleReads(Evidence):
    """Chosen samples (ordinary, edge, last, a spread), each prepared alone in one process."""

    num_samples: int
    """`len(dataset)`; of a stream, as many as are known of: one more than were drawn, unless it was seen to end."""
    reads: tuple[SampleRead, ...]
    is_full: bool
    """True if every sample was tried."""
    is_stream: bool = False
    """True if they come from a pass in its order, because they cannot be asked for by row number."""
    num_classes: int | None = None
    """Number of classes, where the data set, its contract or the user says one."""
    num_classes_from: str | None = None
    """Who says so, e.g. `dataset.classes` or `--num-classes`."""
    target_fields: tuple[str, ...] = ()
    """Names of the fields taken as targets: from the contract, else by the usual names and places."""

    @property
    def ok(self) -> tuple[SampleRead, ...]:
        """The samples that came out."""
        return tuple(read for read in self.reads if read.outcome == "ok")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CollateTrial(Evidence):
    """Chosen samples joined by the loader's own collate function, without workers."""

    collate: str
    """Name of the function, with file and line if it is the user's own."""
    is_default: bool
    """True for torch's default rules."""
    sample_ids: tuple[SampleId, ...]
    """The samples that were joined; all of them were readable alone."""
    succeeded: bool
    """True if a batch came out."""
    error_type: str | None = None
    error_message: str | None = None
    error_at: str | None = None
    odd_ids: tuple[SampleId, ...] = ()
    """Samples that do not join with the first one, each tried in a pair with it."""
    batch_fields: tuple[ValueView, ...] = ()
    """What the batch is."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoaderFacts(Evidence):
    """What the loader says of itself, without loading anything."""

    kind: str
    """Class of the loader or data set, e.g. `torch.utils.data.DataLoader`."""
    is_iterable: bool
    """True for an iterable (stream) data set: no random access."""
    num_samples: int | None
    """`len(dataset)`; None: it has none."""
    batch_size: int | None
    """None: no automatic batching, or a batch sampler of the user's own."""
    drop_last: bool
    num_batches: int | None
    """`len(loader)`; None: it has none."""
    num_workers: int
    collate: str | None
    """Name of the collate function; None for a bare data set."""
    role: Literal["train", "evaluation"] | None = None
    """By its name in TARGET, or because it shuffles; None: not known."""
    persistent_workers: bool = False
    start_method: str | None = None
    """fork, spawn or forkserver: how its workers are started, or would be; None: not known."""
    yields_nothing: bool = False
    """True for a stream whose pass was walked and was over before the first sample."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One breach of a contract."""

    sample_id: SampleId | None
    """None: the data set or a batch as a whole."""
    field: str | None
    expected: str
    found: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ContractCheck(Evidence):
    """The chosen samples and their batch held against a contract."""

    contract: str
    """Where the contract comes from: a file name."""
    num_checked: int
    violations: tuple[Violation, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStreams(Evidence):
    """What each worker of a loader over an iterable data set yields, compared with one process, by content digests."""

    num_workers: int
    per_worker: tuple[int, ...]
    """Samples that each worker yielded within the limit."""
    num_single: int
    """Samples that one process yields within the limit."""
    num_duplicated: int
    """Samples that more than one worker yielded and that one process yields fewer times."""
    first_duplicate: str | None
    """Digest and place of the first one."""
    is_complete: bool
    """True if the streams ended within the limit; else only their beginnings were compared."""
    num_own_workers: int | None = None
    """Workers that the loader itself asks for; 0: `num_workers` is the doctor's; None: not told apart."""
