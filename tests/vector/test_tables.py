"""Batches of Arrow tables are those of reading row by row and collating, byte for byte, however a table is cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_containers import image, plain_collate, stages

import headrace as hr

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from arrow_tables import KINDS, NUMBERS, Rows, arrow_array, column  # noqa: E402 - it needs pyarrow

GATHERED = {
    *(set(NUMBERS) - {"uint64"}),
    *("text", "large text", "binary", "empty text", "words", "large words", "word numbers"),
    *("fixed list", "fixed list of fixed lists", "list of one length", "large list of one length"),
    *("struct", "struct of lists"),
}


def outcome(data, **options):
    """Images of all batches of an epoch, or what is said of the failure."""
    try:
        loader = hr.DataLoader(data, seed=3, **options)
        return [(image(batch), loader.last.sample_ids) for batch in loader]
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=max(1, settings.default.max_examples // 4))  # for each of many kinds
@given(
    num_rows=st.integers(1, 24),
    num_chunks=st.integers(1, 6),
    batch_size=st.integers(1, 9),
    shuffle=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_kind_of_column(kind, num_rows, num_chunks, batch_size, shuffle, seed):
    rng = np.random.default_rng(seed)
    table = pa.table({"x": column(kind, rng, num_rows, num_chunks), "y": pa.array(np.arange(num_rows))})
    common = {"batch_size": batch_size, "shuffle": shuffle}
    expected = outcome(Rows(table), **common)
    assert outcome(table, **common) == expected
    assert (
        outcome(hr.table(table), **common, collate_fn=plain_collate)[0]
        == outcome(Rows(table), **common, collate_fn=plain_collate)[0]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_columns_are_gathered(kind):
    rng = np.random.default_rng(0)
    table = pa.table({"x": column(kind, rng, 20, 3), "row": pa.array(range(20))})
    loader = hr.DataLoader(table, batch_size=4, shuffle=True)
    try:
        list(loader)
    except Exception:  # torch's rules do not join such values
        assert kind not in GATHERED
        return
    assert (stages(loader) == ["read"]) == (kind in GATHERED)


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_every_runner_gathers_the_same(runner):
    table = pa.table({"x": column("fixed list", np.random.default_rng(0), 40, 5), "name": [f"n{k}" for k in range(40)]})
    common = {"batch_size": 6, "shuffle": True}
    assert outcome(table, **common, runner=runner, num_workers=2) == outcome(Rows(table), **common)


def test_chunks_far_apart_and_many_of_them():
    rng = np.random.default_rng(1)
    chunks = [rng.integers(0, 9, rng.integers(0, 5)) for _ in range(500)]
    keep = [np.zeros(1 << 16) for _ in chunks]  # memory between the chunks
    table = pa.table({"x": pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks])})
    (batch,) = hr.DataLoader(table, batch_size=len(table))
    assert batch["x"].tolist() == np.concatenate(chunks).tolist()
    assert keep


def test_a_batch_is_a_copy_that_may_be_written_to():
    table = pa.table({"x": arrow_array("fixed list", np.random.default_rng(0), 8), "y": pa.array([1.5] * 8)})
    before = table.to_pylist()
    for data in (table, hr.table(table).map(lambda row: row, name="same")):
        for batch in hr.DataLoader(data, batch_size=4):
            batch["x"].fill_(7)
            batch["y"].fill_(7)
    assert table.to_pylist() == before


def test_columns_of_one_name_and_unknown_ones_are_refused():
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(hr.errors.ConfigurationError, match=r"^there are two columns named 'a'"):
        hr.table(twice)
    with pytest.raises(hr.errors.ConfigurationError, match=r"^there is no column 'lable'; did you mean 'label'\?"):
        hr.table(pa.table({"label": [1]}), columns=["lable"])
    with pytest.raises(hr.errors.ConfigurationError, match=r"^a table without columns"):
        hr.table(pa.table({}))
