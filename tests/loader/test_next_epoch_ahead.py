"""Workers that stay begin the next epoch before it is asked for; what is delivered, and when an error comes, is the same."""

import gc
import os
import subprocess
import sys
import time
from collections import Counter

import pytest
from torch.utils.data import Dataset, SequentialSampler

import headrace as hr
from headrace.testing import nothing_left

LAYOUTS = [
    {"num_workers": 2, "multiprocessing_context": "fork"},
    {"num_workers": 2, "multiprocessing_context": "fork", "runner": "host"},
    {"num_workers": 2, "runner": "threads"},
    {"num_workers": "auto"},
]
every_layout = pytest.mark.parametrize(
    "layout", LAYOUTS, ids=lambda layout: layout.get("runner", layout["num_workers"])
)


@pytest.fixture(autouse=True)
def _leaves_nothing():
    with nothing_left():
        yield
        gc.collect()


class Traced(Dataset):
    """Notes every read in a file."""

    def __init__(self, path, n=20, bad=None):
        self.path, self.n, self.bad = path, n, bad

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        with self.path.open("a") as file:
            file.write(f"{index}\n")
        if index == self.bad:
            raise ValueError("a bad row")
        return index


def reads(path):
    return path.read_text().split() if path.exists() else []


def loader_of(dataset, layout, **options):
    return hr.DataLoader(
        dataset, batch_size=4, seed=1, persistent_workers=True, **{"shuffle": True, **options, **layout}
    )


def epoch(loader):
    return [(loader.last.sample_ids, batch.tolist()) for batch in loader]


@every_layout
@pytest.mark.parametrize("tail", ["partial", "drop", "pad", "carry"])
def test_epochs_are_those_of_a_plain_loop(layout, tail):
    plain = hr.DataLoader(range(23), batch_size=4, seed=1, shuffle=True, tail=tail)
    ahead = loader_of(range(23), layout, tail=tail)
    for _ in range(4):
        assert epoch(ahead) == epoch(plain)
        assert ahead.state_dict() == plain.state_dict()
        assert str(ahead.ledger) == str(plain.ledger)


@pytest.mark.parametrize("layout", LAYOUTS[:3], ids=["processes", "host", "threads"])
def test_workers_begin_the_next_epoch_and_no_more_than_fits_the_window(layout, tmp_path):
    loader = loader_of(Traced(tmp_path / "reads"), layout, prefetch_factor=1)
    iterator = iter(loader)
    (tmp_path / "reads").unlink(missing_ok=True)  # before threads start, some samples are tried
    for _ in range(5):
        next(iterator)
    deadline = time.monotonic() + 20
    while len(reads(tmp_path / "reads")) < 20 + 2 * 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    ahead = list((Counter(map(int, reads(tmp_path / "reads"))) - Counter(range(20))).elements())
    second = hr.DataLoader(range(20), batch_size=4, seed=1, shuffle=True)
    second.set_epoch(1)
    expected = [index for ids, _ in epoch(second)[:2] for index in ids]
    assert sorted(ahead) == sorted(expected)
    assert next(iterator, None) is None


def test_without_persistent_workers_nothing_is_read_ahead(tmp_path):
    loader = hr.DataLoader(Traced(tmp_path / "reads"), batch_size=4, num_workers=2, multiprocessing_context="fork")
    assert len(epoch(loader)) == 5
    assert len(reads(tmp_path / "reads")) == 20


def test_a_sampler_is_not_asked_ahead(tmp_path):
    dataset = Traced(tmp_path / "reads")
    loader = loader_of(dataset, LAYOUTS[0], sampler=SequentialSampler(dataset), shuffle=None)
    assert len(epoch(loader)) == len(epoch(loader)) == 5
    assert len(reads(tmp_path / "reads")) == 40


