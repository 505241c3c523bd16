"""resume: a run over a billion positions, resumed at half: how long until its first batch.

Peers that keep the order as a list are given a million positions, which is said in their names: a list of a billion
would take 8 GB and a minute.
"""

from __future__ import annotations

from typing import Any

from benchmarks.meter import clock
from benchmarks.regime import Regime, Side, Target, Work

BATCH = 64


class Headrace:
    """Position is arithmetic: nothing is listed or skipped."""

    def __init__(self, work: Work) -> None:
        self.num_positions = work.size["num_positions"]
        self.loader: Any = None

    def _loader(self) -> Any:
        import headrace as hr

        return hr.DataLoader(range(self.num_positions), batch_size=BATCH, shuffle=True, seed=0, num_workers="auto")

    def fresh(self) -> None:
        self.loader = self._loader()
        next(iter(self.loader))

    def resumed(self) -> None:
        loader = self._loader()
        loader.load_state_dict({**self.loader.state_dict(), "consumed": self.num_positions // 2})
        next(iter(loader))

    def state(self) -> Any:
        return self.loader.state_dict()


class Torch:
    """PyTorch's loader has no state: the usual way is to seed it as before and to let half of the epoch go by."""

    def __init__(self, work: Work) -> None:
        self.num_positions = work.size["num_listed"]

    def _iterator(self) -> Any:
        import torch
        import torch.utils.data

        generator = torch.Generator().manual_seed(0)
        data = range(self.num_positions)
        return iter(torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, generator=generator))

    def fresh(self) -> None:
        next(self._iterator())

    def resumed(self) -> None:
        iterator = self._iterator()
        for _ in range(self.num_positions // BATCH // 2):
            next(iterator)

    def state(self) -> None:
        """There is none to take."""


class Stateful:
    """torchdata's StatefulDataLoader."""

    def __init__(self, work: Work) -> None:
        self.num_positions = work.size["num_listed"]
        self.loader: Any = None

    def _loader(self) -> Any:
        import torch
        from torchdata.stateful_dataloader import StatefulDataLoader

        generator = torch.Generator().manual_seed(0)
        return StatefulDataLoader(range(self.num_positions), batch_size=BATCH, shuffle=True, generator=generator)

    def fresh(self) -> None:
        self.loader = self._loader()
        self.iterator = iter(self.loader)
        next(self.iterator)

    def resumed(self) -> float:
        for _ in range(self.num_positions // BATCH // 2):
            next(self.iterator)
        state = self.loader.state_dict()
        begin_s = clock()
        loader = self._loader()
        loader.load_state_dict(state)
        next(iter(loader))
        return clock() - begin_s

    def state(self) -> Any:
        return self.loader.state_dict()


class Grain:
    """Grain's order is arithmetic too."""

    def __init__(self, work: Work) -> None:
        self.num_positions = work.size["num_positions"]

    def _iterator(self) -> Any:
        import grain

        # Without threads: by default 16 of them would first read 500 batches ahead.
        ahead = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
        return iter(grain.MapDataset.range(self.num_positions).shuffle(seed=0).batch(BATCH).to_iter_dataset(ahead))

    def fresh(self) -> None:
        self.iterator = self._iterator()
        next(self.iterator)

    def resumed(self) -> None:
        iterator = self._iterator()
        iterator.set_state({**self.iterator.get_state(), "next_index": self.num_positions // BATCH // 2})
        next(iterator)

    def state(self) -> Any:
        return self.iterator.get_state()


REGIMES = [
    Regime(
        name="resume",
        title="1e9 positions, shuffled, resumed at half: first batch of 64",
        sizes={
            "full": {"num_positions": 10**9, "num_listed": 10**6},
            "tiny": {"num_positions": 10**7, "num_listed": 10**4},
        },
        make=lambda _: {},
        measure="resume",
        unit="ms to first batch",
        more_is_better=False,
        sides=(
            Side(
                name="headrace, auto",
                library="headrace",
                open=Headrace,
                imports=("torch.utils.data", "headrace.engine.loader"),
            ),
            Side(name="torch, 1e6 positions, half skipped", library="torch", open=Torch, imports=("torch.utils.data",)),
            Side(
                name="torchdata StatefulDataLoader, 1e6 positions",
                library="torchdata",
                open=Stateful,
                imports=("torchdata.stateful_dataloader",),
            ),
            Side(name="Grain", library="grain", open=Grain, imports=("grain",)),
        ),
        targets=(
            Target(side="headrace, auto", key="later_ms", at_most=50, unit="ms later than a fresh start"),
            Target(side="headrace, auto", key="state_us", at_most=5, unit="µs to take a state"),
        ),
    )
]
