"""Law: a manifest answers like the list it was built from."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.source import Manifest

# Surrogates stand for undecodable bytes; they have a test of their own.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# Few letters, so that one string often lies inside another, or across two.
ALIKE = st.text("ab", max_size=3)


@given(st.lists(TEXT, max_size=20), st.data())
def test_reads_like_the_list(strings, data):
    manifest = Manifest(iter(strings))
    assert len(manifest) == len(strings)
    assert list(manifest) == strings
    assert [manifest[i] for i in range(-len(strings), len(strings))] == strings + strings
    part = data.draw(st.slices(len(strings)))
    assert manifest[part] == strings[part]


@given(st.lists(ALIKE, max_size=12), ALIKE, st.integers(0, 12))
def test_finds_like_the_list(strings, wanted, start):
    manifest = Manifest(strings)
    assert (wanted in manifest) == (wanted in strings)
    try:
        row = strings.index(wanted, start)
    except ValueError:
        with pytest.raises(ValueError, match="is not in the manifest"):
            manifest.index(wanted, start)
    else:
        assert manifest.index(wanted, start) == row


@given(st.lists(st.tuples(TEXT, st.integers(-(2**63), 2**63 - 1)), max_size=10))
def test_columns_stand_beside_their_strings(rows):
    manifest = Manifest((text for text, _ in rows), size=(size for _, size in rows))
    assert manifest.column("size").tolist() == [size for _, size in rows]


@given(st.lists(TEXT, max_size=10))
def test_pickles_by_value(strings):
    manifest = Manifest(strings, label=range(len(strings)))
    copied = pickle.loads(pickle.dumps(manifest))
    assert copied == manifest
    assert hash(copied) == hash(manifest)
    assert list(copied) == strings
    assert copied.column("label").tolist() == list(range(len(strings)))


def test_pickle_holds_arrays_and_not_a_million_strings():
    strings = [f"class/{i:06d}.jpg" for i in range(10_000)]
    pickled = pickle.dumps(Manifest(strings, label=range(10_000)))
    assert len(pickled) == pytest.approx(sum(map(len, strings)) + 10_000 * 16, abs=1_000)


def test_nothing_can_be_changed():
    copied = pickle.loads(pickle.dumps(Manifest(["a"], label=[1])))
    for manifest in (Manifest(["a"], label=[1]), copied):
        with pytest.raises(ValueError, match="read-only"):
            manifest.column("label")[0] = 2
        with pytest.raises(AttributeError):
            manifest.anything = 1


def test_different_lists_are_not_equal():
    # The same text cut differently, and the same strings with other columns.
    assert Manifest(["ab", "c"]) != Manifest(["a", "bc"])
    assert Manifest(["a"], label=[0]) != Manifest(["a"], label=[1])
    assert Manifest(["a"]) != ["a"]
    assert len(set(map(bytes.__len__, Manifest(["a"]).buffers()))) == 2


@pytest.mark.parametrize("index", [2, -3])
def test_a_row_outside_is_an_index_error(index):
    with pytest.raises(IndexError, match=r"^row -?\d+ of a manifest with 2 rows$"):
        Manifest(["a", "b"])[index]


def test_a_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"^column 'label' has 1 values for 2 strings$"):
        Manifest(["a", "b"], label=[0])


def test_undecodable_bytes_are_refused():
    with pytest.raises(UnicodeEncodeError):
        Manifest(["ok", "\udcff"])


@given(st.lists(ALIKE, max_size=12), ALIKE)
def test_arrives_in_a_worker_as_memory_that_all_share(strings, wanted):
    manifest = Manifest(strings, label=range(len(strings)))
    buffers = []
    pickled = pickle.dumps(manifest, 5, buffer_callback=buffers.append)
    shared = [memoryview(bytearray(buffer.raw())) for buffer in buffers]
    arrived = pickle.loads(pickled, buffers=shared)
    assert arrived == manifest
    assert hash(arrived) == hash(manifest)
    assert list(arrived) == strings
    assert (wanted in arrived) == (wanted in strings)
    assert copy.deepcopy(arrived) == pickle.loads(pickle.dumps(arrived)) == manifest
    if "".join(strings):
        assert shared[0].obj is not None
        shared[0][:1] = b"c"
        assert arrived != manifest
