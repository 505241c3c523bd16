"""The look at a run before it begins: silent on what is healthy, changes nothing, and names what is wrong."""

import itertools
import types
import warnings

import pytest
import torch
from tests.loop.sensitive import own_loader
from tests.loop.test_loop import Watched, validation
from torch import nn

import headrace as hr
from headrace.errors import LoopWarning


def looked_at(tmp_path, net, body, *, optimizer=None, measure=None, num=2, **more):
    """Texts of the warnings of a run's beginning."""
    loop = hr.Loop(
        net,
        optimizer or torch.optim.Adam([one for one in net.parameters() if one.requires_grad], 1e-2),
        train=own_loader(),
        epochs=1,
        folder=tmp_path / "run",
        evaluate=validation() if measure else None,
        measure=measure,
        **more,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in loop:
            step.update(body(step.batch))
            if not step.is_trial and (num := num - 1) == 0:
                break
    loop.close()
    assert all(one.category is LoopWarning for one in caught), [str(one.message) for one in caught]
    return [str(one.message) for one in caught]


def classifier(net):
    return lambda batch: nn.functional.cross_entropy(net(batch["x"]), batch["y"])


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 2))


@pytest.mark.parametrize("accumulate", [1, 3])
def test_it_changes_no_bit_of_the_run(tmp_path, accumulate):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LoopWarning)
        looked = Watched(tmp_path / "looked", sanity=True, accumulate=accumulate)
        for step in looked.loop:
            from tests.loop.test_loop import body

            step.update(body(looked.net, step.batch))
            if not step.is_trial and looked.loop._updates.pending == 0:
                looked.note()
        looked.loop.close()
    plain = Watched(tmp_path / "plain", accumulate=accumulate).finish()

    assert looked.digests == plain.digests
    assert looked.loop.history == plain.loop.history


def test_it_asks_that_steps_repeat_and_the_checkpoint_keeps_the_answer(tmp_path):
    net = small()
    assert looked_at(tmp_path, net, classifier(net), every=1) == []
    again = hr.Checkpointer(tmp_path / "run" / "checkpoints", model=small())
    manifest = again._folder.good(max(again._folder.steps().values()))
    again.close()
    assert manifest.repeats is True


def test_a_run_that_goes_on_is_not_looked_at(tmp_path):
    net = small()
    looked_at(tmp_path, net, classifier(net), every=1)
    trials = []
    loop = hr.Loop(
        net,
        torch.optim.Adam(net.parameters(), 1e-2),
        train=own_loader(),
        epochs=1,
        folder=tmp_path / "run",
        evaluate=None,
    )
    for step in loop:
        trials.append(step.is_trial)
        step.update(classifier(net)(step.batch))
    loop.close()
    assert trials
    assert not any(trials)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 2)),
        small,
        lambda: nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 2)),
    ],
)
@pytest.mark.parametrize("rate", [1e-1, 1e-2, 1e-4])
def test_healthy_runs_are_silent(tmp_path, make, rate):
    net = make()

    def measure(batch):
        return {"loss": nn.functional.cross_entropy(net(batch["x"]), batch["y"], reduction="none")}

    for kind in (torch.optim.SGD, torch.optim.Adam):
        assert (
            looked_at(
                tmp_path / kind.__name__, net, classifier(net), optimizer=kind(net.parameters(), rate), measure=measure
            )
            == []
        )


def test_a_warm_up_that_begins_at_nothing_is_no_fault(tmp_path):
    net = small()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 100)
    assert looked_at(tmp_path, net, classifier(net), optimizer=optimizer, scheduler=warm) == []


def test_noise_in_the_loss_is_no_fault(tmp_path):
    net = nn.Linear(6, 6)

    def denoise(batch):
        noise = torch.randn_like(batch["x"])
        return (net(batch["x"] + noise) - noise).square().mean()

    assert looked_at(tmp_path, net, denoise, optimizer=torch.optim.SGD(net.parameters(), 1e-3)) == []


