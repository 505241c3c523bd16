"""A machine that is made up: each setting has a true speed, each round its noise, and time passes by rounds."""

from __future__ import annotations

import math

import numpy as np

from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.model import Proof
from headrace.doctor.tuning.trial import Trial


class MadeUpMachine:
    """Rates by number of workers; `noise` is the standard deviation of a round's log rate, `drift` its change per round."""

    def __init__(self, rates, *, present=2, noise=0.02, drift=0.0, seed=0):
        self.rates, self.present, self.noise, self.drift = rates, present, noise, drift
        self.draws = np.random.default_rng(seed)
        self.rounds: list[Setting] = []

    def true_rate(self, setting: Setting) -> float:
        number = self.present if setting.num_workers is None else setting.num_workers
        return self.rates[number]

    def __call__(self, setting: Setting) -> Trial:
        self.rounds.append(setting)
        log = math.log(self.true_rate(setting)) + self.draws.normal(0, self.noise) + self.drift * len(self.rounds)
        return Trial(setting=setting, kind="L", rate_per_s=math.exp(log), began_s=float(len(self.rounds)))


class MadeUpRig:
    """A rig on such a machine: rounds take made-up seconds, the loop goes at the speed of the slower of loader and step."""

    def __init__(
        self,
        facts,
        rates,
        *,
        compute=None,
        budget=300.0,
        round_s=1.5,
        noise=0.01,
        proofs=None,
        memories=None,
        failures=None,
        seed=0,
        slow_from=10**9,
        kinds_that_fail=(),
        late_above=None,
    ):
        self.late_above = late_above
        self.compared: list[int | None] = []
        self.kinds_that_fail = kinds_that_fail
        self.slow_from = slow_from
        self.facts, self.compute, self.round_s = facts, compute, round_s
        self.machine = MadeUpMachine(rates, present=facts.present.num_workers, noise=noise, seed=seed)
        self.proofs, self.memories, self.failures = proofs or {}, memories or {}, failures or {}
        self.left_s = budget
        self.measured: list[tuple[str, Setting]] = []
        self.proven: list[Setting] = []

    def _number(self, setting):
        return self.facts.under(setting).num_workers

    def ask(self):
        return self.facts

    def measure(self, kind, setting, *, window_s):
        self.left_s -= self.round_s - 1 + window_s + (8 if len(self.measured) > self.slow_from else 0)
        self.measured.append((kind, setting))
        number = self._number(setting)
        if kind in self.kinds_that_fail:
            return Trial(setting=setting, kind=kind, rate_per_s=None, failure="no")
        if number in self.failures:
            return Trial(setting=setting, kind=kind, rate_per_s=None, failure=self.failures[number])
        supply = self.machine(Setting(num_workers=number) if number is not None else setting).rate_per_s
        rate = {"L": supply, "C": self.compute, "I": min(supply, self.compute or math.inf)}[kind]
        waits = None if kind != "I" else 0.0 if supply > self.compute else 0.9
        return Trial(
            setting=setting, kind=kind, rate_per_s=rate, began_s=-self.left_s, starved_share=waits, p99_wait_s=waits
        )

    def prove(self, setting, *, budget_s, max_samples):
        self.proven.append(setting)
        self.compared.append(max_samples)
        if self.late_above is not None and (max_samples or math.inf) > self.late_above:
            self.left_s -= min(20, budget_s)
            return Proof(same_data="unproven", says="its share of the budget was spent", is_unfinished=True)
        self.left_s -= min(budget_s, 5.0)
        return self.proofs.get(self._number(setting), Proof(same_data="proven", says="proven E0-E4"))

    def memory(self, setting, *, window_s):
        del window_s
        self.left_s -= self.round_s
        return self.memories.get(self._number(setting)), None
