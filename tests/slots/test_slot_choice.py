"""Which results get a slot: sizes, numbers and the byte budget."""

import numpy as np
import pytest

from headrace.engine.run import PipeTransport, slots_memory
from headrace.engine.run.slots import SlotTransport
from headrace.errors import ConfigurationError

KIB, MIB = 1 << 10, 1 << 20


def batch(size, value=1):
    return np.full(size, value, np.uint8)


def used_bytes(pair):
    return sum(slot.capacity for slot in pair.sender._shelf._slots)


def test_one_slot_is_enough_for_whoever_keeps_nothing(make_pair):
    pair = make_pair()
    addresses = {pair.travel(batch(MIB)).ctypes.data for _ in range(20)}
    assert len(addresses) == 1


def test_kept_batches_have_slots_of_their_own_and_then_private_memory(make_pair):
    pair = make_pair(max_in_flight=3)  # so 2 ready and 1 in hand, and as many to spare
    kept, num_in_pipe = [], []
    for value in range(10):
        kept.append(pair.travel(batch(MIB, value)))
        num_in_pipe.append(pair.num_in_pipe > MIB)
    assert num_in_pipe == [False] * 6 + [True] * 4
    assert all((array == value).all() for value, array in enumerate(kept))
    del kept[2]
    kept.append(pair.travel(batch(MIB, 10)))
    assert pair.num_in_pipe < MIB


def test_small_results_and_small_fields_go_with_the_message(make_pair):
    pair = make_pair()
    assert pair.travel(batch(100 * KIB)).all()
    assert pair.num_in_pipe > 100 * KIB
    labels = [pair.travel((batch(MIB), batch(8 * KIB)))[1] for _ in range(50)]
    assert pair.num_in_pipe < 10 * KIB  # the images still find slots, though all labels are kept
    assert len(labels) == 50


def test_a_larger_batch_gets_a_larger_slot_in_the_place_of_a_free_one(make_pair):
    pair = make_pair()
    for size in (MIB, 3 * MIB, 2 * MIB, 5 * MIB, MIB // 2):
        assert len(pair.travel(batch(size))) == size
        assert pair.num_in_pipe < KIB
    assert len(pair.sender._shelf._slots) == 1
    assert 5 * MIB <= used_bytes(pair) <= 6 * MIB
    assert slots_bytes(pair) <= 6 * MIB  # what became too small was given back to the system


def slots_bytes(pair):
    """Memory that the file really has."""
    import os

    return os.fstat(pair.channel._memory.fd).st_blocks * 512


def test_the_limit_bounds_all_slots_and_nothing_ever_waits(make_pair):
    pair = make_pair(max_in_flight=3, memory_limit=10 * MIB)
    kept = [pair.travel(batch(3 * MIB, value)) for value in range(20)]
    assert used_bytes(pair) <= 10 * MIB
    assert slots_bytes(pair) <= 10 * MIB + 4 * KIB
    assert all((array == value).all() for value, array in enumerate(kept))
    del kept
    rng = np.random.default_rng(0)
    for size in rng.integers(MIB, 3 * MIB, 50).tolist():
        kept = [pair.travel(batch(size, value)) for value in range(3)]
        assert all((array == value).all() for value, array in enumerate(kept))
        assert used_bytes(pair) <= 10 * MIB
    assert slots_bytes(pair) <= 10 * MIB + 4 * KIB


def test_a_limit_below_what_is_in_flight_is_refused_with_the_sizes(make_pair):
    pair = make_pair(max_in_flight=3, memory_limit=10 * MIB)
    with pytest.raises(
        ConfigurationError, match=r"^memory_limit=10,485,760 bytes does not hold .* 3 at once"
    ) as caught:
        pair.travel(batch(4 * MIB))
    assert any("memory_limit=12,582,912 or more" in line for line in caught.value.do)
    assert len(pair.travel(batch(3 * MIB))) == 3 * MIB  # it failed that result only


@pytest.mark.parametrize("limit", [0, -1])
def test_impossible_limits_are_refused(limit):
    with pytest.raises(ConfigurationError, match=r"^memory_limit must be a positive number of bytes or None, not"):
        SlotTransport(memory_limit=limit)


def test_where_the_system_has_no_memory_left_results_go_through_the_pipe(make_pair, monkeypatch):
    pair = make_pair()
    monkeypatch.setattr(slots_memory.Section, "provide", lambda *_: False)
    assert pair.travel(batch(MIB)).all()
    assert pair.num_in_pipe > MIB


def test_where_address_space_is_tight_less_is_reserved_and_then_nothing(monkeypatch):
    mapping = slots_memory._Mapping

    def refuse_above(limit):
        def make(fd, begin, size):
            if size > limit:
                raise OSError(12, "Cannot allocate memory")
            return mapping(fd, begin, size)

        monkeypatch.setattr(slots_memory, "_Mapping", make)

    refuse_above(1 << 30)
    channel = SlotTransport().open(2, 5)
    assert channel._memory.section_bytes <= 1 << 29
    channel.close()
    refuse_above(1 << 20)
    channel = SlotTransport().open(2, 5)
    assert type(channel) is type(PipeTransport().open(2, 5))


def test_without_memfd_the_file_lies_in_memory_and_has_no_name(make_pair, monkeypatch):
    monkeypatch.delattr("os.memfd_create", raising=False)
    import pathlib

    before = set(pathlib.Path("/dev/shm").iterdir())
    pair = make_pair()
    assert pair.travel(batch(MIB)).all()
    assert pair.num_in_pipe < KIB
    assert set(pathlib.Path("/dev/shm").iterdir()) == before
