"""Iterate, break, save, load, reopen in any order, against a model that is a list and a place in it."""

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import headrace as hr
from headrace.engine.order.orders import ShuffledOrder
from headrace.engine.samplers import EpochSampler


class LoaderMachine(RuleBasedStateMachine):
    """The model: where the live iterator is, where the next pass begins, and where the loader says that it stands."""

    @initialize(n=st.integers(1, 30), seed=st.integers(0, 99), size=st.integers(1, 9))
    def begin(self, n, seed, size):
        self.n, self.seed = n, seed
        self.order = ShuffledOrder(n)
        self.saved = []
        self.open_loader(size, workers=0)
        self.place = self.pending = self.standing = (0, 0)

    def open_loader(self, size, workers):
        self.iterator = None
        self.size = size
        layout = {"num_workers": workers, "runner": "threads"} if workers else {}
        self.loader = hr.DataLoader(range(self.n), batch_size=size, shuffle=True, seed=self.seed, **layout)

    def epoch_list(self, epoch):
        return list(EpochSampler(self.order, self.seed, epoch))

    @rule()
    def start_a_pass(self):
        self.iterator = iter(self.loader)
        epoch, consumed = self.pending
        if consumed == self.n:
            epoch, consumed = epoch + 1, 0
        self.place = self.standing = (epoch, consumed)
        self.pending = (epoch + 1, 0)

    @precondition(lambda self: self.iterator is not None)
    @rule()
    def take_a_batch(self):
        batch = next(self.iterator, None)
        epoch, consumed = self.place
        expected = self.epoch_list(epoch)[consumed : consumed + self.size]
        if not expected:
            assert batch is None
            self.iterator = None
            return
        assert batch.tolist() == list(self.loader.last.sample_ids) == expected
        self.place = self.standing = (epoch, consumed + len(expected))

    @precondition(lambda self: self.iterator is not None)
    @rule()
    def break_off(self):
        self.iterator.close()
        self.iterator = None

    @rule()
    def save(self):
        self.saved.append((json.dumps(self.loader.state_dict()), self.standing))

    @precondition(lambda self: self.saved)
    @rule(data=st.data(), size=st.integers(1, 9), workers=st.sampled_from([0, 0, 0, 2]))
    def load_into_another_layout(self, data, size, workers):
        state, place = data.draw(st.sampled_from(self.saved))
        self.open_loader(size, workers)
        self.loader.load_state_dict(json.loads(state))
        self.place = self.pending = self.standing = place

    @rule(epoch=st.integers(0, 3))
    def set_epoch(self, epoch):
        self.loader.set_epoch(epoch)
        self.pending = self.standing = (epoch, 0)

    def teardown(self):
        if getattr(self, "iterator", None) is not None:
            self.iterator.close()


TestLoaderMachine = LoaderMachine.TestCase
TestLoaderMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
