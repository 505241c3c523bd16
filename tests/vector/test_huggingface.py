"""A Hugging Face data set gives the batches that its user gets from torch, byte for byte, gathered where that is safe."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Subset
from vector_containers import image, stages

import headrace as hr

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")
from arrow_tables import NUMBERS, column  # noqa: E402 - it needs pyarrow

KINDS = [
    *(kind for kind in NUMBERS if kind != "uint64"),
    *("text", "large text", "binary", "empty text"),
    *("fixed list", "fixed list of fixed lists", "list of one length", "large list of one length"),
    *("lists of many lengths", "empty lists", "struct", "nulls", "text with nulls", "timestamp", "list of lists"),
]
FORMATS = (None, "numpy", "torch")


def outcome(make, data, **options):
    """Images of all batches, or that it failed."""
    try:
        return [image(dict(batch)) for batch in make(data, **options)]
    except Exception:
        return "fails"


def dataset(kind, rng, num_rows, num_chunks):
    table = pa.table({"x": column(kind, rng, num_rows, num_chunks), "y": pa.array(np.arange(num_rows))})
    return datasets.Dataset(table)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=max(1, settings.default.max_examples // 4))  # for each of many kinds
@given(
    form=st.sampled_from(FORMATS),
    num_rows=st.integers(1, 12),
    num_chunks=st.integers(1, 4),
    batch_size=st.integers(1, 5),
    chosen=st.booleans(),
    is_subset=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_kind_of_column(kind, form, num_rows, num_chunks, batch_size, chosen, is_subset, seed):
    rng = np.random.default_rng(seed)
    data = dataset(kind, rng, num_rows, num_chunks).with_format(form)
    if chosen:
        data = data.select(rng.integers(0, num_rows, num_rows))
    if is_subset:
        data = Subset(data, rng.permutation(num_rows).tolist())
    assert outcome(hr.DataLoader, data, batch_size=batch_size) == outcome(TorchLoader, data, batch_size=batch_size)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["bool", "int16", "float32", "float64", "text", "fixed list", "list of one length"])
def test_ordinary_columns_are_gathered(kind, form):
    data = dataset(kind, np.random.default_rng(0), 20, 3).with_format(form)
    for each in (data, data.shuffle(seed=1), data.select(range(3, 17)), data.train_test_split(0.3, seed=0)["train"]):
        loader = hr.DataLoader(each, batch_size=4, shuffle=True)
        list(loader)
        assert stages(loader) == ["read"]


def plain(data):
    loader = hr.DataLoader(data, batch_size=4)
    ours = [image(dict(batch)) for batch in loader]
    assert ours == [image(batch) for batch in TorchLoader(data, batch_size=4)]
    return "collate" in stages(loader)


def test_what_may_differ_goes_the_plain_way():
    data = dataset("fixed list", np.random.default_rng(0), 10, 2)
    assert plain(data.with_transform(lambda batch: {"x2": [np.array(row) * 2 for row in batch["x"]]}))
    assert plain(data.with_format("torch", dtype=torch.float64))
    assert plain(data.with_format("torch", columns=["y"], output_all_columns=True))
    assert not plain(data.with_format("torch", columns=["y"]))

    class Doubling(datasets.Dataset):
        def __getitems__(self, rows):
            return [{"x": 2 * row} for row in rows]

    assert plain(Doubling(data.data))


def test_a_format_that_is_set_in_place_counts_at_once():
    data = dataset("float64", np.random.default_rng(0), 8, 2)
    loader = hr.DataLoader(data, batch_size=4)
    seen = []
    for form in (None, "numpy", None, "torch"):
        data.set_format(form)
        seen.append({batch["x"].dtype for batch in loader})
    assert seen == [{torch.float64}, {torch.float32}, {torch.float64}, {torch.float32}]
    data.set_transform(lambda batch: {"z": batch["y"]})
    assert [list(batch) for batch in loader] == [["z"], ["z"]]


def test_files_are_gathered_where_they_are_mapped(tmp_path):
    rows = {"x": [[row, row + 1.5] for row in range(50)], "label": list(range(50))}
    features = datasets.Features(
        {"x": datasets.List(datasets.Value("float32"), length=2), "label": datasets.ClassLabel(50)}
    )
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "kept")
    data = datasets.load_from_disk(tmp_path / "kept").with_format("torch")
    loader = hr.DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
    seen = {label: row for batch in loader for label, row in zip(batch["label"].tolist(), batch["x"], strict=True)}
    assert stages(loader) == ["read"]
    assert {label: row.tolist() for label, row in seen.items()} == dict(enumerate(rows["x"]))


def test_a_batch_of_one_is_read_as_torch_reads_it():
    # The numpy format narrows a batch of float64 to float32, and leaves a single row as it is.
    data = datasets.Dataset.from_dict({"x": [0.1, 0.2, 0.3], "z": [1, None, 3]}).with_format("numpy")
    for options in ({"batch_size": 1}, {"batch_size": 2}, {"batch_size": None}):
        assert outcome(hr.DataLoader, data, **options) == outcome(TorchLoader, data, **options)
        assert outcome(hr.DataLoader, data, **options) != "fails"
