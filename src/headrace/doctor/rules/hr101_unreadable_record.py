"""HR101 unreadable-record: samples that cannot be prepared at all."""

from __future__ import annotations

import dataclasses
import pathlib

from headrace.doctor.evidence import OpenedFile, SampleRead, SampleReads
from headrace.doctor.made_up import failed, file, image, label, ok, opened, reads
from headrace.doctor.questions.file_heads import content_of, is_another_format, pointer_in
from headrace.doctor.questions.samples import grouped
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import named, quoted, share, verb

DECODER_ERRORS = frozenset({
    "BadGzipFile", "BadZipFile", "EOFError", "OSError", "SyntaxError", "UnidentifiedImageError", "UnpicklingError",
    "error",  # of zlib, struct and cv2
})  # fmt: skip
"""Exceptions by which decoders refuse a file; Pillow raises SyntaxError for a broken PNG."""

CUT_OFF_WORDS = ("truncated", "unexpected end", "premature end", "end of file", "no data left")


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """Why one sample could not be prepared."""

    kind: str
    """Samples of one kind make one finding."""
    text: str
    where: str | None
    is_file: bool = True
    """True if the file is to blame, False if code is."""


class UnreadableRecord(Rule):
    """HR101."""

    code = "HR101"
    name = "unreadable-record"
    summary = "Samples that cannot be prepared: missing, empty, cut-off or damaged files, exceptions, crashes."
    rationale = """
        One bad record ends a run, often hours after it began, because shuffling decides when it is met. The traceback
        then names a worker and a decoder, but neither the sample nor the file. Usual causes: a download that was cut
        off, a web server's error page saved under an image's name, files that were listed and then deleted, a
        `__len__` that promises more rows than there are.

        An exception of your own code is reported too, with its place. An `IndexError` inside `__getitem__` deserves
        special care: a plain `for` loop over the data set takes it for the end and stops without a word.

        It is no fault if the data set itself leaves such samples out: then they never reach this check. Files that
        hold a pointer of git-lfs or DVC are HR102, and samples that come out when they are read again are HR112.
        """
    experiment = """
        Each chosen sample is prepared alone in a child process that notes the id before it starts, so that even a
        crash of the interpreter names its sample. Nothing is changed.
        """
    needs = (SampleReads,)
    fix = Fix(
        text="Fetch or write the files again, or take their rows out of the index. To train on without them, let the "
        "loader leave them out: each is counted and listed by id.",
        safety="leaving samples out changes which samples are delivered; mending the files does not",
        snippet="import headrace as hr\n\n"
        "policy = hr.Skip(max_rate=0.001)\n"
        "loader = hr.DataLoader(dataset, batch_size=64, on_error=policy)",
    )
    references = (
        "stylegan2-pytorch#7",
        "detectron2#143",
        "vision#138",
        "AdvDrop#5",
        "SKU110K_CVPR19#23",
        "pytorch#82732",
    )

    def judge(self, seen: SampleReads) -> list[Finding]:
        """One finding for each kind of cause."""
        broken = [
            read
            for read in seen.reads
            if read.outcome in {"error", "crashed"} and pointer_in(read) is None and not read.is_by_chance
        ]
        beyond = _first_row_beyond(seen, broken)
        if beyond is not None:
            found = [_beyond_the_end(beyond, [read for read in broken if read.index >= beyond], seen)]
            broken = [read for read in broken if read.index < beyond]
        else:
            found = []
        kinds = grouped((_cause(read).kind, read) for read in broken)
        return found + [_finding(members, seen) for members in kinds.values()]

    sick = (
        Example(
            title="A download that was cut off",
            evidence=(
                reads(
                    ok(image(3, 16, 16)),
                    failed(
                        "OSError",
                        "image file is truncated (5 bytes not processed)",
                        stage="decode",
                        files=(opened("data/4/0007.jpg", size_bytes=8_192),),
                        sample_id="4/0007.jpg",
                        path="data/4/0007.jpg",
                    ),
                ),
            ),
            message="1 of 2 samples cannot be read (sample 4/0007.jpg): the file is cut off (OSError: image file is "
            "truncated (5 bytes not processed))",
            sample_ids=("4/0007.jpg",),
        ),
        Example(
            title="An error page saved as an image",
            evidence=(
                reads(
                    failed(
                        "UnidentifiedImageError",
                        "cannot identify image file 'a.png'",
                        files=(opened("a.png", size_bytes=512, head=b"<!DOCTYPE html>\n<html>"),),
                    ),
                    ok(image(3, 16, 16)),
                    ok(image(3, 16, 16)),
                    num_samples=900,
                ),
            ),
            message="1 of 3 examined samples cannot be read (sample 0): the file is named .png but holds an HTML page",
            sample_ids=(0,),
        ),
        Example(
            title="An exception of the user's own code",
            evidence=(
                reads(
                    ok(image(3, 16, 16)),
                    failed("KeyError", "'bbox'", stage="transform", error_at="aug.py:41 in crop"),
                    failed("KeyError", "'bbox'", stage="transform", error_at="aug.py:41 in crop"),
                ),
            ),
            message="2 of 3 samples raise KeyError in stage transform (first sample 1): 'bbox'",
            sample_ids=(1, 2),
        ),
        Example(
            title="A decoder that takes the interpreter down",
            evidence=(reads(failed("SIGSEGV", stage="decode", outcome="crashed"), ok(image(3, 16, 16))),),
            message="1 of 2 samples ends the interpreter in stage decode (sample 0): SIGSEGV",
            sample_ids=(0,),
        ),
        Example(
            title="A path that no file can have",
            evidence=(
                reads(
                    ok(image(3, 16, 16)),
                    failed(
                        "OSError", "[Errno 36] File name too long", files=(opened("x.png", size_bytes=None, head=b""),)
                    ),
                ),
            ),
            message="1 of 2 samples cannot be read (sample 1): the file cannot be opened (OSError: [Errno 36] File name "
            "too long)",
            sample_ids=(1,),
        ),
        Example(
            title="A length that promises too much",
            evidence=(
                reads(
                    ok(label(1)),
                    ok(label(0)),
                    failed("IndexError", "list index out of range"),
                    failed("IndexError", "list index out of range"),
                ),
            ),
            message="len(dataset) is 4, but every examined row from 2 on raises IndexError: list index out of range",
            sample_ids=(2, 3),
        ),
    )
    healthy = (
        Example(title="Everything can be prepared", evidence=(reads(ok(image(3, 16, 16)), ok(image(3, 16, 16))),)),
        Example(
            title="A PNG named .jpg that decodes all the same, beside an empty annotation file",
            evidence=(
                reads(
                    ok(
                        image(3, 16, 16),
                        files=(opened("a.jpg", head=b"\x89PNG"), opened("a.txt", size_bytes=0, head=b"")),
                        images=(file("RGB"),),
                    )
                ),
            ),
        ),
        Example(
            title="A pointer file: that is HR102",
            evidence=(
                reads(
                    failed(
                        "UnidentifiedImageError",
                        files=(opened("a.png", size_bytes=130, head=b"version https://git-lfs.github.com/spec/v1"),),
                    )
                ),
            ),
        ),
    )


