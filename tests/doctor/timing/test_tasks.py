"""headrace's own loader looked into while it works: the same data, each stage's time where it is spent, nothing left behind."""

import os
import pathlib
import time

import numpy as np
import pytest
import torch
from torch.utils.data import IterableDataset, get_worker_info

import headrace as hr
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.timing.accounting import Account
from headrace.doctor.timing.knock_out import without_stages
from headrace.doctor.timing.knock_out_tasks import NUM_KEPT
from headrace.doctor.timing.remembered import NUM_VARIANTS
from headrace.engine.indexed import NUM_PROBED
from headrace.engine.run.slots import SlotChannel, SlotSender

NUM, NAP_S = 48, 0.004
LAYOUTS = {
    "inline": {},
    "processes": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
    "host": {"num_workers": 2, "runner": "host"},
    "threads": {"num_workers": 2, "runner": "threads"},
    "spawn": {"num_workers": 1, "multiprocessing_context": "spawn"},
    "forkserver": {"num_workers": 1, "multiprocessing_context": "forkserver"},
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)
quick = pytest.mark.parametrize("layout", ["inline", "processes", "host", "threads"])


class Calls:
    """Counts calls over processes: a byte in a file for each."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def note(self, name):
        file = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b".")
        os.close(file)

    def number(self, name):
        path = self.folder / name
        return path.stat().st_size if path.exists() else 0


class Rows:
    """Map-style, counted, with a nap where it is wanted."""

    def __init__(self, folder, nap_s=0.0, slow=None):
        self.calls, self.nap_s, self.slow = Calls(folder), nap_s, slow

    def __len__(self):
        return NUM

    def __getitem__(self, index):
        self.calls.note("read")
        time.sleep(20 * NAP_S if index == self.slow else self.nap_s)
        return {"x": np.full(3 + index % 2, index, np.float32), "row": index}


class Stage:
    def __init__(self, folder, nap_s=0.0):
        self.calls, self.nap_s = Calls(folder), nap_s

    def __call__(self, sample):
        self.calls.note("stage")
        time.sleep(self.nap_s)
        return {**sample, "x": sample["x"][:3] + 1}


class Jitter:
    def __call__(self, sample, rng):
        return {**sample, "x": sample["x"] + rng.random()}


class Join:
    def __init__(self, folder, nap_s=0.0):
        self.calls, self.nap_s = Calls(folder), nap_s

    def __call__(self, samples):
        self.calls.note("collate")
        time.sleep(self.nap_s)
        return {
            "x": torch.stack([torch.from_numpy(one["x"]) for one in samples]),
            "row": [one["row"] for one in samples],
        }


class Stream(IterableDataset):
    def __init__(self, folder, nap_s=0.0):
        self.calls, self.nap_s = Calls(folder), nap_s

    def __len__(self):
        return NUM

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, NUM, step):
            self.calls.note("read")
            time.sleep(self.nap_s)
            yield torch.tensor([number])


def planned(folder, layout, read_s=0.0, stage_s=0.0, collate_s=0.0, **options):
    plan = hr.Plan.of(Rows(folder, read_s)).map(Stage(folder, stage_s)).map(Jitter())
    return hr.DataLoader(
        plan, batch_size=4, shuffle=True, seed=3, collate_fn=Join(folder, collate_s), **LAYOUTS[layout], **options
    )


def walk(loader, passes=1):
    """What came, and under which names."""
    told = []
    for _ in range(passes):
        for batch in loader:
            told.append((loader.last.sample_ids, [(name, np.asarray(batch[name]).tolist()) for name in ("x", "row")]))
        told.append(loader.ledger.order_hash)
    loader._runner.close()
    return told


def account(loader, folder, passes=1):
    kept = Account(folder)
    told = walk(kept.wrap(Subject(loader), loader), passes)
    uses, made = kept.read()
    return told, {one.stage: one for one in uses}, made


def per_sample_s(use):
    return use.wall_s / use.num_samples


@layouts
def test_data_names_and_books_are_those_of_the_loader(tmp_path, layout):
    told, _, _ = account(planned(tmp_path, layout), tmp_path / "notes", passes=2)
    assert repr(told) == repr(walk(planned(tmp_path, layout), passes=2))


@layouts
@pytest.mark.parametrize("stage", ["read", "transform", "collate"])
def test_each_nap_is_found_in_its_stage(tmp_path, layout, stage):
    naps = {"read": {"read_s": NAP_S}, "transform": {"stage_s": NAP_S}, "collate": {"collate_s": 4 * NAP_S}}[stage]
    _, uses, made = account(planned(tmp_path, layout, **naps), tmp_path / "notes")
    assert set(uses) - {"handover"} == {"read", "transform", "collate"}
    assert per_sample_s(uses[stage]) >= NAP_S
    assert max(uses.values(), key=per_sample_s).stage == stage
    assert uses[stage].cpu_s < uses[stage].wall_s / 2
    assert uses[stage].num_servers == max(1, LAYOUTS[layout].get("num_workers", 0))
    assert ("handover" in uses) == (layout != "inline")
    assert [one.batch for one in made] == ([] if layout == "inline" else list(range(NUM // 4)))
    assert all(one.began_s <= one.fetched_s <= one.made_s for one in made)


@pytest.mark.parametrize("layout", ["processes", "persistent", "threads"])
def test_the_batch_of_a_slow_sample_is_named_over_passes(tmp_path, layout):
    loader = hr.DataLoader(Rows(tmp_path, slow=9), batch_size=1, **LAYOUTS[layout])
    kept = Account(tmp_path / "notes")
    twin = kept.wrap(Subject(loader), loader)
    assert sum(1 for _ in range(2) for _ in twin) == 2 * NUM
    twin._runner.close()
    _, made = kept.read()
    slow = [one.batch for one in made if one.slowest_sample_s >= 20 * NAP_S]
    assert slow == [9, NUM + 9]


def test_the_loader_itself_is_left_as_it_is(tmp_path):
    loader = planned(tmp_path, "inline")
    task, runner = loader._loading.task, loader._runner
    preparation, before = task._preparation, (dict(vars(task)), dict(vars(task._preparation)))
    own = (SlotSender.encode, SlotChannel.decode)
    account(loader, tmp_path / "notes")
    assert (loader._loading.task, loader._runner, task._preparation) == (task, runner, preparation)
    assert (dict(vars(task)), dict(vars(preparation))) == before
    account(planned(tmp_path, "processes"), tmp_path / "more")
    assert (SlotSender.encode, SlotChannel.decode) == own


@quick
def test_a_stream_is_accounted_for_as_well(tmp_path, layout):
    if LAYOUTS[layout].get("runner"):
        pytest.skip("a stream has processes for workers")
    loader = hr.DataLoader(Stream(tmp_path, NAP_S), batch_size=4, **LAYOUTS[layout])
    kept = Account(tmp_path / "notes")
    twin = kept.wrap(Subject(loader), loader)
    assert torch.cat(list(twin)).flatten().sort().values.tolist() == list(range(NUM))
    uses, made = kept.read()
    assert per_sample_s({one.stage: one for one in uses}["sample"]) >= NAP_S
    assert len(made) == (NUM // 4 if layout != "inline" else 0)


def test_files_that_a_record_is_read_from_are_heard_and_counted(tmp_path):
    for number in range(16):
        (tmp_path / f"{number:02}.bin").write_bytes(bytes([number]) * 1000)
    plan = hr.folder(tmp_path, labels=False).map(lambda record: np.frombuffer(record.data, np.uint8), name="decode")
    kept = Account(tmp_path / "notes")
    loader = hr.DataLoader(plan, batch_size=4, num_workers=1)
    list(kept.wrap(Subject(loader), loader))
    uses = {one.stage: one for one in kept.read()[0]}
    assert uses["read"].num_bytes >= 1000 * uses["read"].num_samples


@quick
def test_a_sample_that_fails_fails_as_ever(tmp_path, layout):
    class Fails(Rows):
        def __getitem__(self, index):
            if index == 9:
                raise KeyError("no such row")
            return super().__getitem__(index)

    loader = hr.DataLoader(Fails(tmp_path), batch_size=1, **LAYOUTS[layout])
    kept = Account(tmp_path / "notes")
    twin, came = kept.wrap(Subject(loader), loader), 0
    with pytest.raises(KeyError, match="no such row") as caught:
        for _ in twin:
            came += 1
    assert came == 9
    assert "sample 9" in "".join(caught.value.__notes__)
    assert kept.read()[0]


# Without a stage.


def left_out(loader, *stages):
    twin = without_stages(Subject(loader), loader, stages, bench=None)
    batches = [(batch["x"].shape, batch["x"].dtype, type(batch["row"])) for batch in twin]
    twin._runner.close()
    return batches


@layouts
@pytest.mark.parametrize(
    ("stage", "counted", "most"),
    [
        ("sample", {"read", "stage"}, NUM_KEPT),
        ("transform", {"stage"}, NUM_KEPT),
        ("read", {"read"}, NUM_KEPT),
        ("collate", {"collate"}, NUM_VARIANTS),
    ],
)
def test_a_stage_that_is_left_out_is_called_for_what_is_kept_and_no_more(tmp_path, layout, stage, counted, most):
    (tmp_path / "calls").mkdir()
    loader = planned(tmp_path / "calls", layout)
    calls = Calls(tmp_path / "calls")
    batches = left_out(loader, stage)
    assert batches == [(torch.Size([4, 3]), torch.float32, list)] * (NUM // 4)
    workers = max(1, LAYOUTS[layout].get("num_workers", 0))
    whole = {"read": NUM, "stage": NUM, "collate": NUM // 4}
    # Threads that begin at the same moment may each make one more; and before they do, some samples are tried.
    more = workers + (NUM_PROBED if "runner" in LAYOUTS[layout] else 0)
    for name, number in whole.items():
        if name in counted:
            assert calls.number(name) <= most * workers + more < NUM
        else:
            assert calls.number(name) >= number


def test_samples_of_a_plain_data_set_and_its_own_joining(tmp_path):
    loader = hr.DataLoader([np.full(3, row, np.float32) for row in range(NUM)], batch_size=4)
    twin = without_stages(Subject(loader), loader, ("sample",), bench=None)
    assert [batch.shape for batch in twin] == [torch.Size([4, 3])] * (NUM // 4)
    assert torch.cat(list(loader))[:, 0].tolist() == list(range(NUM))


@pytest.mark.parametrize("layout", ["inline", "processes"])
def test_samples_of_a_stream_are_as_many_as_before(tmp_path, layout):
    loader = hr.DataLoader(Stream(tmp_path), batch_size=4, **LAYOUTS[layout])
    twin = without_stages(Subject(loader), loader, ("sample",), bench=None)
    assert [batch.shape for batch in twin] == [torch.Size([4, 1])] * (NUM // 4)
    assert Calls(tmp_path).number("read") <= NUM_KEPT * max(1, LAYOUTS[layout].get("num_workers", 0)) + 2


@pytest.mark.parametrize(
    ("make", "stages", "said"),
    [
        (lambda folder: planned(folder, "processes"), ["handover"], "in the memory in which they are handed over"),
        (lambda folder: planned(folder, "processes"), ["decode"], "not a stage of its own"),
        (lambda folder: hr.DataLoader(Rows(folder), batch_size=4), ["transform"], "no plan with stages"),
        (lambda folder: hr.DataLoader(hr.arrays(np.zeros((8, 2)))), ["sample"], "gathered into the memory"),
        (lambda folder: hr.DataLoader(Rows(folder), batch_size=None), ["collate"], "joins nothing"),
        (lambda folder: hr.DataLoader(Rows(folder), batch_size=4, num_workers="auto"), ["sample"], "'auto' chooses"),
    ],
)
def test_what_cannot_be_left_out_says_why(tmp_path, make, stages, said):
    loader = make(tmp_path)
    with pytest.raises(CannotExamine, match=said):
        without_stages(Subject(loader), loader, stages, bench=None)


def test_a_loader_that_chooses_its_workers_cannot_be_accounted_for(tmp_path):
    loader = hr.DataLoader(Rows(tmp_path), batch_size=4, num_workers="auto")
    with pytest.raises(CannotExamine, match="a number can be looked into"):
        Account(tmp_path / "notes").wrap(Subject(loader), loader)


@pytest.mark.parametrize("layout", ["inline", "processes"])
def test_accounts_of_what_is_left_without_a_stage(tmp_path, layout):
    loader = planned(tmp_path, layout, read_s=NAP_S, collate_s=4 * NAP_S)
    kept = Account(tmp_path / "notes")
    twin = kept.wrap(Subject(loader), without_stages(Subject(loader), loader, ["sample"], bench=None))
    assert len(list(twin)) == NUM // 4
    uses = {one.stage: one for one in kept.read()[0]}
    assert per_sample_s(uses["collate"]) >= NAP_S
