"""A machine that is made up: each setting has a true speed, each round its noise, and time passes by rounds."""

from __future__ import annotations

import math

import numpy as np

from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.trial import Trial


class MadeUpMachine:
    """Rates by number of workers; `noise` is the standard deviation of a round's log rate, `drift` its change per round."""

    def __init__(self, rates, *, present=2, noise=0.02, drift=0.0, seed=0):
        self.rates, self.present, self.noise, self.drift = rates, present, noise, drift
        self.draws = np.random.default_rng(seed)
        self.rounds: list[Setting] = []

    def true_rate(self, setting: Setting) -> float:
        return self.rates[self.present if setting == AS_IT_IS else setting.num_workers]

    def __call__(self, setting: Setting) -> Trial:
        self.rounds.append(setting)
        log = math.log(self.true_rate(setting)) + self.draws.normal(0, self.noise) + self.drift * len(self.rounds)
        return Trial(setting=setting, kind="L", rate_per_s=math.exp(log), began_s=float(len(self.rounds)))
