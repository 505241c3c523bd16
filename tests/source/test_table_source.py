"""TableSource passes the exam over tables in memory, Arrow files and Parquet, and refuses what is no table."""

import pickle

import numpy as np
import pytest

import headrace as hr
from headrace.engine.source import TableSource
from headrace.errors import ConfigurationError, SourceError
from headrace.testing.sources import SourceSuite

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq  # noqa: E402 - it needs pyarrow

NAMES = ["a", "bb", "ä", "", "e", "f", "g"]
WIDTHS = [[row, row + 0.5] for row in range(7)]


def make_table():
    """Seven rows in chunks of 3, 0 and 4, each a slice of something longer."""
    whole = pa.table(
        {
            "x": pa.array([[9, 9], *WIDTHS], pa.list_(pa.float32(), 2)),
            "name": pa.array(["no", *NAMES]),
            "maybe": pa.array([5, None, *range(6)], pa.int16()),
        }
    ).slice(1)
    return pa.concat_tables([whole.slice(0, 3), whole.slice(3, 0), whole.slice(3)])


RECORDS = {
    row: {
        "x": np.array(WIDTHS[row], np.float32),
        "name": NAMES[row],
        "maybe": None if row == 0 else np.int16(row - 1),
    }
    for row in range(7)
}


class TestTable(SourceSuite):
    @pytest.fixture
    def source(self, tmp_path):
        return TableSource(make_table())

    @pytest.fixture
    def expected(self):
        return RECORDS


class TestRecordBatch(TestTable):
    @pytest.fixture
    def source(self):
        return TableSource(make_table().combine_chunks().to_batches()[0])


class TestParquet(TestTable):
    @pytest.fixture
    def source(self, tmp_path):
        pq.write_table(make_table(), tmp_path / "rows.parquet", row_group_size=2)
        return TableSource(tmp_path / "rows.parquet")


class TestArrowFile(TestTable):
    @pytest.fixture
    def source(self, tmp_path):
        with pa.ipc.new_file(tmp_path / "rows.arrow", make_table().schema) as writer:
            writer.write_table(make_table())
        return TableSource(str(tmp_path / "rows.arrow"))


class TestArrowStreams(TestTable):
    @pytest.fixture
    def source(self, tmp_path):
        for number, part in enumerate([make_table().slice(0, 4), make_table().slice(4)]):
            with pa.ipc.new_stream(tmp_path / f"{number}.arrow", part.schema) as writer:
                writer.write_table(part)
        return TableSource([tmp_path / "0.arrow", tmp_path / "1.arrow"])


def test_the_fingerprint_is_of_the_rows_and_not_of_the_chunks(tmp_path):
    table = make_table()
    pq.write_table(table, tmp_path / "rows.parquet")
    pq.write_table(table, tmp_path / "cut.parquet", row_group_size=2)
    assert len({TableSource(tmp_path / f"{name}.parquet").fingerprint() for name in ("rows", "cut")}) == 1
    fingerprint = TableSource(table).fingerprint()
    assert TableSource(table.combine_chunks()).fingerprint() == fingerprint
    for other in (table.slice(1), table.select(["x", "name"]), table.slice(3).combine_chunks()):
        assert TableSource(other).fingerprint() != fingerprint
    changed = table.set_column(1, "name", pa.array([*NAMES[:-1], "G"]))
    assert TableSource(changed).fingerprint() != fingerprint
    words = pa.table({"w": pa.array(["a", "b"]).dictionary_encode()})
    again = pa.table({"w": pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["b", "a"]))}).cast(words.schema)
    assert TableSource(words).fingerprint() == TableSource(again).fingerprint()


def test_equal_tables_are_equal_sources():
    assert TableSource(make_table()) == TableSource(make_table().combine_chunks())
    assert hash(TableSource(make_table())) == hash(TableSource(make_table()))
    assert TableSource(make_table()) != TableSource(make_table().slice(1))


def test_columns_are_chosen_and_ordered(tmp_path):
    pq.write_table(make_table(), tmp_path / "rows.parquet")
    for table in (make_table(), tmp_path / "rows.parquet"):
        plan = hr.table(table, columns=["name", "x"])
        assert list(plan[1]) == ["name", "x"]
    with pytest.raises(ConfigurationError, match=r"^there is no column 'nme'; did you mean 'name'\?"):
        hr.table(tmp_path / "rows.parquet", columns=["nme"])


def test_a_file_travels_as_its_name_and_a_slice_without_the_rest(tmp_path):
    whole = pa.table({"x": np.zeros(100_000)})
    pq.write_table(whole, tmp_path / "rows.parquet")
    assert len(pickle.dumps(TableSource(tmp_path / "rows.parquet"))) < 1000
    assert len(pickle.dumps(TableSource(whole.slice(5, 10)))) < 5000


def test_a_row_says_where_it_is(tmp_path):
    pq.write_table(make_table(), tmp_path / "rows.parquet")
    assert TableSource(tmp_path / "rows.parquet").locate(3) == f"{tmp_path / 'rows.parquet'}, row 3"
    assert TableSource(make_table()).locate(3) is None
    assert "7 rows: x fixed_size_list" in repr(hr.table(make_table()))


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"no parquet at all")
    (tmp_path / "bad.arrow").write_bytes(b"no arrow at all")
    for name in ("bad.parquet", "bad.arrow"):
        with pytest.raises(SourceError, match=r"^this is no table: "):
            hr.table(tmp_path / name)
    with pytest.raises(SourceError, match=r"^there is no such file: .*none.parquet"):
        hr.table(tmp_path / "none.parquet")
    with pytest.raises(ConfigurationError, match=r"^a table is a pyarrow.Table"):
        hr.table([1, 2])
    pq.write_table(make_table(), tmp_path / "a.parquet")
    pq.write_table(pa.table({"z": [1]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"^the files do not make one table"):
        hr.table([tmp_path / "a.parquet", tmp_path / "b.parquet"])


def test_a_path_given_as_a_data_set_names_both_doors(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^a path is not a data set") as caught:
        hr.DataLoader(tmp_path / "rows.parquet")
    assert "headrace.table(" in str(caught.value)


def test_a_table_stays_what_it_is_under_a_stage():
    plan = hr.table(make_table()).map(lambda row: row["name"].upper(), name="shout")
    assert [plan[row] for row in range(7)] == [name.upper() for name in NAMES]
