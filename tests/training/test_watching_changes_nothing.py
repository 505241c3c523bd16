"""Training under observation is bit for bit the training without it, and an observer that fails is not noticed."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

from headrace.doctor.watch.taps import listen

from .conftest import Net, observing

MAKE = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.5, max_iter=3),
}


def losses_of(make, *, every, amp, watch):
    torch.manual_seed(7)
    with observing() if watch else contextlib.nullcontext():
        model = Net(norm=True)
        optimizer = make(model.parameters())
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
        losses = []

        def closure():
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            return loss

        for number in range(20):
            batch = torch.randn(8, 4)
            if isinstance(optimizer, torch.optim.LBFGS):
                losses.append(optimizer.step(closure).item())
                continue
            with torch.autocast("cpu", torch.bfloat16, enabled=amp):
                loss = model(batch).square().mean()
            loss.backward()
            losses.append(loss.item())
            if number % every == every - 1:
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
            if number == 10:
                model.eval()
                with torch.no_grad():
                    losses.append(model(batch).sum().item())
                model.train()
    return losses, [parameter.tolist() for parameter in model.parameters()], torch.get_rng_state().tolist()


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize(("every", "amp"), [(1, False), (4, False), (1, True)])
def test_losses_weights_and_random_state_are_bit_equal(make, every, amp):
    bare, watched = (losses_of(MAKE[make], every=every, amp=amp, watch=watch) for watch in (False, True))
    assert watched == bare


def test_a_listener_that_raises_is_not_noticed_and_results_and_errors_pass():
    class Owner:
        def method(self, value, *, fail=False):
            if fail:
                raise KeyError(value)
            return value

    heard = []

    def broken(*_):
        raise ValueError

    stops = [
        listen(Owner, "method", before=broken, after=broken),
        listen(
            Owner,
            "method",
            before=lambda args, _: heard.append(args[1]),
            after=lambda *_: heard.append("after"),
            ended=lambda: heard.append("ended"),
        ),
    ]
    assert Owner().method(3) == 3
    with pytest.raises(KeyError):
        Owner().method(4, fail=True)
    assert heard == [3, "after", "ended", 4, "ended"]
    original = Owner.method.__wrapped__
    for stop in stops:
        stop()
    assert Owner.method is original


def test_a_compiled_model_is_traced_without_the_taps():
    with observing():
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        torch.optim.SGD(model.parameters(), lr=0.1)
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        batch = torch.randn(2, 4)
        assert torch.equal(compiled(batch), model(batch))


def test_a_failing_step_is_not_taken_for_one_inside_another():
    with observing() as watched:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def closure():
            raise MemoryError

        for _ in range(3):
            with pytest.raises(MemoryError):
                optimizer.step(closure)
            model(torch.randn(4, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert watched.timeline.num_steps == 3
