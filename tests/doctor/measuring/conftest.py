"""Made-up worlds, measured."""

import pytest

from headrace.doctor.measuring.assemble import Found, assemble
from headrace.doctor.meters.page_cache import CacheLabel
from headrace.doctor.meters.preflight import look_before


@pytest.fixture(scope="session")
def measured():
    """Returns the measurement of a world; `changes` are those of what is known beside its rounds."""

    def run(world, *, seed=0, num_blocks=3, label="warm-verified", **changes):
        known = {
            "spec": "train.py:make_loader",
            "command": "headrace measure train.py:make_loader --train train.py:train_step",
            "created": "2026-01-02T03:04:05",
            "kind": "torch.utils.data.DataLoader",
            "num_samples": 8000,
            "batch_size": world.batch_size,
            "num_workers": world.num_workers,
            "num_batches": world.num_batches,
            "is_persistent": world.is_persistent,
            "consumer": "train.py:train_step",
            "is_emulated": False,
            "seed": 0,
            "budget_s": 60.0,
            "used_s": 50.0,
            "preflight": look_before(),
            "cache": CacheLabel(label=label, before=1.0, after=1.0, why=None),
        }
        found = Found(**known | changes)
        return assemble(found, world.rounds(num_blocks=num_blocks, seed=seed, has_step=found.consumer is not None))

    return run
