"""The plot of memory over time."""

from __future__ import annotations

from typing import Any

from headrace.doctor.measuring.model import Measurement
from headrace.doctor.report.svg import ACCENT, CLEAN, INFO, WARNING, draw_svg

__all__ = ["plot_memory"]


def plot_memory(m: Measurement) -> str | None:
    """Mapped memory by kind, and shared memory that nobody has mapped, one on top of the other."""
    moments = [] if m.memory is None else [one for one in m.memory.series.moments if one.anon_bytes is not None]
    if len(moments) < 2:
        return None
    kinds = {
        "heaps and stacks": [one.anon_bytes or 0 for one in moments],
        "mapped files": [one.file_bytes or 0 for one in moments],
        "shared, mapped": [one.shmem_bytes or 0 for one in moments],
        "shared, not mapped": [one.unmapped_shm_bytes or 0 for one in moments],
    }

    def draw(axes: Any) -> None:
        times = [one.at_s - moments[0].at_s for one in moments]
        mib = [[value / 2**20 for value in values] for values in kinds.values()]
        axes.stackplot(times, *mib, labels=list(kinds), colors=[ACCENT, CLEAN, INFO, WARNING], alpha=0.8)
        axes.legend(loc="upper left", frameon=False, ncols=2, fontsize=8, labelcolor="#010203")
        axes.set_ylim(0, 1.35 * max(map(sum, zip(*mib, strict=True))))
        axes.set_xlabel("seconds")
        axes.set_ylabel("MiB, all processes")

    return draw_svg(draw, height_in=2.4, salt="memory", grid="y")