def _first_row_beyond(seen: SampleReads, broken: list[SampleRead]) -> int | None:
    """The first examined row of an unbroken run of IndexErrors up to the last row; None if there is no such run."""
    if seen.is_stream:
        return None
    bad_rows = {read.index for read in broken}
    last_good = max((read.index for read in seen.reads if read.index not in bad_rows), default=None)
    tail = [read for read in broken if last_good is not None and read.index > last_good]
    reaches_end = any(read.index == seen.num_samples - 1 for read in tail)
    return min(read.index for read in tail) if reaches_end and all(r.error_type == "IndexError" for r in tail) else None


def _cause(read: SampleRead) -> Cause:
    """Why this sample could not be prepared, with the file to blame where there is one."""
    message = quoted(read.error_type, read.error_message)
    if read.outcome == "crashed":
        return Cause("crash", f"{read.error_type}", read.error_at or read.path, is_file=False)
    if read.error_type == "FileNotFoundError":
        return Cause("missing file", f"the file is not there ({message})", read.path or read.error_at)
    # The file that was opened last is the one in hand when the decoder gave up.
    opened_last = read.files[-1] if read.files and read.stage != "transform" else None
    if opened_last is not None and (kind := _fault_of_file(opened_last, read)) is not None:
        text = {
            "damaged": f"the decoder refuses the file ({message})",
            "cut off": f"the file is cut off ({message})",
            "closed": f"the file cannot be opened ({message})",
        }
        return Cause(kind, text.get(kind, f"the file is {kind}"), opened_last.path)
    at = read.error_at or read.path
    return Cause(
        f"{read.error_type} at {read.error_at or read.stage}", quoted(None, read.error_message), at, is_file=False
    )


