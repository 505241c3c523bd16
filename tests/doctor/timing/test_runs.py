"""Timed runs of real loaders. No test depends on how quick the machine is, but for factors of ten and more."""

import itertools
import pathlib
import sys
import threading
import time
import types

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader

import headrace as hr
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.timing.consumer import Emulated, TrainStep, held
from headrace.doctor.timing.runs import TimedRun
from headrace.doctor.timing.setting import Setting

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from rows import Batches, Lists, Rows, Stream, join_lists, set_up

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # StatefulDataLoader's constructor
FIVE_MS = Emulated(step_s=0.005, is_busy=False)


def check_laws(record, batch_size=4):
    """What holds for every run that delivered something."""
    steps = record.steps
    size = len(steps.asked_s)
    assert size
    assert {len(one) for one in (steps.got_s, steps.epochs, steps.num_samples)} == {size}
    moments = [moment for pair in zip(steps.asked_s, steps.got_s, strict=True) for moment in pair] + [steps.end_s]
    assert moments == sorted(moments), "time goes on"
    assert list(steps.epochs) == sorted(steps.epochs)
    assert all(1 <= num <= batch_size for num in steps.num_samples)
    assert record.amounts.num_samples == sum(steps.num_samples)
    assert [start.epoch for start in record.starts] == sorted({*steps.epochs} if record.starts else ())
    assert record.consumer_cpu_s >= 0
    assert record.workers_cpu_s >= 0
    if record.window is not None:
        window = record.window
        assert 0 <= window.first < window.last <= size
        assert window.seconds > 0
        assert window.num_samples == sum(steps.num_samples[place] for place in window.places)


LOADERS = {
    "plain": lambda: DataLoader(Rows(), batch_size=4, shuffle=True),
    "short last": lambda: DataLoader(Rows(62), batch_size=4),
    "no batching": lambda: DataLoader(Rows(), batch_size=None),
    "batch sampler": lambda: DataLoader(Rows(), batch_sampler=BatchSampler(RandomSampler(Rows()), 4, True)),
    "whole batches": lambda: whole_batches(),
    "own collate": lambda: DataLoader(Rows(), batch_size=4, collate_fn=join_lists),
    "stream": lambda: DataLoader(Stream(), batch_size=4),
    "stateful": lambda: StatefulDataLoader(Rows(), batch_size=4),
    "ours": lambda: hr.DataLoader(Rows(), batch_size=4, shuffle=True, seed=1),
    "our stream": lambda: hr.DataLoader(Stream(), batch_size=4, seed=1),
    "ours, auto": lambda: hr.DataLoader(Rows(), batch_size=4, num_workers="auto", seed=1),
    "rows alone": lambda: Rows(),
    "any iterable": lambda: Batches(),
}
WITH_WORKERS = {
    "workers": lambda: DataLoader(Rows(), batch_size=4, num_workers=2, worker_init_fn=set_up),
    "kept workers": lambda: DataLoader(Rows(), batch_size=4, num_workers=2, persistent_workers=True),
    "one worker": lambda: DataLoader(Rows(), batch_size=4, num_workers=1, prefetch_factor=1),
    "stream": lambda: DataLoader(Stream(), batch_size=4, num_workers=2),
    "stateful": lambda: StatefulDataLoader(Rows(), batch_size=4, num_workers=2),
    "ours": lambda: hr.DataLoader(Rows(), batch_size=4, num_workers=2, seed=1),
    "our kept workers": lambda: hr.DataLoader(Rows(), batch_size=4, num_workers=2, persistent_workers=True, seed=1),
    "our threads": lambda: hr.DataLoader(Rows(), batch_size=4, num_workers=2, runner="threads", seed=1),
    "our stream": lambda: hr.DataLoader(Stream(), batch_size=4, num_workers=2, seed=1),
}


def whole_batches():
    return DataLoader(Lists(), sampler=BatchSampler(RandomSampler(Lists()), 4, False), batch_size=None)


def test_the_samples_of_whole_batches_are_counted(timed):
    assert set(timed(whole_batches(), "L").steps.num_samples) == {4}


@pytest.mark.parametrize("kind", ["L", "C", "I"])
@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
def test_any_loader_is_timed(timed, make, kind):
    record = timed(make(), kind, consumer=FIVE_MS)
    check_laws(record)
    assert record.window is not None, record.why
    assert (record.num_workers, record.in_flight) == (0, 0)


