"""headrace's own loader over a plan with a random stage."""
import numpy as np

import headrace as hr

DATA = {"x": np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32), "y": np.arange(200) % 4}


def jitter(sample, rng):
    return {**sample, "x": sample["x"] + rng.normal(0, 0.01, 6).astype(np.float32)}


def make_loader():
    return hr.DataLoader(hr.arrays(DATA).map(jitter), batch_size=20, shuffle=True, num_workers=2, seed=3)
