"""The result as text: the verdict first, then what was tried, then the change and its way back."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.model import TriedRow, Tuning
from headrace.doctor.wording.paragraphs import labelled

__all__ = ["render", "verdict_line"]

MOST_FLAT = 6


def verdict_line(found: Tuning) -> str:
    """Returns one sentence: keep it, or what to change and what that brings, or why it cannot be said."""
    choice = found.choice
    if choice.outcome == "inconclusive":
        return f"inconclusive: {choice.why}"
    if choice.outcome == "keep":
        shortfall = "" if choice.meets_need is not False else ", but it does not meet the need"
        return f"keep what you have: {choice.why}{shortfall}"
    (row,) = (row for row in found.tried if row.setting == choice.setting)
    gain = "" if found.gain is None else f": {found.gain.percent}{_what(found)}"
    proof = "" if row.proof is None else f", data {row.proof.says}"
    return f"{found.says}{gain}{proof}"


def _what(found: Tuning) -> str:
    return " samples/s of the loop" if found.consumer != "no training step" else " samples/s of the loader alone"


def render(found: Tuning, *, width: int = 80) -> str:
    """Returns the whole text."""
    lines = [*labelled("VERDICT", verdict_line(found), width), ""]
    choice = found.choice
    if choice.outcome == "change":
        lines += labelled("why", choice.why, width)
    for one in choice.binding:
        lines += labelled("binds", one, width)
    if choice.binding:
        lines += labelled("do", f"headrace measure {found.spec} says which stage limits it", width)
    if choice.simpler is not None:
        lines += labelled("simpler", _simpler(found, choice.simpler), width)
    lines += labelled("loader", _loader(found), width)
    lines += labelled("need", _need(found), width)
    lines += ["", *_table(found, width)]
    lines += list(_notes(found, width))
    lines += list(_change(found, width))
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


def _simpler(found: Tuning, setting: Setting) -> str:
    says = found.facts.describe(setting)
    if any(row.setting == setting and row.proof is not None for row in found.tried):
        return f"{says} would do as well"
    check = ""
    if setting == Setting(num_workers=setting.num_workers):
        pair = f"{found.facts.present.num_workers},{setting.num_workers}"
        check = f"; headrace compare {found.spec} --workers {pair} says whether its data are the same"
    return f"{says} seems to do as well, by one round{check}"


def _loader(found: Tuning) -> str:
    now = found.facts.present
    knobs = f", {now.name}" if now.name != "as it is" else ""
    return f"{found.spec}  ({found.facts.kind}{knobs})"


def _need(found: Tuning) -> str:
    need = found.need
    if need is None:
        return "not known: no training step and no --need was given, so the fastest was looked for"
    if need.source == "given":
        return f"{need.rate_per_s:,.0f} samples/s, as given"
    return f"{need.rate_per_s:,.0f} samples/s: {need.source} takes {need.compute_per_s or 0:,.0f}, and {found.margin:.0%} more"


def _table(found: Tuning, width: int) -> Iterator[str]:
    has_loop = any(row.loop_per_s is not None for row in found.tried)
    blocks = f", {found.num_blocks} interleaved blocks" if found.num_blocks else ""
    floor = f", noise floor {found.floor:.1%}" if found.floor is not None else ""
    yield f"TRIED    samples/s{blocks}{floor}"
    head = [
        "setting",
        "loader",
        *(["loop"] if has_loop else []),
        "vs now",
        *(["waiting"] if has_loop else []),
        "memory",
        "same data",
    ]
    body = [_cells(found, row, has_loop=has_loop) for row in found.tried if not row.failure]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    yield _line("  ", head, widths)
    shown = [row for row in found.tried if not row.failure]
    for row, cells in zip(shown, body, strict=True):
        mark = "> " if found.choice.outcome == "change" and row.setting == found.choice.setting else "  "
        line = _line(mark, cells, widths)
        yield line
        if row.proof is not None and row.proof.same_data != "proven":
            yield from textwrap.wrap(row.proof.says, width, initial_indent="      ", subsequent_indent="      ")


def _line(mark: str, cells: list[str], widths: list[int]) -> str:
    first, *rest = (
        cell.ljust(width) if place == 0 or place == len(cells) - 1 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return mark + "  ".join([first, *rest])


def _cells(found: Tuning, row: TriedRow, *, has_loop: bool) -> list[str]:
    del found
    gain = "-" if row.gain is None else row.gain.percent if row.speed != "same" else "same"
    memory = "-" if row.memory_bytes is None else f"{row.memory_bytes / 2**20:,.0f} MiB"
    data = {"proven": "yes", "differs": "no", "unproven": "not proven"}.get(
        "" if row.proof is None else row.proof.same_data, "-"
    )
    waiting = "-" if row.starved_share is None else f"{row.starved_share:.0%}"
    return [
        row.says,
        _rate(row.supply_per_s),
        *([_rate(row.loop_per_s)] if has_loop else []),
        gain,
        *([waiting] if has_loop else []),
        memory,
        data,
    ]


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _notes(found: Tuning, width: int) -> Iterator[str]:
    if found.flat:
        more = f" and {len(found.flat) - MOST_FLAT} more" if len(found.flat) > MOST_FLAT else ""
        yield from labelled("flat", f"tried, and no faster: {'; '.join(found.flat[:MOST_FLAT])}{more}", width)
    for row in found.tried:
        if row.failure:
            yield from labelled("not run", f"{row.says}: {row.failure}", width)
    for one in found.left_out:
        yield from labelled("left out", one, width)
    if found.is_emulated:
        yield from labelled("note", "the training step was emulated: --train train.py:train_step measures yours", width)
    if found.noise in {"noisy", "loud"}:
        yield from labelled(
            "note", "the machine was busy with other things: on a quiet one the intervals are narrower", width
        )
    yield from labelled("time", f"{found.used_s:.0f} s of {found.budget_s:.0f} s, seed {found.seed}", width)


def _change(found: Tuning, width: int) -> Iterator[str]:
    edit = found.edit
    if edit is None:
        return
    yield ""
    yield from labelled("CHANGE", edit.line, width)
    yield from labelled("back", edit.back, width)
    if edit.refused:
        yield from labelled("by hand", f"the file is not changed by headrace: {edit.refused}", width)
        return
    yield ""
    yield from edit.diff.rstrip("\n").split("\n")
    yield ""
    if found.applied:
        yield from labelled("applied", f"{edit.where}: changed, loaded again, and set as wanted", width)
    else:
        yield from labelled("do", f"headrace tune {found.spec} ... --apply writes it", width)
