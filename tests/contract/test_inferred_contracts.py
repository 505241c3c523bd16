"""Laws of inference: what was seen fits, sound data that were not seen fit too, and the same data give the same contract."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import headrace
from headrace.contract import Contract, Field
from headrace.contract.infer import chosen_indices
from headrace.errors import ConfigurationError, SourceError


class Recipe:
    """A sound data set: each field has its own rule, and every sample is drawn anew from it."""

    def __init__(self, parts, seed, size, container):
        self.parts, self.seed, self.size, self.container = parts, seed, size, container
        if "label" in parts:
            self.classes = [f"class {number}" for number in range(10)]

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        rng = np.random.default_rng([self.seed, index])
        length, height, width = rng.integers(5, 40, size=3)
        made = {
            "photo": lambda: torch.from_numpy(rng.integers(0, 256, (3, height, width), dtype=np.uint8)),
            "tile": lambda: rng.integers(0, 256, (16, 16, 3), dtype=np.uint8),
            "scaled": lambda: np.clip(rng.normal(0.5, 1, (3, 8, 8)), 0, 1).astype(np.float32),
            "features": lambda: torch.from_numpy(rng.normal(size=12).astype(np.float32)),
            "tokens": lambda: torch.from_numpy(rng.integers(0, 5000, length)),
            "attention_mask": lambda: torch.from_numpy(rng.random(length) < 0.8),
            "frames": lambda: rng.normal(size=(length, 7)),
            "ids": lambda: rng.integers(0, 9, rng.integers(0, 40)).tolist(),
            "label": lambda: int(rng.integers(0, 10)),
            "weight": lambda: float(rng.normal()),
            "caption": lambda: "word " * int(rng.integers(0, 9)),
            "is_hard": lambda: bool(rng.random() < 0.5),
            "note": lambda: None if rng.random() < 0.5 else "seen",
            "boxes": lambda: [rng.normal(size=4) for _ in range(rng.integers(0, 5))],
            "nested": lambda: {"x": rng.normal(size=(2, length)), "y": (int(rng.integers(9)), "text")},
        }
        sample = {name: made[name]() for name in self.parts}
        return sample if self.container is dict else self.container(sample.values())


PARTS = st.lists(
    st.sampled_from(
        [
            *("photo", "tile", "scaled", "features", "tokens", "attention_mask", "frames", "ids", "label", "weight"),
            *("caption", "is_hard", "note", "boxes", "nested"),
        ]
    ),
    min_size=1,
    max_size=6,
    unique=True,
)
RECIPES = st.builds(Recipe, PARTS, st.integers(0, 2**32), st.integers(1, 150), st.sampled_from([dict, dict, tuple]))


@settings(max_examples=40)
@given(RECIPES, st.integers(1, 150))
def test_samples_that_were_seen_fit(data, max_samples):
    contract = Contract.infer(data, max_samples=max_samples)
    for index in chosen_indices(len(data), max_samples):
        assert contract.check_sample(data[index], index) == []


@settings(max_examples=30)
@given(PARTS, st.integers(0, 2**32), st.sampled_from([dict, tuple]))
def test_sound_samples_that_were_not_seen_fit(parts, seed, container):
    data = Recipe(parts, seed, 120, container)
    contract = Contract.infer(data, max_samples=48)
    for index in range(len(data)):
        assert contract.check_sample(data[index], index) == []


@settings(max_examples=10)
@given(RECIPES)
def test_the_same_data_give_the_same_contract(data):
    assert Contract.infer(data) == Contract.infer(data)


@given(st.integers(1, 10_000), st.integers(1, 100))
def test_edges_and_a_spread_are_looked_at(size, max_samples):
    indices = chosen_indices(size, max_samples)
    assert indices == sorted(set(indices))
    assert len(indices) <= max_samples
    assert set(indices) <= set(range(size))
    assert 0 in indices
    if max_samples >= 4:
        assert {0, min(1, size - 1), max(size - 2, 0), size - 1} <= set(indices)
        # No stretch without a look is longer than two of the equal parts.
        gap = max(after - before for before, after in itertools.pairwise(indices)) if len(indices) > 1 else 0
        assert gap <= 2 * (size // max(max_samples - 4, 1) + 1)


def test_what_is_fixed_and_what_is_not():
    data = Recipe(["photo", "scaled", "features", "tokens", "attention_mask", "caption", "label"], 0, 100, dict)
    assert Contract.infer(data) == Contract(
        num_samples=100,
        fields=(
            Field(name="photo", kind="tensor", dtype="uint8", shape=(3, "H", "W"), axes="CHW", minimum=0, maximum=255),
            Field(name="scaled", kind="array", dtype="float32", shape=(3, 8, 8), axes="CHW", minimum=0, maximum=1),
            Field(name="features", kind="tensor", dtype="float32", shape=(12,)),
            Field(name="tokens", kind="tensor", dtype="int64", shape=("T",), mask="attention_mask"),
            Field(name="attention_mask", kind="tensor", dtype="bool", shape=("T",), role="mask"),
            Field(name="caption", kind="string", role="other"),
            Field(name="label", kind="number", dtype="int", shape=(), role="target", num_classes=10),
        ),
    )


def test_a_square_picture_does_not_promise_that_all_are_square():
    data = [np.zeros((3, side, side), np.uint8) for side in (8, 9, 10, 11)]
    contract = Contract.infer(data)
    assert contract.fields[0].shape == (3, "H", "W")
    assert contract.check_sample(np.zeros((3, 8, 9), np.uint8), 4) == []


def test_two_equal_lengths_may_be_chance_but_three_are_a_rule():
    def lengths(*sizes):
        return [{"a": np.zeros(size), "b": np.ones(size)} for size in sizes]

    assert [field.shape for field in Contract.infer(lengths(2, 3)).fields] == [("T",), ("T2",)]
    assert [field.shape for field in Contract.infer(lengths(2, 3, 4)).fields] == [("T",), ("T",)]


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([0.0, 0.5, 1.0], (0, 1)),
        ([-1.0, 0.25, 1.0], (-1, 1)),
        ([0.0, 17.0, 255.0], (0, 255)),
        ([0.0, 0.5, 0.9], (None, None)),  # one end is not touched: the next sample may pass it
        ([0.0, 1.0, 1.0], (None, None)),  # counts so far
        ([-3.1, 0.0, 3.2], (None, None)),
    ],
)
def test_only_usual_scales_bound_floating_values(values, bounds):
    field = Contract.infer([np.float32(value) for value in values]).fields[0]
    assert (field.minimum, field.maximum) == bounds


def test_the_word_of_the_data_set_on_classes_wins_over_what_was_seen():
    class Wrong(list):
        classes = ("cat", "dog", "fox")

    data = Wrong([(np.zeros(2), label) for label in (0, 1, 2, 3)])
    breaches = Contract.infer(data).check_sample(data[3], "d.png")
    assert [breach.message for breach in breaches] == [
        "sample d.png, field 1: expected values in 0..2 (3 classes), found 3"
    ]


@pytest.mark.parametrize("mark", [-100, -1, 255])
def test_a_usual_mark_for_no_target_is_recognised(mark):
    class Partly(list):
        num_classes = 3

    field = Contract.infer(Partly([{"y": label} for label in (0, 1, 2, mark, 1)])).field("y")
    assert (field.num_classes, field.ignore_index) == (3, mark)


def test_classes_that_are_those_of_another_field_fix_nothing():
    class Coarse(list):
        classes = ("a", "b")

    data = Coarse([{"label": index % 2, "target": index * 10 + 5} for index in range(9)])
    assert [field.num_classes for field in Contract.infer(data).fields] == [2, None]


def test_classes_are_found_below_a_subset():
    data = Recipe(["photo", "label"], 0, 30, tuple)
    assert Contract.infer(torch.utils.data.Subset(data, range(5))).fields[1].num_classes == 10


def test_fields_that_come_and_go_are_optional():
    contract = Contract.infer([{"x": 1, "note": "a"}, {"x": 2}, {"x": 3, "note": None}])
    assert contract.field("note").required is False
    assert contract.extra_fields == "ignore"


def test_a_plan_says_whether_its_stages_change_shapes():
    plan = headrace.arrays(image=np.zeros((9, 8, 8), np.uint8), label=np.arange(9))
    assert Contract.infer(plan).may_reshape is False
    assert Contract.infer(plan.map(lambda row: {**row, "image": row["image"] + 1}, name="add")).may_reshape is False
    cropped = plan.map(lambda row: {**row, "image": row["image"][:4]}, name="crop")
    assert Contract.infer(cropped).may_reshape is True
    assert Contract.infer(cropped).field("image").shape == (4, 8)


def test_arrays_of_text_of_different_width_are_one_field():
    contract = Contract.infer([np.array(["a", "b"]), np.array(["longer", "c"])])
    assert contract.check_sample(np.array(["much longer", "d"]), 2) == []


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield 1


@pytest.mark.parametrize(
    ("data", "error", "what"),
    [
        ([], SourceError, "^the data set is empty"),
        ([None, None], SourceError, "^all 2 samples that were looked at are None"),
        ({"x": 1}, ConfigurationError, "^a contract is inferred from many samples, and dict is not indexed"),
        ("text", ConfigurationError, "^a contract is inferred from many samples, and str is not indexed"),
        (iter([1]), ConfigurationError, "^a contract is inferred from many samples, and list_iterator is not"),
        (torch.utils.data.DataLoader([1]), ConfigurationError, r"DataLoader is not indexed(.|\n)*pass loader\.dataset"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(data, error, what):
    with pytest.raises(error, match=what):
        Contract.infer(data)


def test_a_sample_that_cannot_be_read_is_named_and_keeps_its_error():
    class Broken(Recipe):
        def __getitem__(self, index):
            if index == 9:
                raise OSError("truncated file")
            return super().__getitem__(index)

        def sample_id(self, index):
            return f"{index}.png"

    with pytest.raises(OSError, match=r"^truncated file") as caught:
        Contract.infer(Broken(["photo"], 0, 10, dict))
    assert "sample 9.png (index 9)" in caught.value.__notes__[0]


def test_at_least_one_sample_is_looked_at():
    with pytest.raises(ConfigurationError, match=r"^max_samples must be at least 1, not 0"):
        Contract.infer([1], max_samples=0)


def test_a_length_that_lies_is_pointed_at():
    class Lies(list):
        def __len__(self):
            return 12

    with pytest.raises(IndexError) as caught:
        Contract.infer(Lies([{"x": 1}] * 10))
    assert "look at __len__: it says 12 samples" in caught.value.__notes__[0]
