"""Work orders arrive as they were sent."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.run.packing import pack, unpack
from headrace.engine.work import WorkOrder


@given(data=st.data(), num_rows=st.integers(0, 20), step=st.integers(0, 2**62), seed=st.integers(-(2**70), 2**70))
def test_every_column_arrives_with_its_dtype(data, num_rows, step, seed):
    def column(values):
        return data.draw(st.lists(values, min_size=num_rows, max_size=num_rows))

    order = WorkOrder(
        step=step,
        seed=seed,
        indices=np.array(column(st.integers(0, 2**48)), np.int64),
        epochs=np.array(column(st.sampled_from([3, 3, 3, 4])), np.int64),
        positions=np.array(column(st.integers(0, 2**48)), np.int64),
        is_pad=np.array(column(st.sampled_from([False, False, True])), np.bool_),
    )
    for twin in (pickle.loads(pickle.dumps(order)), unpack([memoryview(bytearray(part)) for part in pack(order)])):
        assert (twin.step, twin.seed) == (step, seed)
        for name in ("indices", "epochs", "positions", "is_pad"):
            sent, arrived = getattr(order, name), getattr(twin, name)
            assert arrived.dtype == sent.dtype
            assert arrived.flags.writeable
            assert np.array_equal(arrived, sent)
