"""Mistakes in the body and in the evaluation are refused by name; what looks like one and is none passes."""

import itertools

import pytest
import torch
from tests.loop.sensitive import digest, own_loader
from tests.loop.test_loop import Watched, body, parts
from torch import nn

import headrace as hr
from headrace.errors import ConfigurationError, DataError

OTHER = {"x": torch.ones(3, 6), "y": torch.zeros(3, dtype=torch.int64)}


def trained_with(watched, does, num):
    for step in itertools.islice(watched.loop, num):
        does(watched, step)
    watched.loop.close()


def then(*does):
    """What is done behind a loss and its update, or before them: `...` is the update."""

    def body_of(watched, step):
        for one in does:
            step.update(body(watched.net, step.batch)) if one is ... else one(watched, step)

    return body_of


def loss_of(watched, step):
    return body(watched.net, step.batch)


def no_update_grad(watched, step):
    loss = loss_of(watched, step)
    with torch.no_grad():
        step.update(loss)


def all_without_grad(watched, step):
    with torch.inference_mode():
        step.update(loss_of(watched, step))


def whole_plain_step(watched, step):
    loss = loss_of(watched, step)
    watched.optimizer.zero_grad()
    loss.backward(retain_graph=True)
    step.update(loss)


def schedule(watched, step):
    watched.loop.checkpoint._parts[3].objects["step"].step()


def epoch_schedule(watched, step):
    watched.loop.checkpoint._parts[3].objects["epoch"].step(1.0)


TWICE = "has a gradient already, before step.update.loss. has computed any"
CHANGED = "was changed between two batches of one optimizer step"
MISTAKES = {
    "no update": (lambda watched, step: None, "called neither step.update.loss. nor step.skip"),
    "two updates": (then(..., ...), "was called twice for one batch"),
    "own optimizer step": (
        lambda watched, step: watched.optimizer.step(),
        "optimizer.step.. was called in the body of the loop",
    ),
    "own optimizer step behind": (
        then(..., lambda watched, step: watched.optimizer.step()),
        "optimizer.step.. was called in the body of the loop",
    ),
    "evaluation mode": (
        then(..., lambda watched, step: watched.net.eval()),
        "is in evaluation mode at the beginning of a training step",
    ),
    "per-sample loss": (
        lambda watched, step: step.update(watched.net(step.batch["x"])),
        r"the loss is \(3, 2\), not a single number",
    ),
    "detached loss": (
        lambda watched, step: step.update(loss_of(watched, step).detach()),
        "does not depend on any parameter that is trained",
    ),
    "loss of no graph": (
        lambda watched, step: step.update(torch.tensor(loss_of(watched, step).item(), requires_grad=True)),
        "was not computed of anything .it has no grad_fn.",
    ),
    "update under no_grad": (no_update_grad, "called while gradients are turned off"),
    "body under inference_mode": (all_without_grad, "called while gradients are turned off"),
    "backward before": (then(lambda watched, step: loss_of(watched, step).backward(), ...), TWICE),
    "backward of the same loss": (whole_plain_step, TWICE),
    "backward behind": (then(..., lambda watched, step: loss_of(watched, step).backward()), TWICE),
    "own schedule": (then(schedule, ...), "scheduler.step.. of LinearLR was called in the body"),
    "own schedule behind": (then(..., schedule), "scheduler.step.. of LinearLR was called in the body"),
    "own schedule of epochs": (
        then(..., epoch_schedule),
        "scheduler.step.. of ReduceLROnPlateau was called in the body",
    ),
}


@pytest.mark.parametrize("sanity", [False, True])
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.filterwarnings("ignore")
def test_mistakes_are_refused_by_name(tmp_path, mistake, sanity):
    does, words = MISTAKES[mistake]
    with pytest.raises(ConfigurationError, match=words):
        trained_with(Watched(tmp_path, sanity=sanity), does, 60 if sanity else 2)


MISTAKES_OF_ACCUMULATION = {
    "backward": (then(..., lambda watched, step: loss_of(watched, step).backward()), CHANGED),
    "clearing": (then(..., lambda watched, step: watched.optimizer.zero_grad()), CHANGED),
    "clearing to zero": (then(..., lambda watched, step: watched.optimizer.zero_grad(set_to_none=False)), CHANGED),
    "clipping": (
        then(..., lambda watched, step: nn.utils.clip_grad_norm_(watched.net.body.parameters(), 1e-3)),
        CHANGED,
    ),
    "whole plain step": (whole_plain_step, TWICE),
}


@pytest.mark.parametrize("mistake", MISTAKES_OF_ACCUMULATION)
def test_gradients_that_wait_for_others_must_be_left_alone(tmp_path, mistake):
    does, words = MISTAKES_OF_ACCUMULATION[mistake]
    with pytest.raises(ConfigurationError, match=words):
        trained_with(Watched(tmp_path, accumulate=3), does, 2)


