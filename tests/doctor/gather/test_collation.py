"""Samples that do not join are found by pairs, whichever place they have and whatever collate is used."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.contract.view import view_sample
from headrace.doctor.evidence import SampleRead
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
from headrace.doctor.probes.collation import MAX_SAMPLES, JoinSamples, choose_samples, find_odd, try_collation


@pytest.fixture(scope="module")
def bench():
    recorder = FlightRecorder.create()
    yield Bench(recorder)
    recorder.close()


def join_equal(samples):
    """The simplest collate: refuses a broken sample, and samples of two kinds."""
    if "broken" in samples or len(set(samples)) > 1:
        raise ValueError("kinds differ")
    return samples


@given(st.lists(st.sampled_from(["a", "b", "broken"]), min_size=2, max_size=8))
def test_odd_samples_are_all_that_are_not_of_the_common_kind(bench, samples):
    odd = find_odd(join_equal, samples, bench)
    whole = [sample for sample in samples if sample != "broken"]
    common = {kind for kind in "ab" if 2 * whole.count(kind) > len(whole) + 1}
    if len(whole) == 0:
        assert odd == []  # collate joins nothing at all: no sample is to blame
    elif common or len(set(whole)) == 1:
        (kind,) = common or set(whole)
        assert odd == [place for place, sample in enumerate(samples) if sample != kind]
    else:  # no kind is clearly common; whatever is called odd, the others join
        assert join_equal([sample for place, sample in enumerate(samples) if place not in odd])


def read(index, sample, outcome="ok"):
    fields = view_sample(sample) if outcome == "ok" else ()
    return SampleRead(index=index, sample_id=index, path=None, outcome=outcome, stage="done", fields=fields)


@given(
    sizes=st.lists(st.sampled_from([None, 3, 4, 5]), max_size=40),
    batch_size=st.one_of(st.none(), st.integers(1, 20)),
)
def test_chosen_samples_are_readable_in_order_and_of_every_kind(sizes, batch_size):
    reads = [read(i, np.zeros(size or 1), "error" if size is None else "ok") for i, size in enumerate(sizes)]
    chosen = choose_samples(reads, batch_size)
    readable = [i for i, size in enumerate(sizes) if size is not None]
    limit = min(batch_size or MAX_SAMPLES, MAX_SAMPLES)
    assert list(chosen) == sorted(set(chosen))
    assert set(chosen) <= set(readable)
    assert len(chosen) == min(limit, len(readable))
    kinds = {sizes[i] for i in readable}
    if limit >= len(kinds):
        assert {sizes[i] for i in chosen} == kinds
    if limit >= len(kinds) + 2:
        assert {*readable[:1], *readable[-1:]} <= set(chosen)


TARGET = """
from torch.utils.data import DataLoader
import torch

data = [torch.zeros(3, 4) for _ in range(5)]
data[2] = torch.zeros(1, 4)
data += [["hang"], ["crash"]]

def collate(samples):
    if ["hang"] in samples:
        while True:
            time.sleep(0.01)
    if ["crash"] in samples:
        ctypes.string_at(0)
    if len({len(sample) for sample in samples}) > 1:
        raise ValueError(f"rows differ\\nsecond line")
    return torch.stack([samples.pop() for _ in range(len(samples))])  # changes what it is given

def make():
    return DataLoader(data, batch_size=5, COLLATE)
"""


def join(lab, indices):
    joined, _ = try_collation(lab, JoinSamples(indices=indices, seed=0), collate="collate (told)", is_default=False)
    return joined


@pytest.mark.slow
def test_torchs_rules_name_the_odd_one_wherever_it_stands(open_lab):
    lab = open_lab(TARGET.replace("COLLATE", ""))
    for indices in [(0, 1, 2, 3, 4), (2, 3, 4)]:
        trial = join(lab, indices).trial
        assert (trial.collate, trial.is_default, trial.succeeded) == ("default_collate", True, False)
        assert trial.odd_ids == (2,)
        assert trial.sample_ids == indices
        assert (trial.error_type, trial.error_at) == ("RuntimeError", None)
    joined = join(lab, (1, 3, 4))
    assert joined.trial.succeeded
    assert [view.shape for view in joined.trial.batch_fields] == [(3, 3, 4)]
    assert joined.wall_s > 0


@pytest.mark.slow
def test_the_users_own_collate_is_used_and_named_and_has_failed_if_it_hangs_or_crashes(open_lab):
    lab = open_lab(TARGET.replace("COLLATE", "collate_fn=collate"), per_sample_s=1.5)
    trial = join(lab, (0, 1, 2, 3)).trial
    assert trial.collate.startswith("collate (train.py:")
    assert (trial.is_default, trial.error_type, trial.error_message) == (False, "ValueError", "rows differ")
    assert trial.error_at.endswith("in collate")
    assert trial.odd_ids == (2,)
    assert join(lab, (0, 1)).trial.succeeded
    for index, error_type in [(5, "stuck"), (6, "SIGSEGV")]:
        trial = join(lab, (0, index)).trial
        assert (trial.collate, trial.succeeded, trial.error_type) == ("collate (told)", False, error_type)
        assert trial.error_at.endswith("in collate")