@pytest.mark.parametrize("kind", ["L", "N", "I"])
@pytest.mark.parametrize("make", WITH_WORKERS.values(), ids=WITH_WORKERS)
def test_any_loader_with_workers_is_timed(timed, make, kind):
    record = timed(make(), kind, consumer=FIVE_MS)
    check_laws(record)
    assert record.window is not None, record.why
    assert record.num_workers in {1, 2}
    assert record.in_flight == record.num_workers**2


@pytest.mark.parametrize("name", ["workers", "kept workers", "stream", "ours", "our stream"])
def test_handing_over_alone(timed, name):
    record = timed(WITH_WORKERS[name](), "L0", num_epochs=1, max_batches=16)
    check_laws(record)
    assert len(record.steps.asked_s) == 16
    assert record.amounts.num_bytes == 8 * 64


def test_handing_over_alone_is_quicker_than_loading(timed):
    loader = DataLoader(Rows(40, sleep_s=0.05), batch_size=4, num_workers=2)
    slow, floor = (timed(loader, kind, num_epochs=1).steps for kind in ("L", "L0"))
    took = [steps.end_s - steps.got_s[0] for steps in (slow, floor)]
    assert took[0] > 0.7
    assert took[1] < took[0] / 2


def test_what_cannot_be_run_says_why(timed):
    cases = {
        ("N", LOADERS["plain"]): "beside nothing",
        ("N", LOADERS["ours"]): "beside nothing",
        ("N", LOADERS["ours, auto"]): "num_workers='auto'",
        ("L0", LOADERS["any iterable"]): "cannot be taken out",
    }
    if not torch.cuda.is_available():
        cases["Ct", LOADERS["plain"]] = "no CUDA device"
    for (kind, make), said in cases.items():
        record = timed(make(), kind, consumer=FIVE_MS)
        assert record.window is None
        assert said in record.why
        assert record.steps.asked_s == ()
    record = timed(Batches(), setting=Setting(num_workers=4))
    assert "inside it" in record.why
    assert record.setting == Setting(num_workers=4)


def test_a_setting_is_applied(timed):
    record = timed(LOADERS["plain"](), setting=Setting(num_workers=2, prefetch_factor=3))
    assert (record.num_workers, record.in_flight) == (2, 6)
    assert record.workers_cpu_s > 0


def test_exactly_so_many_epochs_and_batches(timed):
    for make, num_epochs in itertools.product([LOADERS["short last"], WITH_WORKERS["workers"]], [1, 2, 3]):
        record = timed(make(), num_epochs=num_epochs)
        assert [record.steps.epochs.count(epoch) for epoch in range(num_epochs)] == [16] * num_epochs
        assert len(record.starts) == num_epochs
        record = timed(make(), num_epochs=num_epochs, max_batches=5)
        assert [record.steps.epochs.count(epoch) for epoch in range(num_epochs)] == [5] * num_epochs


def test_the_window_sets_the_length(timed):
    loader = DataLoader(Rows(8), batch_size=4)
    for window_s in (0.1, 0.4):
        record = timed(loader, "I", consumer=FIVE_MS, window_s=window_s)
        assert record.steps.end_s - record.steps.asked_s[0] > window_s
        assert record.window.seconds == pytest.approx(window_s, rel=0.9)


def test_time_is_bounded(timed):
    began = time.monotonic()
    record = timed(DataLoader(Rows(10**6, sleep_s=0.002), batch_size=4), window_s=1e9, most_s=0.3)
    assert time.monotonic() - began < 5
    check_laws(record)


def test_tiny_and_empty_data_sets(timed):
    for workers in (0, 2):
        record = timed(DataLoader(Rows(12), batch_size=4, num_workers=workers), num_epochs=3)
        assert len(record.steps.asked_s) == 9
        assert record.window.num_batches == 6
        assert "whole epochs" in record.why
        record = timed(DataLoader([], batch_size=4, num_workers=workers))
        assert record.window is None
        assert record.why == "no batch was delivered"
        assert record.starts == ()
        dropped = timed(DataLoader(Rows(3), batch_size=4, drop_last=True, num_workers=workers))
        assert dropped.window is None
        assert dropped.why == "no batch was delivered"