def test_so_it_is_for_the_last_batches_of_an_epoch(tmp_path):
    watched = Watched(tmp_path, accumulate=3)

    def clears(watched, step):
        step.update(loss_of(watched, step))
        if watched.loop.checkpoint.batch == 8:
            watched.optimizer.zero_grad()

    with pytest.raises(ConfigurationError, match=r"the gradients of 2 of 3 batches \(accumulate=3\) waited"):
        trained_with(watched, clears, 9)


def test_gradients_from_before_the_loop_are_named(tmp_path):
    watched = Watched(tmp_path)
    body(watched.net, OTHER).backward()
    with pytest.raises(ConfigurationError, match=f"^body.0.weight {TWICE}"):
        trained_with(watched, then(...), 1)


def derivative(watched, step):
    """What attacks and penalties do: a derivative with respect to the inputs."""
    x = step.batch["x"].clone().requires_grad_()
    torch.autograd.grad(nn.functional.cross_entropy(watched.net.body(x), step.batch["y"]), x)


def backward_and_clear(set_to_none):
    def does(watched, step):
        nn.functional.cross_entropy(watched.net.body(step.batch["x"]), step.batch["y"]).backward()
        watched.optimizer.zero_grad(set_to_none=set_to_none)

    return does


def lower_by_hand(watched, step):
    for group in watched.optimizer.param_groups:
        group["lr"] *= 0.99


def no_grad_within(watched, step):
    with torch.no_grad():
        watched.net.body(step.batch["x"])


def evaluates(watched, step):
    watched.loop.evaluate()


