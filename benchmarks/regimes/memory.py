"""memory: the million paths of `start`, two workers, three epochs: the highest memory of all processes together."""

from __future__ import annotations

from benchmarks.libraries import TORCH, headrace_sides, torch_sides
from benchmarks.regime import Regime
from benchmarks.regimes.start import BATCH, Paths

SETTINGS = {"2 workers": TORCH["2 workers"]}

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
            *headrace_sides(Paths, BATCH, {"auto": {"num_workers": "auto"}, **SETTINGS}),
            *torch_sides(Paths, BATCH, SETTINGS),
        ),
    )
]
