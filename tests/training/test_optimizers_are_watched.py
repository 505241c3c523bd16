"""Whether gradients are cleared is seen however it is done; nothing else is taken for it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from headrace.doctor import catalogue

from .conftest import Net


def clear_by_optimizer(model, optimizer):
    optimizer.zero_grad()


def clear_to_zeros(model, optimizer):
    optimizer.zero_grad(set_to_none=False)


def clear_by_module(model, optimizer):
    model.zero_grad()


def clear_by_module_to_zeros(model, optimizer):
    model.zero_grad(set_to_none=False)


def clear_by_hand(model, optimizer):
    for parameter in model.parameters():
        parameter.grad = None


def clear_by_hand_to_zeros(model, optimizer):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()


CLEARS = [
    clear_by_optimizer,
    clear_to_zeros,
    clear_by_module,
    clear_by_module_to_zeros,
    clear_by_hand,
    clear_by_hand_to_zeros,
]
MAKE = [
    torch.optim.SGD,
    torch.optim.AdamW,
    lambda parameters, lr: torch.optim.Adam(parameters, lr=lr, foreach=True),
    torch.optim.RMSprop,
]


def loss_of(model, batch):
    return model(batch).square().mean()


def judged(watched, code="HR901"):
    seen = watched.training.seen()[0]
    return catalogue.rule(code).judge(seen)


@pytest.mark.parametrize("clear", CLEARS, ids=lambda clear: clear.__name__)
@pytest.mark.parametrize("when", ["before", "after step"])
@pytest.mark.parametrize("make", MAKE, ids=["sgd", "adamw", "foreach", "rmsprop"])
def test_each_way_of_clearing_is_healthy(watched, clear, when, make):
    model = Net()
    optimizer = make(model.parameters(), lr=1e-3)
    for batch in watched.batches(0, 12):
        if when == "before":
            clear(model, optimizer)
        loss_of(model, batch).backward()
        optimizer.step()
        if when == "after step":
            clear(model, optimizer)
    (one,) = watched.optimizers
    assert one.num_steps == 12
    assert (one.num_steps_on_used_gradients, one.num_steps_without_gradient) == (0, 0)
    assert judged(watched) == []


@pytest.mark.parametrize("make", MAKE, ids=["sgd", "adamw", "foreach", "rmsprop"])
@pytest.mark.parametrize("every", [None, 6])
def test_steps_on_used_gradients_are_counted(watched, make, every):
    model = Net()
    optimizer = make(model.parameters(), lr=1e-3)
    for number, batch in enumerate(watched.batches(0, 12)):
        if every and number % every == 0:
            optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
    assert watched.optimizers[0].num_steps_on_used_gradients == (10 if every else 11)
    (found,) = judged(watched)
    assert found.severity == "error"
    assert found.where == watched.optimizers[0].step_place


def test_clipping_gradients_does_not_clear_them(watched):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in watched.batches(0, 6):
        loss_of(model, batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert watched.optimizers[0].num_steps_on_used_gradients == 5


@pytest.mark.parametrize("clear", CLEARS, ids=lambda clear: clear.__name__)
def test_accumulation_is_healthy(watched, clear):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number, batch in enumerate(watched.batches(0, 24)):
        loss_of(model, batch).backward()
        if number % 4 == 3:
            optimizer.step()
            clear(model, optimizer)
    assert watched.optimizers[0].num_steps == 6
    assert judged(watched) == []


@pytest.mark.parametrize("clear", CLEARS, ids=lambda clear: clear.__name__)
def test_accumulation_that_is_cleared_with_each_batch_loses_batches(watched, clear):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number, batch in enumerate(watched.batches(0, 24)):
        clear(model, optimizer)
        loss_of(model, batch).backward()
        if number % 4 == 3:
            optimizer.step()
    if clear in {clear_by_optimizer, clear_to_zeros}:
        assert watched.optimizers[0].num_discarded == 18
        assert "lost the gradients of 18 batches" in judged(watched)[0].message


@pytest.mark.parametrize("clear", CLEARS, ids=lambda clear: clear.__name__)
def test_clearing_between_backward_and_step_leaves_no_gradient(watched, clear):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in watched.batches(0, 8):
        loss_of(model, batch).backward()
        clear(model, optimizer)
        optimizer.step()
    if clear in {clear_by_optimizer, clear_by_module, clear_by_hand}:
        assert watched.optimizers[0].num_steps_without_gradient == 8
    if clear is clear_by_optimizer:
        assert "after the backward pass and before the step" in judged(watched)[0].message


def test_an_adversarial_pair_is_healthy(watched):
    maker, judge = nn.Linear(4, 4), nn.Linear(4, 1)
    first = torch.optim.Adam(maker.parameters(), lr=1e-3)
    second = torch.optim.Adam(judge.parameters(), lr=1e-3)
    for batch in watched.batches(0, 10):
        second.zero_grad()
        (judge(batch).mean() - judge(maker(batch).detach()).mean()).backward()
        second.step()
        first.zero_grad()
        judge(maker(batch)).mean().backward()
        first.step()
    assert [one.num_steps_on_used_gradients for one in watched.optimizers] == [0, 0]
    assert judged(watched) == []


def test_an_adversarial_sample_of_the_same_batch_is_healthy(watched):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in watched.batches(0, 10):
        batch.requires_grad_()
        loss_of(model, batch).backward()
        attacked = (batch + 0.1 * batch.grad.sign()).detach()
        optimizer.zero_grad()
        loss_of(model, attacked).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert judged(watched) == []


def test_a_closure_is_healthy(watched):
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    for batch in watched.batches(0, 5):

        def closure(batch=batch):
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert watched.timeline.num_steps == 5
    assert judged(watched) == []


def test_an_optimizer_inside_another_is_one_step(watched):
    class Slow(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            super().__init__(inner.param_groups, {})

        def step(self, closure=None):
            self.inner.step()

    model = Net()
    optimizer = Slow(torch.optim.SGD(model.parameters(), lr=1e-3))
    for batch in watched.batches(0, 5):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
    assert watched.timeline.num_steps == 5
    assert judged(watched) == []


def test_gradients_put_there_by_hand_are_healthy(watched):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in watched.batches(0, 6):
        found = torch.autograd.grad(loss_of(model, batch), list(model.parameters()))
        for parameter, gradient in zip(model.parameters(), found, strict=True):
            parameter.grad = gradient
        optimizer.step()
    assert judged(watched) == []


def test_a_scaler_that_leaves_steps_out_is_healthy(watched):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
    for number, batch in enumerate(watched.batches(0, 10)):
        optimizer.zero_grad()
        loss = loss_of(model, batch) * (float("inf") if number == 0 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert watched.optimizers[0].num_steps == 9
    assert judged(watched) == []
    assert catalogue.rule("HR910").judge(watched.loss) == []


@pytest.mark.parametrize("order", ["before", "after", "catching up", "epochs before"])
def test_the_order_of_a_schedule(watched, order):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    if order == "catching up":
        schedule.step()
        schedule.step()
    for _ in range(3):
        if order == "epochs before":
            schedule.step()
        for batch in watched.batches(0, 3):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            if order == "before":
                schedule.step()
            optimizer.step()
            if order == "after":
                schedule.step()
        if order == "catching up":
            schedule.step()
    (trace,) = watched.schedules.seen()[0].schedules
    found = catalogue.rule("HR912").judge(
        type(watched.training.seen()[0])(num_steps=9, num_backwards=9, optimizers=(), schedules=(trace,))
    )
    assert bool(found) == (order in {"before", "epochs before"})


test_the_order_of_a_schedule = pytest.mark.filterwarnings("ignore:Detected call:UserWarning")(
    test_the_order_of_a_schedule
)


def test_chained_schedules_are_one(watched):
    from torch.optim import lr_scheduler

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warm = lr_scheduler.LinearLR(optimizer, total_iters=2)
    schedule = lr_scheduler.SequentialLR(optimizer, [warm, lr_scheduler.ConstantLR(optimizer)], milestones=[2])
    for batch in watched.batches(0, 5):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        schedule.step()
    assert [(one.kind, one.num_steps, one.num_early) for one in watched.schedules.seen()[0].schedules] == [
        ("SequentialLR", 5, 0)
    ]