def test_an_empty_loader_has_no_batch_to_keep(timed):
    with pytest.raises(Exception, match="delivers no batch"):
        timed(DataLoader([], batch_size=4), "C")


class Once:
    """Exhausted after one pass."""

    batch_size = 4

    def __init__(self):
        self.rows = iter(torch.zeros(30, 4, 1))

    def __iter__(self):
        return iter(self.rows)


def test_a_loader_that_is_exhausted_ends_the_run(timed):
    record = timed(Once(), window_s=5.0)
    assert set(record.steps.epochs) == {0}
    assert len(record.steps.asked_s) == 30


def test_compute_bound_and_loader_bound(timed):
    quick = DataLoader(Rows(400), batch_size=4)
    record = timed(quick, "I", consumer=FIVE_MS, window_s=0.2)
    waits, steps = (sum(values[3:]) for values in (record.steps.waits_s, record.steps.consumer_s))
    assert steps > 3 * waits
    slow = DataLoader(Rows(400, sleep_s=0.01), batch_size=4)
    record = timed(slow, "I", consumer=Emulated(step_s=1e-4), window_s=0.3)
    waits, steps = (sum(values[3:]) for values in (record.steps.waits_s, record.steps.consumer_s))
    assert waits > 3 * steps


def test_no_step_waits_for_a_slow_loader_beside_it(timed):
    slow = DataLoader(Rows(400, sleep_s=0.1), batch_size=4, num_workers=2)
    record = timed(slow, "N", consumer=FIVE_MS, window_s=0.2)
    assert len(record.steps.asked_s) > 20  # the loader made three or four batches
    assert record.steps.waits_s[1:] == (0.0,) * (len(record.steps.asked_s) - 1)


def test_the_loader_beside_keeps_the_pace_of_the_steps(timed):
    loader = DataLoader(Rows(40), batch_size=4, num_workers=2)
    record = timed(loader, "N", consumer=FIVE_MS, num_epochs=2)
    for epoch in (0, 1):
        assert 10 <= record.steps.epochs.count(epoch) <= 30  # 10 batches, and the thread may come late


def test_the_step_gets_what_the_loader_delivers(timed):
    seen = []
    with held(lambda batch: seen.append(batch["label"].tolist())) as consumer:
        record = timed(DataLoader(Rows(10), batch_size=4), "I", consumer=consumer, num_epochs=2)
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] * 2
    assert record.steps.num_samples == (4, 4, 2, 4, 4, 2)


def test_a_kept_batch_survives_what_a_step_takes_out_of_it(timed):
    with held(lambda batch: (batch.pop("label"), time.sleep(0.001))) as consumer:
        for kind in ("C", "N"):
            record = timed(WITH_WORKERS["workers"](), kind, consumer=consumer)
            assert set(record.steps.num_samples) == {4}
            assert len(record.steps.asked_s) > 5


def test_a_maker_is_called_once(timed):
    made = []

    def make_step():
        made.append(1)
        return lambda batch: None

    with held(make_step) as consumer:
        timed(DataLoader(Rows(10), batch_size=4), "I", consumer=consumer, num_epochs=3)
    assert made == [1]


def test_orders_repeat_and_samplers_are_told_the_epoch(timed):
    def ids(seed):
        return timed(LOADERS["plain"](), num_epochs=2, seed=seed, wants_ids=True).batch_ids

    assert ids(1) == ids(1) != ids(2)
    assert ids(1)[:16] != ids(1)[16:]
    sampler = DistributedSampler(Rows(), num_replicas=2, rank=0)
    told = timed(DataLoader(Rows(), batch_size=4, sampler=sampler), num_epochs=2, wants_ids=True)
    assert told.batch_ids[:8] != told.batch_ids[8:]
    assert sampler.epoch == 1


@pytest.mark.parametrize(
    "make",
    [
        LOADERS["plain"],
        LOADERS["batch sampler"],
        LOADERS["stateful"],
        LOADERS["ours"],
        LOADERS["no batching"],
        WITH_WORKERS["workers"],
        WITH_WORKERS["kept workers"],
        WITH_WORKERS["our kept workers"],
    ],
)
@pytest.mark.parametrize("max_batches", [None, 3])
def test_ids_are_those_of_the_batches(timed, make, max_batches):
    seen = []
    with held(lambda batch: seen.append(tuple(str(label) for label in batch["label"].reshape(-1).tolist())
              if isinstance(batch["label"], torch.Tensor) else (str(batch["label"]),))) as consumer:  # fmt: skip
        record = timed(make(), "I", consumer=consumer, num_epochs=2, max_batches=max_batches, wants_ids=True)
    assert record.batch_ids == tuple(seen)
    assert seen


