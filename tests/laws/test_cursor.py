"""A state survives JSON, is small, and is refused with both sides printed when it does not fit."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.order.cursor import FORMAT, Cursor
from headrace.errors import StateMismatch

FINGERPRINT = {"num_samples": 1797, "data": "folder:9f2c", "order": "keyed-1", "stages": "decode:1a > crop:77"}
COUNTS = st.integers(0, 2**63)
CURSORS = st.builds(
    Cursor,
    seed=st.integers(),
    epoch=COUNTS,
    consumed=COUNTS,
    fingerprint=st.dictionaries(st.text(), st.text() | st.integers()),
    order_digest=st.none() | st.text(),
    layout=st.none() | st.dictionaries(st.text(), st.integers()),
)


def a_cursor(**changes):
    return Cursor(**{"seed": 7, "epoch": 2, "consumed": 640, "fingerprint": FINGERPRINT, **changes})


@given(CURSORS)
def test_a_state_survives_json_and_pickle(cursor):
    assert Cursor.from_state_dict(json.loads(json.dumps(cursor.state_dict()))) == cursor
    assert pickle.loads(pickle.dumps(cursor)) == cursor


def test_a_state_stays_under_one_kilobyte():
    fingerprint = {"num_samples": 2**48, "data": "f" * 64, "order": "torch-WeightedRandomSampler", "stages": "s" * 128}
    layout = {"world_size": 65_536, "num_workers": 256}
    cursor = a_cursor(
        seed=2**128 - 1,
        epoch=2**63,
        consumed=2**63,
        fingerprint=fingerprint,
        order_digest="d" * 16,
        layout=layout,
    )
    assert len(json.dumps(cursor.state_dict())) < 1000


def test_a_state_is_a_copy():
    cursor = a_cursor(layout={"world_size": 2})
    state = cursor.state_dict()
    state["fingerprint"]["num_samples"] = 0
    state["layout"]["world_size"] = 0
    assert cursor == a_cursor(layout={"world_size": 2})


def test_a_cursor_is_taken_where_a_state_is():
    cursor = a_cursor()
    assert Cursor.from_state_dict(cursor) is cursor


@pytest.mark.parametrize("parameter", ["mapping", "cursor"])
def test_a_state_fits_its_own_loader_wherever_it_stands(parameter):
    elsewhere = a_cursor(seed=8, epoch=9, consumed=0)
    a_cursor().check_fits(elsewhere if parameter == "cursor" else dict(FINGERPRINT))


@given(st.sampled_from(sorted(FINGERPRINT)))
def test_whatever_differs_is_refused_with_both_sides(key):
    other = {**FINGERPRINT, key: "another"}
    message = rf"^the saved state does not fit this loader; different: {key}\n"
    with pytest.raises(StateMismatch, match=message) as caught:
        a_cursor().check_fits(other)
    assert f"saved: {FINGERPRINT[key]}\n" in str(caught.value)
    assert "here:  another\n" in str(caught.value)
    assert "ranks, workers, runner and batch size may differ safely" in str(caught.value)
    with pytest.raises(StateMismatch, match=message):
        a_cursor().check_fits(a_cursor(fingerprint=other))


def test_a_key_that_one_side_lacks_is_refused():
    fewer = {key: value for key, value in FINGERPRINT.items() if key != "stages"}
    with pytest.raises(StateMismatch, match=r"(?s)different: stages\n.*here:  nothing"):
        a_cursor().check_fits(fewer)
    with pytest.raises(StateMismatch, match=r"(?s)different: stages\n.*saved: nothing"):
        a_cursor(fingerprint=fewer).check_fits(FINGERPRINT)


def test_another_list_of_the_same_epoch_is_refused():
    cursor = a_cursor(order_digest="0011")
    cursor.check_fits(FINGERPRINT)
    cursor.check_fits(FINGERPRINT, order_digest="0011")
    cursor.check_fits(a_cursor(order_digest="2233", epoch=3))
    for mine in ({"fingerprint": FINGERPRINT, "order_digest": "2233"}, {"fingerprint": a_cursor(order_digest="2233")}):
        with pytest.raises(StateMismatch, match="different: order_digest"):
            cursor.check_fits(**mine)


def test_ranks_and_workers_count_only_where_the_state_depends_on_them():
    layout = {"world_size": 2, "num_workers": 4}
    a_cursor().check_fits(FINGERPRINT, layout=layout)
    bound = a_cursor(layout=layout)
    bound.check_fits(FINGERPRINT, layout={"num_workers": 4, "world_size": 2})
    with pytest.raises(StateMismatch, match=r"different: layout\n") as caught:
        bound.check_fits(FINGERPRINT, layout={"world_size": 1, "num_workers": 4})
    assert "saved: num_workers 4, world_size 2\n" in str(caught.value)
    assert "ranks and workers may not" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "headrace-cursor-9"}, rf"^the saved state has format 'headrace-cursor-9'; .* reads '{FORMAT}'"),
        ({"format": None}, r"^the saved state has format None; this version"),
        ({"ordr_digest": "x"}, r"^the saved state has an unknown key 'ordr_digest'; did you mean 'order_digest'\?"),
        ({"seed": "7"}, r"^the saved state cannot be read: seed is '7'; it must be a whole number"),
        ({"epoch": 1.0}, r"^the saved state cannot be read: epoch is 1.0; it must be a whole number"),
        ({"consumed": True}, r"^the saved state cannot be read: consumed is True; it must be a whole number"),
        ({"epoch": -1}, r"^the saved state cannot be read: epoch is -1; it must be 0 or more"),
        ({"consumed": -5}, r"^the saved state cannot be read: consumed is -5; it must be 0 or more"),
        ({"fingerprint": [1]}, r"^the saved state cannot be read: fingerprint is \[1\]; it must be a mapping"),
        ({"fingerprint": {"data": 1.5}}, r"^the saved state cannot be read: fingerprint\['data'\] is 1.5; it must"),
        ({"order_digest": 5}, r"^the saved state cannot be read: order_digest is 5; it must be text"),
        ({"layout": {"world_size": "2"}}, r"^the saved state cannot be read: layout\['world_size'\] is '2'; it must"),
    ],
)
def test_states_that_cannot_be_read_are_refused(changes, message):
    with pytest.raises(StateMismatch, match=message):
        Cursor.from_state_dict({**a_cursor().state_dict(), **changes})


@pytest.mark.parametrize("key", ["seed", "epoch", "consumed", "fingerprint"])
def test_a_missing_key_is_named(key):
    state = a_cursor().state_dict()
    del state[key]
    with pytest.raises(StateMismatch, match=rf"^the saved state has no '{key}'\n"):
        Cursor.from_state_dict(state)


def test_what_is_no_state_of_ours_is_refused():
    with pytest.raises(
        StateMismatch, match=r"^this is no state of a headrace loader: it has no 'format' \(keys: _snap\)"
    ):
        Cursor.from_state_dict({"_snap": 3})
    with pytest.raises(StateMismatch, match=r"^a state is a mapping such as state_dict\(\) returns, not list$"):
        Cursor.from_state_dict([1, 2])
