"""Loaders that hand over whole batches, of data sets that are asked for several rows at once, beside the plain ones."""

import tempfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

from headrace.doctor.sameness.standing_in import Source
from headrace.doctor.subject import Subject
from headrace.doctor.subject.dividing import Divider, rows_in
from headrace.doctor.walks.observer import Telling

WHOLE = """
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

class Table(Dataset):
    def __init__(self, size=50, wrong=None):
        draws = np.random.default_rng(0)
        self.x, self.y = draws.random((size, 5), dtype=np.float32), draws.integers(0, 7, size)
        if wrong is not None:
            self.y[wrong] = (self.y[wrong] + 1) % 7
    def __len__(self): return len(self.y)
    def __getitem__(self, rows): return {"x": self.x[rows], "y": self.y[rows]}

class Together(Table):
    def __getitems__(self, rows): return self[rows]

class Noisy(Table):
    def __getitem__(self, rows):
        found = super().__getitem__(rows)
        return {**found, "x": found["x"] + np.random.random(found["x"].shape).astype(np.float32)}

class Turned(Table):
    def __getitem__(self, rows):
        found = super().__getitem__(rows)
        if isinstance(rows, list):
            np.random.random()  # one for the whole batch, before those of its rows
        return {**found, "x": found["x"] + np.random.random(found["x"].shape).astype(np.float32)}

class Ragged(Table):
    def __getitem__(self, rows):
        if isinstance(rows, list):
            return {"x": self.x[rows], "y": self.y[rows], "mean": float(self.x[rows].mean())}
        return super().__getitem__(rows)

class Lists(Table):
    def __getitem__(self, rows): return {"x": np.stack([self.x[row] for row in rows]), "y": self.y[list(rows)]}

def handed(batch): return batch

def whole(data, order=RandomSampler, size=8, **more):
    return DataLoader(data, sampler=BatchSampler(order(data), size, False), batch_size=None, **more)

def right(): return DataLoader(Table(), batch_size=8, shuffle=True)
def other(): return whole(Table())
def together(): return DataLoader(Together(), batch_size=8, shuffle=True, collate_fn=handed)
def swapped(): return whole(Table(wrong=17))
def swapped_together(): return DataLoader(Together(wrong=17), batch_size=8, shuffle=True, collate_fn=handed)
def ordered(): return whole(Table(), SequentialSampler)
def fewer(): return whole(Table(), size=10)
def noisy(): return DataLoader(Noisy(), batch_size=8, shuffle=True)
def noisy_whole(): return whole(Noisy())
def turned(): return DataLoader(Turned(), batch_size=8, shuffle=True)
def turned_whole(): return whole(Turned())
def ragged(): return whole(Ragged())
def fewer_ragged(): return whole(Ragged(), size=10)
def lists(): return whole(Lists())
"""


def test_a_sampler_of_batches_delivers_the_same_samples(compared, verdicts):
    found = compared(WHOLE, levels=("E0", "E1", "E2", "E3", "E4", "E5"))
    assert verdicts(found) == "E0= E1= E2= E3= E5="
    assert found.side_b.num_samples == (50, 50)


def test_workers_that_are_asked_for_whole_batches(compared, verdicts):
    assert verdicts(compared(WHOLE, workers=(0, 2), num_epochs=1)) == "E0= E1= E2= E3="


def test_a_data_set_that_makes_the_batch_itself(compared, verdicts):
    assert verdicts(compared(WHOLE, "together")) == "E0= E1= E2= E3="


def test_a_data_set_that_takes_nothing_but_lists(compared, verdicts):
    assert verdicts(compared(WHOLE, "lists")) == "E0= E1= E2= E3="


@pytest.mark.parametrize("name", ["swapped", "swapped_together"])
def test_a_wrong_label_is_found_with_its_id(compared, verdicts, name):
    found = compared(WHOLE, name)
    assert verdicts(found) == "E0= E1= E2! E3="
    first = found.first_level.first
    assert (first.sample_id, first.field) == (17, "y")


def test_another_order_and_other_batches(compared, verdicts):
    found = compared(WHOLE, "ordered")
    assert verdicts(found) == "E0= E1! E2= E3="
    assert found.first_level.first.in_b == "0"
    assert verdicts(compared(WHOLE, "fewer")) == "E0= E1! E2= E3="


def test_random_fields_are_set_back_row_by_row(write_file, verdicts):
    from headrace.doctor.sameness.compare import compare

    target = write_file(WHOLE)
    found = compare(target("noisy"), target("noisy_whole"))
    assert verdicts(found) == "E0= E1= E2= E4="


def test_a_batch_that_draws_otherwise_than_a_row_is_no_fault(write_file, verdicts):
    from headrace.doctor.sameness.compare import compare

    target = write_file(WHOLE)
    found = compare(target("turned"), target("turned_whole"))
    assert verdicts(found) == "E0= E1= E2= E4?"
    assert "whole batches" in next(one.reason for one in found.levels if one.level == "E4")


