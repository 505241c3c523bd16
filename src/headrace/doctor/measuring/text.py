"""The measurement as text: the verdict first, then what to do, then the tables; a healthy loop gets few lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headrace.doctor.measuring.against import Against
from headrace.doctor.measuring.against_text import render_against
from headrace.doctor.measuring.model import CauseFound, Measurement, PlainRow
from headrace.doctor.measuring.wording import bytes_text, gain, milliseconds, percent, rate, seconds_text, share
from headrace.doctor.wording.paragraphs import LABEL, labelled

__all__ = ["render"]

BAR = 30
MOST_REMEDIES = 3
COLOURS = {"healthy": "1;32", "supply": "1;36", "limited": "1;31", "inconclusive": "1;33"}


def render(m: Measurement, *, width: int = 80, color: bool = False, against: Against | None = None) -> str:
    """Returns the whole text, ending with a line break.

    Args:
        m: What to show.
        width: Columns to wrap at, 80 to 120.
        color: True: the verdict is coloured.
        against: An earlier measurement that it was held against; None: none.
    """
    verdict = m.conclusion.verdict
    label = f"\x1b[{COLOURS[verdict]}mVERDICT\x1b[0m" if color else "VERDICT"
    lines = labelled("VERDICT", m.conclusion.sentence, width)
    lines[0] = label + lines[0][len("VERDICT") :]
    lines += labelled("settle", m.conclusion.settling, width) if m.conclusion.settling else []
    if against is not None:
        lines += ["", *render_against(against, width=width).splitlines()]
    for cause in m.conclusion.causes:
        lines += ["", *_cause(cause, width)]
    lines += ["", *_head(m, width)]
    lines += ["", *_plain(m, width)] if m.plain else []
    if m.decomposition is not None:
        lines += ["", *_step(m, width)]
    if verdict != "healthy":
        supply = list(_supply(m))
        lines += ["", *supply] if supply else []
        stages = list(_stages(m, width))
        lines += ["", *stages] if stages else []
        lines += ["", *_machine(m, width)]
    for one in m.left_out:
        lines += labelled("left out", one, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _cause(cause: CauseFound, width: int) -> Iterator[str]:
    """What limits, what it would win, what to do."""
    yield from labelled("cause", f"{cause.cause}: {cause.text}", width)
    won = f"{gain(cause.gain)} for the loop without it; " if cause.gain is not None else ""
    rounds = f"rounds {_listed(cause.evidence)}" if cause.evidence else ""
    yield from labelled("", f"{won}{cause.basis}: {rounds}".rstrip(": "), width)
    for number, one in enumerate(cause.remedy[:MOST_REMEDIES]):
        yield from labelled("do" if not number else "or", one, width)


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids) if len(ids) <= 6 else f"{', '.join(ids[:5])}, ... ({len(ids)})"


def _head(m: Measurement, width: int) -> list[str]:
    data = [
        m.kind.rpartition(".")[2],
        f"{m.num_samples:,} samples" if m.num_samples is not None else "",
        f"batch size {m.batch_size:,}" if m.batch_size is not None else "",
        f"{m.num_workers} worker{'' if m.num_workers == 1 else 's'}",
        f"step: {m.consumer}" if m.consumer else "no training step",
    ]
    machine = m.preflight.machine
    host = [
        f"{machine.usable_cores} of {machine.cores} cores",
        m.preflight.noise
        if machine.cpu_pressure is None
        else f"{m.preflight.noise} (cpu pressure {machine.cpu_pressure:.0f} %)",
        f"cache {_cache(m)}",
        f"used {m.used_s:.0f} of {m.budget_s:.0f} s, {len(m.runs)} rounds",
    ]
    return [
        *labelled("data", " | ".join(part for part in data if part), width),
        *labelled("host", " | ".join(host), width),
    ]


def _cache(m: Measurement) -> str:
    cache = m.scope.cache
    if cache.why:
        return f"{cache.label}: {cache.why}"
    parts = [f"{100 * one:.0f} %" for one in (cache.before, cache.after) if one is not None]
    return f"{cache.label} ({' to '.join(parts)} in memory)" if parts else cache.label


def _plain(m: Measurement, width: int) -> Iterator[str]:
    """The plain table, and what it comes to."""
    if not m.plain:
        return
    yield f"{'plain':<{LABEL}}{'workers':>7} {'epoch':>5} {'samples/s':>10} {'start':>8}   seconds of {_num_samples(m.plain)}"
    for row in m.plain:
        yield (
            f"{'':<{LABEL}}{row.num_workers:>7} {row.epoch:>5} {_number(row):>10} {seconds_text(row.start_s):>8}   "
            f"{' '.join(f'{one:.3g}' for one in row.seconds)}"
        )
    units = next((row for row in reversed(m.plain) if row.unit and row.units_per_s), None)
    if units is not None:
        padding = f", {percent(units.padding_share)} padding" if units.padding_share is not None else ""
        yield from labelled("", f"{units.num_workers} workers: {units.units_per_s:.3g} {units.unit}/s{padding}", width)
    for number, text in {row.num_workers: row.checked for row in m.plain if row.num_workers}.items():
        yield from labelled("", f"{number} workers, same data as without? {text}", width)
    yield from labelled("", f"{m.plain_says} Cache: {m.scope.cache.label}.", width)


def _number(row: PlainRow) -> str:
    values = sorted(row.rates_per_s)
    middle = values[len(values) // 2]
    return f"{middle:,.0f}" if middle >= 100 else f"{middle:.3g}"


def _num_samples(rows: Sequence[PlainRow]) -> str:
    numbers = sorted({row.num_samples for row in rows})
    return f"{numbers[0]:,} samples, each round" if len(numbers) == 1 else "each round"


def _step(m: Measurement, width: int) -> Iterator[str]:
    """Where the time of a step goes."""
    d = m.decomposition
    if d is None:
        return
    yield f"{'step':<{LABEL}}{milliseconds(d.total_s)}{', emulated' if m.is_emulated else ''}"
    parts = [
        ("compute", d.compute_s),
        ("transfer", d.transfer_s),
        ("interference", d.interference_s),
        ("waiting", d.waiting_s),
    ]
    for name, part in parts:
        if part is not None:
            bar = "#" * max(0, min(BAR, round(BAR * part.value / max(d.total_s.value, 1e-12))))
            yield f"{'':<{LABEL}}{name:<13}{milliseconds(part):<26}{bar}"
    if m.waiting is not None:
        waits = ", ".join(f"p{100 * one.quantile:g} {seconds_text(one.wait_s)}" for one in m.waiting.quantiles)
        yield from labelled(
            "waits",
            f"{share(m.waiting.share)} of the time; {waits}, longest {seconds_text(m.waiting.longest_s)}; "
            f"the worst 1 % of steps are {percent(m.waiting.tail_share)} of it",
            width,
        )
    noise = (
        ""
        if m.noise is None or not math.isfinite(m.noise.interval.high)
        else (f"; two equal settings: {_ratio(m.noise.interval.low)} to {_ratio(m.noise.interval.high)}")
    )
    yield from labelled(
        "use",
        f"{share(d.utilisation)} of the time is compute (MLPerf's accelerator utilisation, its line is 90 %); headroom "
        f"{share(d.headroom)}{noise}",
        width,
    )


def _ratio(value: float) -> str:
    return f"x{value:.2f}"


def _supply(m: Measurement) -> Iterator[str]:
    """What is needed, and what the loader supplies, on one axis."""
    rows = [(f"need (compute +{25} %)", m.need_per_s.value, None)] if m.need_per_s is not None else []
    for arm in m.arms:
        if arm.name == "L" or arm.name.startswith("L without"):
            name = "loader alone" if arm.name == "L" else arm.name.replace("L without", "  without")
            rows.append((name, arm.rounds.mean_per_s, arm.rounds.interval_per_s))  # type: ignore[arg-type]
    if not rows:
        return
    axis = 1.5 * max([row[1] for row in rows[:2]])
    yield f"{'supply':<{LABEL}}{'samples/s':>34}   cache {m.scope.cache.label}"
    for name, value, interval in rows:
        bar = "=" * round((BAR + 2) * min(1.0, value / axis)) + (">" if value > axis else "")
        yield f"{'':<{LABEL}}{name:<20}{rate(value, interval).replace(' samples/s', ''):>14}   {bar}"
    d = m.decomposition
    if d is not None and d.supply_ratio is not None:
        paired = "" if d.is_supply_paired else ", not paired: these rounds had no block in common"
        yield f"{'':<{LABEL}}supply over need {d.supply_ratio.value:.2f}{paired}"


def _stages(m: Measurement, width: int) -> Iterator[str]:
    if not m.stages:
        return
    yield f"{'stage':<{LABEL}}{'':<11}{'ms/sample':>9} {'cpu':>8} {'share':>6}  {'kind':<8} loader alone without it"
    for row in m.stages:
        cpu = "-" if row.cpu_ms is None else f"{row.cpu_ms:.3g}"
        won = "not tried" if row.gain is None else gain(row.gain)
        mark = " <- limit" if row.is_limit else ""
        yield (
            f"{'':<{LABEL}}{row.stage:<11}{row.wall_ms:>9.3g} {cpu:>8} {percent(row.share):>6}  {row.kind:<8} {won}{mark}"
        )
    if m.ceiling is not None and math.isfinite(m.ceiling.rate_per_s):
        told = f"by these times at most {rate(m.ceiling.rate_per_s)}; what is full then: {m.ceiling.binding}"
        yield from labelled("", told, width)


def _machine(m: Measurement, width: int) -> Iterator[str]:
    """Memory, and what one accelerator and several need."""
    if m.memory is not None and m.memory.series.peaks is not None:
        peaks = m.memory.series.peaks
        total = bytes_text(peaks.total_bytes) if peaks.total_bytes is not None else "not told"
        growth = f"; {m.memory.growth.verdict}" if m.memory.growth is not None else ""
        ahead = f", batches ahead up to {bytes_text(m.memory.ahead_bytes)}" if m.memory.ahead_bytes else ""
        yield from labelled("memory", f"at most {total} in {peaks.num_processes} processes{ahead}{growth}", width)
    for one in m.resources:
        workers = f", {one.workers} workers" if one.workers is not None else ""
        memory = f", {bytes_text(one.memory_bytes)}" if one.memory_bytes is not None else ""
        disk = f", {bytes_text(one.storage_bytes_per_s)}/s read" if one.storage_bytes_per_s else ""
        label = "needs" if one.num_accelerators == 1 else ""
        yield from labelled(
            label,
            f"x{one.num_accelerators}: {rate(one.samples_per_s)}, {one.cores:.2g} cores{workers}{memory}{disk}",
            width,
        )