@every_layout
def test_another_place_than_the_next_epoch(layout):
    plain = hr.DataLoader(range(23), batch_size=4, seed=1, shuffle=True)
    ahead = loader_of(range(23), layout)
    for loader in (plain, ahead):
        loader.got = [epoch(loader)]
        loader.set_epoch(5)
        loader.got.append(epoch(loader))
        state = loader.state_dict()
        for _ in loader:
            break
        loader.got.append(epoch(loader))
        loader.load_state_dict(state)
        loader.got.append(epoch(loader))
        iterator = iter(loader)
        loader.got.append([next(iterator).tolist(), next(iterator).tolist()])
        loader.load_state_dict(loader.state_dict())
        loader.got.append(epoch(loader))
    assert ahead.got == plain.got


@every_layout
def test_two_iterators_of_one_loader_both_get_everything(layout):
    plain = hr.DataLoader(range(23), batch_size=4, seed=1, shuffle=True)
    ahead = loader_of(range(23), layout)
    assert epoch(ahead) == epoch(plain)
    first, second = iter(ahead), iter(ahead)
    expected = [[batch.tolist() for batch in plain] for _ in range(2)]
    assert [batch.tolist() for batch in second] == expected[1]
    assert [batch.tolist() for batch in first] == expected[0]
    unused = iter(ahead)
    del unused
    plain.set_epoch(4)
    assert epoch(ahead) == epoch(plain)


@every_layout
def test_an_error_of_the_next_epoch_comes_in_the_next_epoch(layout, tmp_path):
    order = hr.DataLoader(range(20), batch_size=4, seed=1, shuffle=True)
    list(order)
    bad = next(iter(order)).tolist()[0]  # in the first batch of epoch 1
    plain = hr.DataLoader(
        Traced(tmp_path / "plain", bad=bad), batch_size=4, seed=1, shuffle=True, on_error=hr.Skip(max_rate=0.1)
    )
    ahead = loader_of(Traced(tmp_path / "ahead", bad=bad), layout, on_error=hr.Skip(max_rate=0.1))
    for _ in range(3):
        assert epoch(ahead) == epoch(plain)
        assert ahead.quarantine == plain.quarantine
        assert len(ahead.quarantine) == 1
    if "runner" in layout:
        return  # some samples are tried before such workers start
    strict = loader_of(Strict(tmp_path / "mark", bad), layout)
    assert len(epoch(strict)) == 5
    with pytest.raises(ValueError, match="a bad row"):
        list(strict)


class Strict(Dataset):
    """Fails at one row, the second time that it is read."""

    def __init__(self, path, bad):
        self.path, self.bad = path, bad

    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == self.bad:
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                self.path.unlink()
                raise ValueError("a bad row") from None
        return index


def test_workers_end_with_the_loader():
    gc.disable()  # no cycle may keep them alive until somebody collects
    try:
        with nothing_left():
            loader = loader_of(range(23), LAYOUTS[0])
            list(loader)
            del loader
    finally:
        gc.enable()


def test_a_program_that_ends_between_two_epochs_ends_silently():
    program = (
        "import headrace as hr\n"
        "if __name__ == '__main__':\n"
        "    loader = hr.DataLoader(range(23), num_workers=2, persistent_workers=True, multiprocessing_context='fork')\n"
        "    print(len(list(loader)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("23\n", "")


def test_a_forked_child_that_drops_the_run_does_no_harm():
    loader = loader_of(range(23), LAYOUTS[0])
    reference = [epoch(loader), epoch(loader)]
    again = loader_of(range(23), LAYOUTS[0])
    iterator = iter(again)
    got = [next(iterator).tolist()]
    pid = os.fork()
    if pid == 0:
        iterator.close()
        os._exit(0)
    os.waitpid(pid, 0)
    got += [batch.tolist() for batch in iterator]
    assert got == [values for _, values in reference[0]]
    assert epoch(again) == reference[1]


def test_workers_end_with_a_loader_that_is_part_of_a_cycle():
    loader = loader_of(range(23), LAYOUTS[0])
    list(loader)
    loader.itself = loader
    del loader
    gc.collect()