def _fault_of_file(file: OpenedFile, read: SampleRead) -> str | None:
    """What is wrong with the file that was in hand; None if the exception does not look like a decoder's."""
    message = (read.error_message or "").lower()
    is_cut_off = any(word in message for word in CUT_OFF_WORDS)
    if read.error_type not in DECODER_ERRORS and not is_cut_off:
        return None
    if file.size_bytes is None:  # nothing is known of its content: a path that is too long, a device that is gone
        return "closed"
    if file.size_bytes == 0:
        return "empty (0 bytes)"
    if is_another_format(file) and not is_cut_off:
        return f"named {pathlib.PurePath(file.path).suffix} but holds {content_of(file.head) or 'something else'}"
    return "cut off" if is_cut_off or read.error_type == "EOFError" else "damaged"


def _finding(members: list[SampleRead], seen: SampleReads) -> Finding:
    """What to say of samples with one kind of cause."""
    first, cause = members[0], _cause(members[0])
    number = len(members)
    does = "cannot be read"
    if first.outcome == "crashed":
        does = f"{verb(number, 'ends', 'end')} the interpreter in stage {first.stage}"
    elif not cause.is_file:
        does = f"{verb(number, 'raises', 'raise')} {first.error_type} in stage {first.stage}"
    message = f"{share(number, seen)} {does} {named([read.sample_id for read in members])}"
    evidence = {
        "error_type": first.error_type,
        "error_message": first.error_message or None,
        "size_bytes": first.files[-1].size_bytes if first.files else None,
        "stack": None if cause.is_file else first.stack,
    }
    return Finding(
        message=f"{message}: {cause.text}" if cause.text else message,
        stage=first.stage,
        sample_ids=tuple(read.sample_id for read in members),
        where=cause.where,
        evidence={name: value for name, value in evidence.items() if value is not None},
        fix=None if cause.is_file else _fix_of_code(first, is_stream=seen.is_stream),
    )


def _fix_of_code(first: SampleRead, *, is_stream: bool) -> Fix:
    is_crash = first.outcome == "crashed"
    text = "Prepare this one sample in a fresh interpreter"
    text += (
        ", with faulthandler to see the native call."
        if is_crash
        else " and follow the traceback; nothing else is needed."
    )
    if first.error_type == "IndexError":
        text += " Until then a plain for loop over the data set stops here without a word, as if this were its end."
    return Fix(
        text=text,
        safety="only looks",
        snippet=("import faulthandler\n\nfaulthandler.enable()\n" if is_crash else "")
        + ("for _ in dataset:  # until it fails\n    pass" if is_stream else f"dataset[{first.index}]"),
    )


def _beyond_the_end(row: int, members: list[SampleRead], seen: SampleReads) -> Finding:
    """What to say of a length that promises rows that do not exist."""
    first = members[0]
    error = quoted(first.error_type, first.error_message)
    return Finding(
        message=f"len(dataset) is {seen.num_samples:,}, but every examined row from {row:,} on raises {error}",
        stage=first.stage,
        sample_ids=tuple(read.sample_id for read in members),
        where=first.error_at,
        evidence={"num_samples": seen.num_samples, "first_bad_row": row, "error": error},
        fix=Fix(
            text="Let __len__ return the number of rows that __getitem__ can answer.",
            safety="changes how many samples an epoch has, to those that exist",
            snippet="class MyDataset:\n    def __len__(self):\n        return len(self.records)  # what __getitem__ indexes",
        ),
    )