def test_ids_are_not_made_up(timed):
    assert timed(DataLoader(Stream(), batch_size=4), wants_ids=True).batch_ids is None
    assert timed(LOADERS["plain"]()).batch_ids is None


def test_a_batch_is_loaded_in_the_same_way_with_ids(timed):
    """The sampler is listened to where it is: nothing is asked of the workers."""
    loader = WITH_WORKERS["workers"]()
    plain, told = (timed(loader, num_epochs=1, wants_ids=wants) for wants in (False, True))
    assert plain.amounts == told.amounts
    assert told.num_workers == 2


def test_what_lies_ready_at_the_start_is_not_the_loaders_speed(timed):
    """Two workers that sleep 40 ms a batch deliver at most 50 a second, however many lie ready when the steps begin."""
    calls = itertools.count()

    def step(batch):
        if next(calls) < 2:
            time.sleep(0.5)

    loader = DataLoader(Rows(10**6, sleep_s=0.01), batch_size=4, num_workers=2, prefetch_factor=8)
    with held(step) as consumer:
        record = timed(loader, "I", consumer=consumer, window_s=1.0)
    assert record.window.rate_per_s <= 200 * 1.02
    steps = record.steps
    assert steps.got_s[12] - steps.got_s[3] < 0.15, "else nothing lay ready, and the test shows nothing"


@pytest.mark.parametrize("kind", ["L", "L0", "C", "N", "I"])
def test_a_loader_that_accelerate_wraps(timed, kind):
    wrapped = pytest.importorskip("accelerate.data_loader").prepare_data_loader(
        DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=1), put_on_device=False
    )
    record = timed(wrapped, kind, consumer=FIVE_MS, wants_ids=True, num_epochs=1)
    check_laws(record)
    assert record.window is not None, record.why
    if kind in {"L", "I"}:
        assert sorted(int(name) for ids in record.batch_ids for name in ids) == list(range(64))


# What is knocked out and accounted is another room's; here it is asked for.


@pytest.fixture
def other_rooms(monkeypatch):
    """Stand-ins for the rooms that knock out and account; returns what they were asked."""
    asked = []

    class Account:
        refusal = None

        def __init__(self, folder):
            asked.append(folder)

        def wrap(self, subject, loader):
            asked.append(loader)
            return loader

        def read(self):
            if Account.refusal:
                raise CannotExamine(Account.refusal)
            return ["a use"], ["a batch"]

    def without_stages(subject, loader, stages, bench):
        if "read" in stages:
            raise CannotExamine("nothing is read")
        asked.append(stages)
        return DataLoader(Rows(8), batch_size=4)

    accounting, knock_out = types.ModuleType("accounting"), types.ModuleType("knock_out")
    accounting.Account, knock_out.without_stages = Account, without_stages
    monkeypatch.setitem(sys.modules, "headrace.doctor.timing.accounting", accounting)
    monkeypatch.setitem(sys.modules, "headrace.doctor.timing.knock_out", knock_out)
    return asked, Account


def test_stages_are_knocked_out(timed, other_rooms):
    record = timed(LOADERS["plain"](), num_epochs=1, without=("decode",))
    assert other_rooms[0] == [("decode",)]
    assert len(record.steps.asked_s) == 2
    assert record.without == ("decode",)
    refused = timed(LOADERS["plain"](), num_epochs=1, without=("read",))
    assert (refused.window, refused.why) == (None, "nothing is read")


def test_stages_are_accounted(timed, other_rooms):
    asked, account = other_rooms
    record = timed(LOADERS["plain"](), num_epochs=1, accounts=True, folder="/somewhere")
    assert asked[0] == "/somewhere"
    assert (record.uses, record.batches_made) == (("a use",), ("a batch",))
    account.refusal = "nothing was seen"
    record = timed(LOADERS["plain"](), num_epochs=1, accounts=True)
    assert record.uses == ()
    assert record.why == "nothing was seen"
    assert record.window is not None, "what was timed is true all the same"