HEALTHY = {
    "derivative": derivative,
    "backward and clear": backward_and_clear(True),
    "backward and clear to zero": backward_and_clear(False),
    "rate by hand": lower_by_hand,
    "metrics under no_grad": no_grad_within,
    "evaluation in the body": evaluates,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_bodies_pass(tmp_path, name):
    trained_with(Watched(tmp_path), then(HEALTHY[name], ...), 10)


@pytest.mark.parametrize("name", ["derivative", "rate by hand", "metrics under no_grad", "evaluation in the body"])
@pytest.mark.parametrize("behind", [False, True])
def test_healthy_bodies_pass_between_the_batches_of_a_step_too(tmp_path, name, behind):
    does = then(..., HEALTHY[name]) if behind else then(HEALTHY[name], ...)
    trained_with(Watched(tmp_path, accumulate=3), does, 17)


@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_run_that_was_cut_between_the_batches_of_a_step_passes(tmp_path, at):
    first = Watched(tmp_path, accumulate=3)
    for step in itertools.islice(first.loop, at):
        step.update(loss_of(first, step))
    first.loop.checkpoint.save()
    first.loop.close()
    trained_with(Watched(tmp_path, accumulate=3), then(...), 9)


def test_in_one_process_too_though_gradients_were_brought_back(tmp_path):
    watched = Watched(tmp_path, accumulate=4)
    for step in itertools.islice(watched.loop, 3):
        step.update(loss_of(watched, step))
    watched.loop.checkpoint.save()
    watched.loop.checkpoint.restore()
    trained_with(watched, then(...), 9)


@pytest.mark.parametrize("kind", ["own", "closures", "average"])
def test_optimizers_and_schedules_that_are_the_bodys_pass(tmp_path, kind):
    """A GAN whose other half the body trains; LBFGS with its closure for another module; averages with their schedule."""
    seen = Watched(tmp_path)
    net, other = seen.net, nn.Linear(2, 2)
    if kind == "closures":
        optimizer = torch.optim.LBFGS(other.parameters(), max_iter=3)
    else:
        optimizer = torch.optim.Adam(other.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    average = torch.optim.swa_utils.AveragedModel(net)
    swa = torch.optim.swa_utils.SWALR(optimizer, 1e-3)

    def does(watched, step):
        target = nn.functional.one_hot(step.batch["y"], 2).float()
        made = net(step.batch["x"])

        def closure():
            optimizer.zero_grad()
            loss = (other(made.detach()) - target).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        step.update((other(made) - target).square().mean())  # gives `other` gradients that nobody uses
        if kind == "average":
            average.update_parameters(net)
            swa.step()
        else:
            schedule.step()

    trained_with(seen, does, 12)


def test_two_optimizers_of_two_models_that_take_each_step_together_pass(tmp_path):
    one, two = nn.Linear(6, 4), nn.Linear(4, 2)
    loop = hr.Loop(
        {"one": one, "two": two},
        {"one": torch.optim.Adam(one.parameters()), "two": torch.optim.SGD(two.parameters(), 0.1)},
        train=own_loader(),
        epochs=1,
        folder=tmp_path,
        evaluate=None,
        accumulate=2,
        scheduler={},
    )
    for step in loop:
        made = one(step.batch["x"])
        step.update(nn.functional.cross_entropy(two(made), step.batch["y"]) + 0.1 * made.square().mean())
    loop.close()
    assert loop.steps == 4


class FillsWithZeros(torch.optim.SGD):
    def zero_grad(self, set_to_none=False):
        super().zero_grad(set_to_none=False)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_optimizer_that_clears_to_zero_passes(tmp_path, accumulate):
    net, *_ = parts()
    loop = hr.Loop(
        net,
        FillsWithZeros(net.body.parameters(), 0.1),
        train=own_loader(),
        epochs=2,
        folder=tmp_path,
        evaluate=None,
        accumulate=accumulate,
    )
    for step in loop:
        step.update(body(net, step.batch))
    loop.close()
    assert loop.steps == (16 if accumulate == 1 else 6)


def test_a_parameter_may_be_its_own_loss(tmp_path):
    weight = nn.Parameter(torch.ones(()))
    net = nn.ParameterList([weight])
    loop = hr.Loop(
        net,
        torch.optim.SGD(net.parameters(), 0.1),
        train=own_loader(),
        epochs=1,
        folder=tmp_path,
        evaluate=None,
        sanity=False,
    )
    for step in loop:
        step.update(weight)
    loop.close()
    assert float(weight.detach()) == pytest.approx(1 - 8 * 0.1)


def test_an_optimizer_that_needs_a_closure_is_refused(tmp_path):
    net = nn.Linear(6, 2)
    with pytest.raises(ConfigurationError, match=r"LBFGS computes the loss itself.*\n.*\n.*optimizer.step\(closure\)"):
        hr.Loop(net, torch.optim.LBFGS(net.parameters()), train=own_loader(), epochs=1, folder=tmp_path, evaluate=None)


# In the evaluation.


def per_sample(net, batch):
    return {"loss": nn.functional.cross_entropy(net(batch["x"]), batch["y"], reduction="none")}


def steps_itself(net):
    with torch.enable_grad():
        body(net, OTHER).backward()
    torch.optim.SGD(net.body.parameters(), 0.1).step()


def backward(net):
    with torch.enable_grad():
        body(net, OTHER).backward()


def norm_trains(net):
    net.body[1].train()


MISTAKES_OF_MEASURE = {
    "step": (steps_itself, "changed parameters of the model: 'body.0.weight' and 5 more"),
    "backward": (backward, "changed gradients of the model: 'body.0.weight' and 5 more"),
    "train mode": (lambda net: net.train(), "put the model in training mode"),
    "batch norm in train mode": (norm_trains, "put 'body.1' of the model in training mode"),
}


@pytest.mark.parametrize("mistake", MISTAKES_OF_MEASURE)
@pytest.mark.parametrize("within_run", [False, True])
def test_mistakes_of_the_evaluation_are_refused_by_name(tmp_path, mistake, within_run):
    does, words = MISTAKES_OF_MEASURE[mistake]

    def measure(batch):
        found = per_sample(watched.net, batch)
        does(watched.net)
        return found

    watched = Watched(tmp_path, measure=measure)
    with pytest.raises(DataError, match=words):
        watched.finish() if within_run else watched.loop.evaluate()
    watched.loop.close()
    assert watched.net.training


def test_an_evaluation_that_clears_the_gradients_of_an_accumulation_is_named(tmp_path):
    watched = Watched(tmp_path, accumulate=3)

    def measure(batch):
        watched.optimizer.zero_grad()
        return per_sample(watched.net, batch)

    with pytest.raises(DataError, match="changed gradients of the model"):
        trained_with(watched, then(..., lambda watched, step: watched.loop.evaluate(measure)), 2)


def dropout_on(net):
    """Several answers of one model: how uncertain it is."""
    net.body[2].train()


def attack(net):
    x = torch.ones(3, 6, requires_grad=True)
    with torch.enable_grad():
        torch.autograd.grad(nn.functional.cross_entropy(net.body(x), OTHER["y"]), x)


def turns_back(net):
    net.eval()


@pytest.mark.parametrize("does", [dropout_on, attack, turns_back])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_healthy_evaluations_pass_and_leave_no_trace(tmp_path, does, accumulate):
    def run(folder, healthy):
        def measure(batch):
            healthy(watched.net)
            return per_sample(watched.net, batch)

        watched = Watched(folder, measure=measure, epoch_scheduler=None, accumulate=accumulate)
        trained_with(watched, then(..., lambda watched, step: watched.loop.evaluate()), 12)
        return digest([watched.net.state_dict(), watched.optimizer.state_dict()])

    assert run(tmp_path / "a", does) == run(tmp_path / "b", lambda net: None)
