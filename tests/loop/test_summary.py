"""The table of layers is made without a trace in the model."""

import json

import torch
from tests.loop.sensitive import Net, digest
from tests.loop.test_loop import Watched, body

from headrace.loop.summary import summary_of


def test_it_changes_neither_buffers_nor_modes_nor_random_state():
    net = Net()
    before, random = digest([net.state_dict(), net.scale]), torch.get_rng_state()
    table = summary_of(net, (torch.ones(4, 6),))

    assert "BatchNorm1d" in table
    assert digest([net.state_dict(), net.scale]) == before
    assert torch.equal(torch.get_rng_state(), random)
    assert net.training
    assert all(module.training for module in net.modules())


def test_a_model_that_it_cannot_follow_has_no_table():
    assert summary_of(Net(), (torch.ones(4, 5),)) is None


def test_a_new_run_logs_it_once(tmp_path):
    watched = Watched(tmp_path, sanity=True, epochs=1)
    for step in watched.loop:
        step.update(body(watched.net, step.batch))
    watched.loop.close()
    first = json.loads((tmp_path / "history.jsonl").read_text().splitlines()[0])

    assert "BatchNorm1d" in first["facts"]["summary"][""]
    assert first["facts"]["parameters"] > first["facts"]["trained_parameters"] > 0
