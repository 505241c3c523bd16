"""memory: the million paths of `start`, two workers, three epochs: the highest memory of all processes together.

Our loader also reads them from a manifest, which is what its guide says to do with such a list.
"""

from __future__ import annotations

from benchmarks.libraries import HEADRACE, TORCH, headrace_sides, torch_sides
from benchmarks.regime import Regime, Target, Work
from benchmarks.regimes.start import BATCH, Paths, paths


class PackedPaths(Paths):
    """The same samples from `hr.Manifest` in place of the list."""

    def __init__(self, work: Work) -> None:
        import headrace as hr

        self.paths = hr.Manifest(paths(work.size["num_samples"]))


REGIMES = [
    Regime(
        name="memory",
        title="a list of 1,000,000 paths, 2 workers, three epochs: peak PSS and unmapped shared memory",
        sizes={"full": {"num_samples": 1_000_000}, "tiny": {"num_samples": 20_000}},
        make=lambda _: {},
        measure="three_epochs",
        unit="MiB at most",
        more_is_better=False,
        is_sampled=True,
        sides=(
            *headrace_sides(Paths, BATCH, HEADRACE),
            *headrace_sides(PackedPaths, BATCH, {"2 processes, hr.Manifest": HEADRACE["2 processes"]}),
            *torch_sides(Paths, BATCH, {"2 workers": TORCH["2 workers"]}),
        ),
        targets=tuple(
            target
            for side in ("headrace, 2 processes", "headrace, auto", "headrace, 2 processes, hr.Manifest")
            for target in (
                Target(side=side, against="torch, 2 workers", at_most=0.5),
                # Pages come and go: below one in a hundred of what a Python process weighs is none.
                Target(side=side, key="growth_mib", at_most=2, unit="MiB growth"),
            )
        ),
    )
]