# Faults.


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["L", "I", "N"])
def test_a_broken_sample_ends_everything(timed, workers, kind):
    if kind == "N" and not workers:
        return
    loader = DataLoader(Rows(fails_at=41), batch_size=4, num_workers=workers)
    with pytest.raises(ValueError, match="row 41 is broken"):
        timed(loader, kind, consumer=FIVE_MS, window_s=5.0)


@pytest.mark.parametrize(
    "make", [WITH_WORKERS["workers"], WITH_WORKERS["kept workers"], WITH_WORKERS["our kept workers"]]
)
@pytest.mark.parametrize("kind", ["C", "I", "N"])
def test_a_broken_step_ends_everything(timed, make, kind):
    calls = itertools.count()

    def step(batch):
        time.sleep(0.001)
        if next(calls) == 5:
            raise RuntimeError("loss is nan")

    with held(step) as consumer, pytest.raises(RuntimeError, match="loss is nan"):
        timed(make(), kind, consumer=consumer, window_s=5.0)


def test_threads_end_too(timed):
    before = set(threading.enumerate())
    for kind in ("N", "I"):
        timed(WITH_WORKERS["workers"](), kind, consumer=FIVE_MS)
    deadline = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before


# In the lab's children.

FILE = """
import os, time
import torch
from torch.utils.data import DataLoader

class Rows:
    def __init__(self, fault=None): self.fault = fault
    def __len__(self): return 40
    def __getitem__(self, row):
        if row == 25 and self.fault == "dies": os._exit(3)
        if row == 25 and self.fault == "hangs": time.sleep(1000)
        return {"image": torch.full((3, 8, 8), row), "label": row}

def make_loader(): return DataLoader(Rows(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
def dying(): return DataLoader(Rows("dies"), batch_size=4, num_workers=2)
def hanging(): return DataLoader(Rows("hangs"), batch_size=4, num_workers=2)

def train_step():
    model = torch.nn.Linear(192, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def step(batch):
        optimizer.zero_grad()
        loss = model(batch["image"].flatten(1).float()).mean()
        loss.backward()
        optimizer.step()
    return step
def alone(): return DataLoader(Rows(), batch_size=4)
def slow_step(batch): time.sleep(1.2)
def broken_step(batch): raise KeyError("pixel_values")
"""


def test_a_loader_that_spawns_beside_a_step_of_its_own_file(in_lab, no_orphans):
    """The file is not executed anew for the step: its classes would be others, and could not be sent to the workers."""
    run = TimedRun(kind="I", consumer=TrainStep(f"{in_lab.path}:train_step"), num_epochs=1, wants_ids=True)
    records, ending = in_lab(FILE, run)
    assert ending.outcome == "done", ending.cause
    check_laws(records[0])
    assert records[0].batch_ids[-1] == ("36", "37", "38", "39")
    assert records[0].workers_cpu_s > 0
    assert records[0].logical_bytes > 0


def test_a_broken_step_is_named(in_lab, no_orphans):
    run = TimedRun(kind="I", consumer=TrainStep(f"{in_lab.path}:broken_step"))
    records, ending = in_lab(FILE, run, name="hanging")
    assert (records, ending.outcome) == ([], "failed")
    assert "KeyError" in ending.cause
    assert "broken_step" in ending.at


def test_a_worker_that_dies_ends_the_run(in_lab, no_orphans):
    records, ending = in_lab(FILE, TimedRun(kind="L"), name="dying")
    assert (records, ending.outcome) == ([], "failed"), ending.cause


def test_a_loader_that_hangs_is_found_out(in_lab, no_orphans):
    records, ending = in_lab(FILE, TimedRun(kind="L", most_s=50), name="hanging", per_sample_s=1.0)
    assert (records, ending.outcome) == ([], "stuck")
    assert ending.mark.stage.startswith(("batch", "start of epoch"))


def test_a_long_step_is_not_taken_for_a_loader_that_hangs(in_lab, no_orphans):
    run = TimedRun(kind="I", consumer=TrainStep(f"{in_lab.path}:slow_step"), num_epochs=1, max_batches=5)
    records, ending = in_lab(FILE, run, name="alone", per_sample_s=0.5)
    assert ending.outcome == "done", ending.cause
    assert len(records[0].steps.asked_s) == 5
