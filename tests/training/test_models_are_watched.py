"""Modes at steps and in evaluation, and what becomes of parameters."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from headrace.doctor import catalogue

from .conftest import Net


def train(watched, model, num=10, *, loader=0, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-2)
    for batch in watched.batches(loader, num):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return optimizer


def validate(watched, model, num=4, *, loader=1):
    with torch.no_grad():
        for batch in watched.batches(loader, num):
            model(batch)


def judged(watched, code):
    rule = catalogue.rule(code)
    known = {type(one): one for one in (*watched.training.seen(), *watched.model.seen())}
    return rule.judge(*(known[kind] for kind in rule.needs))


def test_a_healthy_run_gets_silence(watched):
    model = Net(norm=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(3):
        model.train()
        train(watched, model, optimizer=optimizer)
        model.eval()
        validate(watched, model)
    (one,) = watched.models.models
    assert (one.steps_training, one.steps_in_eval_mode, one.num_calls) == (30, 0, 42)
    assert [judged(watched, code) for code in ("HR902", "HR903", "HR905", "HR911")] == [[], [], [], []]


def test_a_model_that_is_never_switched_back(watched):
    model = Net()
    optimizer = train(watched, model)
    model.eval()
    validate(watched, model)
    train(watched, model, optimizer=optimizer)
    (found,) = judged(watched, "HR902")
    assert "took 10 of 20 optimizer steps in evaluation mode, from step 10 on" in found.message
    assert found.where.startswith("tests/training/test_models_are_watched.py:")


def test_a_switch_that_is_undone_is_healthy(watched):
    model = Net()
    optimizer = train(watched, model)
    model.eval()
    validate(watched, model)
    model.train()
    train(watched, model, optimizer=optimizer)
    assert judged(watched, "HR902") == []


@pytest.mark.parametrize("freeze", ["norms only", "body in eval, head in training", "nothing depends on it"])
def test_parts_in_evaluation_mode_are_meant(watched, freeze):
    model = Net(norm=True)
    if freeze == "norms only":
        model.norm.eval()
    elif freeze == "body in eval, head in training":
        model.eval()
        model.drop.train()
    else:
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).eval()
    train(watched, model)
    assert judged(watched, "HR902") == []


def test_a_frozen_body_in_evaluation_mode_from_the_start_is_meant(watched):
    model = Net(norm=True).eval()
    for parameter in model.body.parameters():
        parameter.requires_grad_(False)
    train(watched, model, optimizer=torch.optim.SGD(model.head.parameters(), lr=0.1))
    assert judged(watched, "HR902") == []


def test_a_teacher_in_evaluation_mode_is_not_the_one_that_is_trained(watched):
    teacher, student = Net().eval(), Net()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for batch in watched.batches(0, 6):
        with torch.no_grad():
            goal = teacher(batch)
        optimizer.zero_grad()
        (student(batch) - goal).square().mean().backward()
        optimizer.step()
    assert judged(watched, "HR902") == []
    assert judged(watched, "HR911") == []


@pytest.mark.parametrize(
    "wrap", [lambda m: m, nn.DataParallel, torch.optim.swa_utils.AveragedModel], ids=["itself", "parallel", "averaged"]
)
def test_evaluation_in_training_mode(watched, wrap):
    model = Net(norm=True)
    outer = wrap(model)
    train(watched, model)
    outer.train()
    validate(watched, outer)
    found = judged(watched, "HR903")
    assert ["norm (BatchNorm1d) learnt from them" in one.message for one in found] == [True]
    outer.eval()


def test_evaluation_with_gradients(watched):
    model = Net()
    train(watched, model)
    model.eval()
    for batch in watched.batches(1, 4):
        model(batch)
    (found,) = judged(watched, "HR905")
    assert "recorded gradients in 4 of 4 calls" in found.message
    assert judged(watched, "HR903") == []


@pytest.mark.parametrize("how", ["backward", "grad"])
def test_derivatives_in_evaluation_are_meant(watched, how):
    model = Net()
    train(watched, model)
    model.eval()
    for batch in watched.batches(1, 4):
        batch.requires_grad_()
        loss = model(batch).sum()
        loss.backward() if how == "backward" else torch.autograd.grad(loss, batch)
    assert judged(watched, "HR905") == []


def test_the_second_half_of_a_semi_supervised_batch_is_no_evaluation(watched):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for labelled, unlabelled in zip(watched.batches(0, 10), watched.batches(1, 10), strict=True):
        optimizer.zero_grad()
        (model(labelled).square().mean() + model(unlabelled).abs().mean()).backward()
        optimizer.step()
    assert judged(watched, "HR903") == judged(watched, "HR905") == []


def test_a_replaced_head_is_left_out_of_the_optimizer(watched):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head = nn.Linear(8, 5)
    train(watched, model, optimizer=optimizer)
    (found,) = judged(watched, "HR911")
    assert "holds 2 parameters that no module has any more" in found.message
    assert "head.weight, head.bias of Net" in found.message


def test_layers_in_a_plain_list(watched):
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
            self.last = nn.Linear(4, 1)

        def forward(self, x):
            for layer in self.layers:
                x = torch.relu(layer(x))
            return self.last(x)

    train(watched, Hidden())
    (found,) = judged(watched, "HR911")
    assert "weight, bias of Linear" in found.message


def test_a_head_on_loaded_weights_is_meant(watched):
    body = nn.Linear(4, 8)
    body.load_state_dict(copy.deepcopy(body.state_dict()))
    head = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    train(watched, lambda batch: head(body(batch)), optimizer=optimizer)
    assert judged(watched, "HR911") == []


def test_best_weights_loaded_back_after_training_hide_no_lost_head(watched):
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    model = nn.Sequential(body, head)
    optimizer = torch.optim.SGD(body.parameters(), lr=0.1)  # it lives on: parameters are looked at again at the end
    train(watched, model, optimizer=optimizer)
    model.load_state_dict(copy.deepcopy(model.state_dict()))
    (found,) = judged(watched, "HR911")
    assert "1.weight, 1.bias" in found.message
    assert found.severity == "warning"


def test_weights_that_are_changed_by_hand_are_not_lost(watched):
    body, head = nn.Linear(4, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for batch in watched.batches(0, 8):
        optimizer.zero_grad()
        head(body(batch)).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for parameter in body.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    assert judged(watched, "HR911") == []


def test_a_loss_that_is_cut_off_changes_nothing(watched):
    model, other = Net(), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in watched.batches(0, 8):
        optimizer.zero_grad()
        other(model(batch).detach()).mean().backward()
        optimizer.step()
    messages = [one.message for one in judged(watched, "HR911")]
    assert any("no parameter of Net" in text and "no gradient ever reached them" in text for text in messages)


def test_what_was_seen_outlives_the_model(watched):
    def run():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.head = nn.Linear(8, 5)
        train(watched, model, optimizer=optimizer)

    run()
    assert len(judged(watched, "HR911")) == 1


def test_observers_keep_no_model_alive(watched):
    import gc
    import weakref

    model = Net()
    train(watched, model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_uninstalled_observers_leave_torch_as_it_was():
    from .conftest import observing

    names = [(nn.Module, "train"), (nn.Module, "__init__"), (torch.autograd, "backward"), (torch, "save")]
    before = [getattr(owner, name) for owner, name in names]
    with observing() as watched:
        train(watched, Net())
        assert "__call__" in vars(Net)
    assert [getattr(owner, name) for owner, name in names] == before
    assert "__call__" not in vars(Net)
    assert "__call__" in vars(nn.Module)