def test_batches_that_cannot_be_divided_are_not_called_different(compared, write_file, verdicts):
    from headrace.doctor.sameness.compare import compare

    found = compared(WHOLE, "ragged")
    assert (found.verdict, verdicts(found)) == ("inconclusive", "E0? E1? E2? E3?")
    assert "8 rows were asked for at once" in found.levels[0].reason
    target = write_file(WHOLE)
    assert verdicts(compare(target("ragged"), target("ragged"), workers=(0, 1))) == "E0= E1= E2= E3="
    assert "!" not in verdicts(compare(target("ragged"), target("fewer_ragged")))


# Many forms of samples, in this process.

DTYPES = ["uint8", "int16", "int64", "float16", "float32", "float64", "bool"]
SHAPES = st.lists(st.integers(1, 3), max_size=2).map(tuple)
COLUMNS = st.one_of(
    st.tuples(st.sampled_from([np.asarray, torch.as_tensor]), st.sampled_from(DTYPES), SHAPES),
    st.just((list, "int64", ())),
    st.just((list, "str", ())),
)
FORMS = ["array", "tuple", "list", "dict", "nested"]


class Columns(Dataset):
    def __init__(self, columns, form, size):
        draws = np.random.default_rng(1)
        self.form = form
        self.columns = [
            make((draws.random((size, *shape)) * 50).astype(kind)) if make is not list else _texts(draws, kind, size)
            for make, kind, shape in columns
        ]
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, rows):
        many = isinstance(rows, list)
        parts = [[one[row] for row in rows] if many and type(one) is list else one[rows] for one in self.columns]
        if self.form == "array":
            return parts[0]
        if self.form in {"tuple", "list"}:
            return tuple(parts) if self.form == "tuple" else parts
        named = {f"c{place}": part for place, part in enumerate(parts)}
        return named if self.form == "dict" else {"in": named, "row": torch.as_tensor(rows)}


def _texts(draws, kind, size):
    return [f"row {row}" if kind == "str" else int(draws.integers(9)) for row in range(size)]


def told(loader, folder):
    """(name, fields) of each sample as a walk sees it."""
    wish = type("Wish", (), {"num_workers": 0, "folder": folder, "telling": Telling(), "wanted_at": None})()
    source = Source(Subject(loader), wish)
    torch.manual_seed(0)
    return [(note.name, note.fields) for item in source.begin() for note in source.take_apart(item)[0]]


def handed_on(batch):
    return batch


@settings(max_examples=60, deadline=None)
@given(columns=st.lists(COLUMNS, min_size=1, max_size=3), form=st.sampled_from(FORMS), data=st.data())
def test_every_form_of_sample_is_told_alike(columns, form, data):
    has_array = any(make is not list for make, _, _ in columns)
    if not has_array and form != "nested":
        columns = [*columns, (np.asarray, "float32", ())]
    if form == "array":
        columns = [next(one for one in columns if one[0] is not list)]
    size, batch_size = data.draw(st.integers(5, 14)), data.draw(st.integers(3, 6))

    def fresh(base=Columns):  # classes are hooked for good
        return type("Data", (base,), {})(columns, form, size)

    class Joined(Columns):
        def __getitems__(self, rows):
            return self[rows]

    with tempfile.TemporaryDirectory() as folder:
        plain = told(DataLoader(fresh(), batch_size=batch_size, shuffle=True, collate_fn=handed_on), folder)
        many = fresh()
        batches = BatchSampler(RandomSampler(many), batch_size, drop_last=False)
        assert told(DataLoader(many, sampler=batches, batch_size=None), folder) == plain
        joined = DataLoader(fresh(Joined), batch_size=batch_size, shuffle=True, collate_fn=handed_on)
        assert told(joined, folder) == plain
    assert sorted(name for name, _ in plain) == list(range(size))


def test_what_two_rows_make_is_told_by_the_batches_before():
    pair = [torch.zeros(2, 3), torch.ones(2, 3)]
    assert Divider()(pair, 2)[0] is pair[0]
    divider = Divider()
    divider([torch.zeros(5, 3), torch.ones(5, 3)], 5)
    assert [tuple(part.tolist() for part in one) for one in divider(pair, 2)] == [([0] * 3, [1] * 3)] * 2


def test_what_cannot_be_divided_into_so_many_is_not():
    assert Divider()({"x": torch.zeros(4, 2), "scale": 1.0}, 4) is None
    assert Divider()(torch.zeros(5, 2), 4) is None


@pytest.mark.parametrize(
    "index", [3, (3, 4), "name", [], [True, False], [[0, 1], [2]], torch.tensor(3), np.zeros((2, 2))]
)
def test_one_row_is_no_batch(index):
    assert rows_in(index, 9) is None


@pytest.mark.parametrize("index", [[3, 4], np.array([3, 4]), torch.tensor([3, 4]), range(3, 5), slice(3, 5)])
def test_lists_arrays_and_slices_are_batches_of_rows(index):
    rows, single = rows_in(index, 9)
    table = torch.arange(9)
    assert list(map(int, rows)) == [3, 4]
    assert [table[one].tolist() for one in single] == [[3], [4]]
