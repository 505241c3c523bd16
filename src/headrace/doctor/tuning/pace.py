"""How long rounds take, what still fits into the budget, and the rounds themselves."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable

from headrace.doctor.statistics.schedule import fewest_blocks, num_rounds
from headrace.doctor.timing.setting import Setting
from headrace.doctor.timing.timed import Kind
from headrace.doctor.tuning.choice import Limits
from headrace.doctor.tuning.confirmation import Plan, plan
from headrace.doctor.tuning.rig import Rig
from headrace.doctor.tuning.trial import Trial

__all__ = ["HOPE", "LEAST_WINDOW_S", "NUM_SUPPLY", "Pace", "Wishes"]

NUM_SUPPLY = 4
"""Fresh rounds of the loader alone for each finalist; the loop's own rounds are many more."""
PROOF_SHARE, RESERVE = 0.1, 0.03
"""Parts of the budget for each proof, and in which nothing is begun."""
LEAST_START_S, NUM_CHILDREN = 3.0, 5
"""Of a proof: seconds for its imports, processes and reads at least, and how many processes it starts."""
WALKS, DIGEST_S, HASHED_PER_S = 12.0, 2e-4, 5e8
"""A proof walks six epochs at most. Each sample costs what the loader takes for it, in walks that are hooked, and so are no
faster than half its rate; for each it digests the fields: seconds for one sample, and bytes per second."""
RANKING = 0.5
"""Rounds that only rank settings may be shorter by so much."""
LEAST_WINDOW_S = 0.4
"""Seconds of a steady part: shorter ones are all noise."""
WHOLE = 1.0
"""Seconds that a round takes less if its steady part is to be a second shorter: at least so many."""
HOPE = 1.3
"""Estimates err: only a budget that is shorter than what is needed by more than that is given up at once."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is wanted."""

    need_per_s: float | None
    """Samples per second that were asked for; None: the training step says, or nothing does."""
    has_step: bool
    """True: there is a training step, given or emulated."""
    step_name: str
    margin: float
    """What the loader should supply more than the training step takes, as a share."""
    budget_s: float
    workers_max: int | None
    limits: Limits
    seed: int
    window_s: float
    """Seconds of the steady part of a round."""


class Pace:
    """Runs rounds, and knows what they cost."""

    def __init__(self, rig: Rig, wishes: Wishes, say: Callable[[str], None]) -> None:
        self.rig, self.wishes, self.say = rig, wishes, say
        self._spent: list[tuple[float, float]] = []
        """(seconds of the steady part that were wanted, seconds that the round took)."""

    def measure(self, kind: Kind, setting: Setting, doing: str, window_s: float | None = None) -> Trial:
        """Runs one round; says what is being done and how much time is left."""
        left_s, window_s = self.rig.left_s, window_s or self.wishes.window_s
        self.say(f"{doing}, {left_s:.0f} s left")
        trial = self.rig.measure(kind, setting, window_s=window_s)
        self._spent.append((window_s, left_s - self.rig.left_s))
        return trial

    @property
    def search_window_s(self) -> float:
        """Seconds of the steady part where rounds only rank."""
        return max(RANKING * self.wishes.window_s, LEAST_WINDOW_S)

    @property
    def start_s(self) -> float:
        """Seconds of a proof before anything is walked: its processes, imports and reads."""
        starts = [took_s - window_s for window_s, took_s in self._spent]
        return max(LEAST_START_S, NUM_CHILDREN * statistics.fmean(starts)) if starts else LEAST_START_S

    def rest_s(self, num_finalists: int) -> float:
        """Seconds that are needed from a proof on, to confirm so many settings."""
        loop = num_rounds(num_finalists, fewest_blocks(num_finalists))
        weighed = (num_finalists + 1) * (1 + (NUM_SUPPLY if self.wishes.has_step else 0))
        return self.proof_s + (loop + weighed) * self.round_s()

    @property
    def proof_s(self) -> float:
        """Seconds that a proof may take."""
        return max(PROOF_SHARE * self.wishes.budget_s, 2 * self.start_s)

    def most_proof_s(self, num_finalists: int) -> float:
        """Seconds after which a proof is left: all that the confirmation of so many settings does not need.

        Of the first one half of what is left in any case: without a proof there is nothing to confirm.
        """
        left_s = self.rig.left_s - RESERVE * self.wishes.budget_s
        spare_s = left_s - (self.rest_s(num_finalists) - self.proof_s)
        return max(self.proof_s, spare_s, 0.5 * left_s if num_finalists == 1 else 0.0)

    def num_compared(self, rate_per_s: float, sample_bytes: float) -> int:
        """Samples of each epoch that a proof can walk in its time.

        Args:
            rate_per_s: Samples per second of the slower of the two settings.
            sample_bytes: Of one sample.
        """
        each_s = WALKS / max(rate_per_s, 1e-9) + 0.5 * WALKS * (DIGEST_S + sample_bytes / HASHED_PER_S)
        return int(max(self.proof_s - self.start_s, 1.0) / each_s)

    def plan(self, num_wanted: int) -> tuple[Plan, float]:
        """How many finalists, in how many blocks, and how long the steady part of each round is to be."""
        left_s = self.rig.left_s - RESERVE * self.wishes.budget_s
        windows = [one for share in (1.0, 0.5, 0.25) if (one := share * self.wishes.window_s) > LEAST_WINDOW_S]
        # Estimates err: one is tried in any case.
        found = Plan(num_finalists=1, num_blocks=fewest_blocks(1)), LEAST_WINDOW_S
        for number in range(1, num_wanted + 1):
            for window_s in (*windows, LEAST_WINDOW_S):
                fits = plan(number, left_s=left_s, round_s=self.round_s(window_s))
                if fits.num_finalists == number:
                    found = fits, window_s
                    break
        return found

    def round_s(self, window_s: float = LEAST_WINDOW_S) -> float:
        """Seconds of a round with its start, if its steady part is to be so long; from the rounds so far."""
        if not self._spent:
            return 2 * window_s
        return statistics.fmean(max(took_s - WHOLE * (had_s - window_s), 0.2 * took_s) for had_s, took_s in self._spent)

    def has_time(self, leaves_s: float = 0.0) -> bool:
        """True if something may be begun, and so many seconds are left after it."""
        return self.rig.left_s > leaves_s + RESERVE * self.wishes.budget_s
