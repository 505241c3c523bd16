"""Whether steps repeat is asked of the steps, and nothing is left of the asking."""

import itertools

import pytest
import torch
from tests.loop.sensitive import Run, whole

import headrace as hr
from headrace.loop.checkpoint import Promise


def batches_and_step(run):
    """Batches apart from the run's own, and its micro-steps as a function of a batch."""
    count = itertools.count(1)

    def step(batch):
        run.forward(batch["x"], batch["y"]).backward()
        if next(count) % 2 == 0:
            for optimizer in (run.optimizer, run.second):
                optimizer.step()
                optimizer.zero_grad()
            run.ema.update_parameters(run.net)

    plan = run.loader.dataset
    return list(itertools.islice(hr.DataLoader(plan, 3, seed=1), 4)), step


def test_steps_that_repeat_are_found_to_and_nothing_is_changed(tmp_path):
    run = Run(tmp_path / "checked")
    before = run.record(0, 0, torch.zeros(()), torch.zeros(()))
    batches, step = batches_and_step(run)
    found = run.checkpoint.check(step, batches)

    assert found.is_exact
    assert str(found) == "4 steps run twice gave the same bits"
    assert run.record(0, 0, torch.zeros(()), torch.zeros(())) == before
    assert list(run.micro_steps()) == whole(tmp_path / "golden")
    run.checkpoint.close()
    again = Run(tmp_path / "checked")
    restored = again.checkpoint.restore()
    again.checkpoint.close()
    assert restored.is_checked
    assert str(restored).endswith(": BIT-EXACT")


def test_steps_that_do_not_repeat_are_found_and_what_differs_is_named(tmp_path):
    run = Run(tmp_path)
    batches, step = batches_and_step(run)
    drift = itertools.count()

    def other(batch):
        step({**batch, "x": batch["x"] + (1e-7 * next(drift) if next(drift) > 4 else 0)})

    found = run.checkpoint.check(other, batches)
    run.checkpoint.save()
    run.checkpoint.close()

    assert (found.is_exact, found.operation) == (False, None)
    assert found.item.startswith(("model.", "gradients.", "values."))
    again = Run(tmp_path)
    restored = again.checkpoint.restore()
    again.checkpoint.close()
    assert restored.promise is Promise.DATA_EXACT
    assert "the steps do not repeat" in str(restored)


def test_an_operation_that_torch_knows_is_named(tmp_path):
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    checkpoint = hr.Checkpointer(tmp_path, model=net, optimizer=optimizer)
    drift = itertools.count()

    def step(batch):
        # Which of two values for one place wins is open; the drift stands for a device on which it changes.
        net.bias.data.put_(torch.tensor([0]), torch.tensor([1e-3 * next(drift)]))
        net(batch).sum().backward()
        optimizer.step()

    found = checkpoint.check(step, [torch.ones(2, 4)] * 2)
    checkpoint.close()

    assert not found.is_exact
    assert not torch.are_deterministic_algorithms_enabled()
    assert found.operation == "put_"
    assert str(found).endswith("; torch names put_")


def test_a_failing_step_leaves_all_as_it_was(tmp_path):
    run = Run(tmp_path)
    before = run.record(0, 0, torch.zeros(()), torch.zeros(()))
    batches, step = batches_and_step(run)

    def fails(batch):
        step(batch)
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        run.checkpoint.check(fails, batches)
    run.checkpoint.close()

    assert run.record(0, 0, torch.zeros(()), torch.zeros(())) == before
