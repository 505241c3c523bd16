"""Chooses who executes, while the loop runs: `num_workers="auto"`.

    AutoRunner ──observations──▶ Governor ──next setting──▶ AutoRunner
    (runs, measures, switches)   (decides; pure)

`governor` decides and knows no clock, thread or process; `auto` runs orders under one setting after another;
`lock_probe` finds out whether two threads of one process would run at once; `sizes` says what a batch weighs.
Only who executes changes. Which sample comes when, and what is made of it, is fixed by the orders.
"""

from headrace.engine.governor.auto import AutoRunner
from headrace.engine.governor.governor import Governor, Limits, Observation, Setting

__all__ = ["AutoRunner", "Governor", "Limits", "Observation", "Setting"]
