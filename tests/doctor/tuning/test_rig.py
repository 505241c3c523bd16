"""Real rounds and real proofs of real loaders; what is slow is slow by sleeping, by large factors."""

from __future__ import annotations

import pytest

from headrace.doctor.timing.consumer import Emulated
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.rig import LabRig
from headrace.doctor.tuning.tune import Options, tune
from headrace.errors import ConfigurationError, TargetError

FILE = """
import random, time
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

class Slow(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, row):
        time.sleep(0.02)
        return np.full(4, row, np.float32), row % 3

class Jitter(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, row):
        return np.full(4, row, np.float32) + random.random(), row % 3

class Feed(IterableDataset):
    def __iter__(self):
        for row in range(40):
            yield np.full(4, row, np.float32), row % 3

def slow(): return DataLoader(Slow(), batch_size=4)
def jitter(): return DataLoader(Jitter(), batch_size=4, shuffle=True)
def feed(): return DataLoader(Feed(), batch_size=4)
def tensors(): return DataLoader(TensorDataset(torch.arange(40.0)), batch_size=4, num_workers=2, prefetch_factor=3,
                                 persistent_workers=True, multiprocessing_context="spawn")
def broken():
    return DataLoader([1, None, 3], batch_size=4)
"""


@pytest.fixture
def rig(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    opened = []

    def make(name, consumer=None):
        opened.append(LabRig(f"{path}:{name}", consumer=consumer, budget_s=100.0, seed=0, say=lambda _: None))
        return opened[-1]

    yield make
    for one in opened:
        one.__exit__(None, None, None)


@pytest.mark.slow
def test_a_loader_says_what_it_is_set_to(rig):
    facts = rig("tensors").ask()
    assert facts.library == "torch"
    assert facts.can_read_batches
    assert (facts.num_samples, facts.batch_size, facts.num_batches) == (40, 4, 10)
    assert not facts.shares_generator, "nothing is shuffled"
    assert facts.present == Setting(
        num_workers=2, prefetch_factor=3, persistent_workers=True, pin_memory=False, start_method="spawn"
    )


@pytest.mark.slow
def test_workers_that_stay_shuffle_otherwise_and_deliver_the_same_samples(rig):
    jitter = rig("jitter")
    facts = jitter.ask()
    stay = Setting(num_workers=2, persistent_workers=True)
    assert facts.reshuffles(stay)
    assert not facts.reshuffles(Setting(num_workers=2))
    proof = jitter.prove(stay, budget_s=60.0, max_samples=None)
    assert proof.same_data == "proven"
    assert proof.says.startswith("proven E0, E2")
    assert proof.says.endswith("from the second epoch on another shuffle under the same seed")


@pytest.mark.slow
def test_workers_that_sleep_beside_each_other_are_faster(rig):
    slow = rig("slow", Emulated(step_s=0.001))
    slow.ask()
    alone = slow.measure("L", AS_IT_IS, window_s=0.4)
    four = slow.measure("L", Setting(num_workers=4), window_s=0.4)
    assert 20 < alone.rate_per_s <= 50
    assert four.rate_per_s > 1.5 * alone.rate_per_s
    loop = slow.measure("I", AS_IT_IS, window_s=0.4)
    assert loop.starved_share == 1.0, "without workers every step waits for 80 ms"
    assert loop.p99_wait_s > 0.079


@pytest.mark.slow
def test_memory_is_that_of_the_run(rig):
    slow = rig("slow")
    total, _ = slow.memory(Setting(num_workers=1), window_s=0.4)
    assert total is None or total > 10 * 2**20


@pytest.mark.slow
def test_a_setting_that_cannot_be_is_a_failure_with_its_reason(rig):
    trial = rig("slow").measure("L", Setting(runner="threads"), window_s=0.4)
    assert trial.rate_per_s is None
    assert "runner='threads'" in trial.failure


@pytest.mark.slow
def test_random_fields_are_proven_by_the_policy_that_is_named(rig):
    proof = rig("jitter").prove(Setting(num_workers=2), budget_s=60.0, max_samples=None)
    assert proof.same_data == "proven"
    assert "by the policy stream" in proof.says


@pytest.mark.slow
def test_a_stream_that_every_worker_reads_whole_differs_and_says_where(rig):
    proof = rig("feed").prove(Setting(num_workers=2), budget_s=60.0, max_samples=None)
    assert proof.same_data == "differs"
    assert proof.first is not None
    assert "in this setting" in proof.says


@pytest.mark.slow
def test_a_loader_that_fails_is_told_with_its_reason(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    with pytest.raises(TargetError, match="does not run as it is"):
        tune(f"{tmp_path}/mine.py:broken", Options(budget_s=60.0))


def test_a_function_cannot_train_on_a_target_in_words(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    with pytest.raises(ConfigurationError, match="a function of this process"):
        tune(f"{tmp_path}/mine.py:slow", step=print)


@pytest.mark.slow
def test_an_object_of_this_process_with_a_step_of_its_own():
    from torch.utils.data import DataLoader

    seen = []
    loader = DataLoader([[float(row)] for row in range(400)], batch_size=4)
    found = tune(loader, Options(need_per_s=1.0, budget_s=60.0), step=seen.append)
    assert found.choice.outcome in {"keep", "inconclusive", "change"}
    assert found.need.source == "given"
    assert found.need.compute_per_s > 1.0
    assert not seen, "it trained in forks"