def test_a_parameter_that_no_gradient_reaches_is_named(tmp_path):
    net = nn.ModuleDict({"body": nn.Linear(6, 2), "spare": nn.Linear(6, 2)})
    (text,) = looked_at(tmp_path, net, lambda batch: nn.functional.cross_entropy(net["body"](batch["x"]), batch["y"]))
    assert text.startswith("spare.weight, spare.bias: no gradient comes to them")


def test_frozen_parameters_are_no_fault(tmp_path):
    net = nn.ModuleDict({"body": nn.Linear(6, 2), "spare": nn.Linear(6, 2)})
    net["spare"].requires_grad_(False)
    assert (
        looked_at(tmp_path, net, lambda batch: nn.functional.cross_entropy(net["body"](batch["x"]), batch["y"])) == []
    )


def test_a_model_that_cannot_learn_is_named(tmp_path):
    net = small()
    (text,) = looked_at(tmp_path, net, classifier(net), optimizer=torch.optim.SGD(net.parameters(), lr=0.0))
    assert text.startswith("20 steps on one batch did not lower its loss")


def test_a_first_loss_far_above_ln_c_is_named(tmp_path):
    net = small()
    with torch.no_grad():
        net[-1].weight.mul_(60)
    found = looked_at(tmp_path, net, classifier(net))
    assert any("a model that knows nothing of 2 classes has ln 2 = 0.69" in text for text in found)


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 2)

    def forward(self, x):
        return self.body(x) * torch.softmax(x.sum(1), 0)[:, None]


def test_an_axis_that_is_mixed_up_is_named(tmp_path):
    net = Mixing()
    (text,) = looked_at(tmp_path, net, classifier(net))
    assert text.startswith("the model's output for one sample depends on the others of its batch")


def test_an_evaluation_that_draws_is_named(tmp_path):
    net = small()
    (text,) = looked_at(
        tmp_path,
        net,
        classifier(net),
        measure=lambda batch, draws=itertools.count(): {"loss": torch.ones(len(batch["y"])) * next(draws)},
    )
    assert text.startswith("the evaluation of the same batches gave loss = ")


def test_steps_that_do_not_repeat_are_named(tmp_path):
    net = small()
    drift = itertools.count()
    (text,) = looked_at(tmp_path, net, lambda batch: classifier(net)(batch) * (1 + 1e-3 / (1 + next(drift))))
    assert text.startswith("the same steps from the same state gave other bits (")


def trial_steps(tmp_path, net, body, **more):
    """What the body was told of each trial step, and the warnings."""
    numbers = itertools.count()
    found = looked_at(tmp_path, net, lambda batch: body(batch, next(numbers)), num=1, **more)
    return next(numbers) - 1, found


def test_ten_steps_are_run_twice_and_one_that_differs_late_is_seen(tmp_path):
    net = small()
    num, found = trial_steps(tmp_path / "counted", net, lambda batch, _: classifier(net)(batch))
    assert found == []
    learning = num - 1 - 2 * 10
    assert 2 <= learning <= 20

    net = small()
    late = 1 + learning + 10 + 7  # the eighth step of the second round
    _, (text,) = trial_steps(
        tmp_path / "late", net, lambda batch, number: classifier(net)(batch) * (1.01 if number == late else 1)
    )
    assert text.startswith("the same steps from the same state gave other bits (")


def test_where_steps_are_slow_each_batch_is_repeated_once(tmp_path, monkeypatch):
    from headrace.loop import sanity

    now = [0.0]
    monkeypatch.setattr(sanity, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    net = small()
    num, _ = trial_steps(tmp_path / "counted", net, lambda batch, _: classifier(net)(batch))
    before = num - 2 * 10

    net = small()

    def slow(batch, number):
        now[0] = 15.0 if number == before else 0.0 if number < before else now[0]  # of 20 s
        return classifier(net)(batch)

    num, found = trial_steps(tmp_path / "slow", net, slow)
    assert found == []
    assert num == before + 2 * 2
