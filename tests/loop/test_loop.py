"""The loop does what the plain loop does, to the last bit; goes on after a kill; and names the mistakes that people make."""

import itertools
import json
import math
import random
import warnings

import numpy as np
import pytest
import torch
from tests.loop.sensitive import Net, digest, own_loader, vector
from torch import nn

import headrace as hr
from headrace.errors import ConfigurationError, DataError, LoopWarning, NonFiniteLoss
from headrace.loop.replay import load_batch

EPOCHS = 3


def measured(net):
    def measure(batch):
        return {"loss": nn.functional.cross_entropy(net(batch["x"]), batch["y"], reduction="none")}

    return measure


def validation():
    rows = [{"x": vector(row), "y": row % 2} for row in range(100, 110)]
    return hr.DataLoader(rows, 4)


def seeded(seed=0):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def parts(lr=1e-2):
    net = Net()
    optimizer = torch.optim.AdamW(net.body.parameters(), lr=lr)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=6)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    return net, optimizer, warm, plateau


def body(net, batch):
    x = batch["x"] + 0.01 * random.random() + 0.01 * np.random.rand()
    return nn.functional.cross_entropy(net(x), batch["y"])


def evaluated(net):
    """The mean loss over the validation rows; what the forward passes change is put back."""
    kept = net.scale.clone()
    net.eval()
    with torch.no_grad():
        total = sum(float(measured(net)(batch)["loss"].double().sum()) for batch in validation())
    net.scale.copy_(kept)
    net.train()
    return total / 10


def plain(accumulate=1, clip=None, every=None):
    """The loop that a person writes by hand; returns the digests of all steps, and the values of the evaluations.

    `every` are the steps between two evaluations; None: after each epoch.
    """
    seeded()
    net, optimizer, warm, plateau = parts()
    digests, history = [], []
    loader = own_loader()
    newest = None
    for epoch in range(EPOCHS):
        for group in (
            itertools.batched(loader, accumulate) if hasattr(itertools, "batched") else groups(loader, accumulate)
        ):
            for batch in group:
                (body(net, batch) / len(group)).backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(net.body.parameters(), clip)
            optimizer.step()
            warm.step()
            optimizer.zero_grad()
            digests.append(digest([net.state_dict(), optimizer.state_dict()]))
            if every is not None and len(digests) % every == 0:
                history.append(newest := evaluated(net))
        if every is None or (epoch == EPOCHS - 1 and len(digests) % every):
            history.append(newest := evaluated(net))
        if newest is not None:
            plateau.step(newest)
            newest = None
    return digests, history


def groups(loader, size):
    batches = iter(loader)
    while group := list(itertools.islice(batches, size)):
        yield group


class Watched:
    """A loop of headrace's over the same parts; `digests` has one entry per optimizer step."""

    def __init__(self, folder, seed=0, evaluates=True, **more):
        seeded(seed)
        self.net, self.optimizer, warm, plateau = parts()
        self.loop = hr.Loop(
            self.net,
            self.optimizer,
            **{
                "train": own_loader(),
                "epochs": EPOCHS,
                "folder": folder,
                "evaluate": validation() if evaluates else None,
                "measure": measured(self.net) if evaluates else None,
                "scheduler": warm,
                "epoch_scheduler": plateau if evaluates else None,
                "every_s": None,
                "sanity": False,
                **more,
            },
        )
        self.digests = {}

    def steps(self):
        """Trains; yields after each batch."""
        for step in self.loop:
            self.train(step)
            yield step

    def train(self, step):
        step.update(body(self.net, step.batch))
        if self.loop._updates.pending == 0:
            self.note()

    def note(self):
        self.digests[self.loop.steps] = digest([self.net.state_dict(), self.optimizer.state_dict()])

    def finish(self):
        return self.finish_at(None)

    def finish_at(self, most):
        """Trains until the run is over, or the body of a step behind `most` begins."""
        for step in self.loop:
            if step.number == most:
                break
            self.train(step)
        self.loop.close()
        return self


def close(one, other):
    return all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("clip", [None, 0.05])
def test_it_does_what_the_plain_loop_does_to_the_last_bit(tmp_path, clip):
    digests, history = plain(clip=clip)
    watched = Watched(tmp_path, clip=clip).finish()

    assert list(watched.digests.values()) == digests
    assert [one["loss"] for one in watched.loop.history] == history


def test_accumulated_gradients_are_means_over_the_batches_of_the_step(tmp_path):
    # 8 batches by 3: the last step of an epoch has two, and is the mean over two. SGD, because Adam blows rounding up.
    seeded()
    net = Net()
    optimizer = torch.optim.SGD(net.body.parameters(), 0.1)
    for group in groups(own_loader(), 3):
        for batch in group:
            (body(net, batch) / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
    seeded()
    other = Net()
    loop = hr.Loop(
        other,
        torch.optim.SGD(other.body.parameters(), 0.1),
        train=own_loader(),
        epochs=1,
        folder=tmp_path,
        evaluate=None,
        accumulate=3,
    )
    for step in loop:
        step.update(body(other, step.batch))
    loop.close()

    assert loop.steps == 3
    for name, value in other.state_dict().items():
        torch.testing.assert_close(value, net.state_dict()[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("at", [1, 4, 8, 9, 16, 23])
def test_cut_at_any_batch_it_goes_on_to_the_last_bit(tmp_path, at, accumulate):
    golden = Watched(tmp_path / "golden", accumulate=accumulate).finish()
    first = Watched(tmp_path / "run", accumulate=accumulate)
    steps = first.steps()
    list(itertools.islice(steps, at))
    first.loop.checkpoint.save()
    first.loop.close()
    second = Watched(tmp_path / "run", accumulate=accumulate, seed=99).finish()

    assert {**first.digests, **second.digests} == golden.digests
    assert second.loop.history == golden.loop.history[len(golden.loop.history) - len(second.loop.history) :]


def test_evaluation_changes_nothing_in_the_training(tmp_path):
    with_it = Watched(tmp_path / "with", epoch_scheduler=None).finish()
    without = Watched(tmp_path / "without", evaluates=False).finish()

    assert with_it.digests == without.digests


def test_evaluation_weighs_samples_and_not_batches(tmp_path):
    net = Net()
    loop = hr.Loop(
        net, torch.optim.SGD(net.body.parameters(), 0.1), train=own_loader(), epochs=0, folder=tmp_path, evaluate=None
    )
    rows = [{"x": vector(row), "y": row} for row in range(10)]

    def per_sample(batch):
        return {"mean": batch["y"].float()}

    def per_batch(batch):
        return {"mean": batch["y"].float().mean()}

    for measure in (per_sample, per_batch):
        assert loop.evaluate(measure, hr.DataLoader(rows, 4)) == {"mean": 4.5}
    assert loop.evaluate(per_sample, hr.DataLoader(rows, 4, tail="pad")) == {"mean": 4.5}
    with pytest.raises(ConfigurationError, match="one number for a batch of which 2 samples only fill it up"):
        loop.evaluate(per_batch, hr.DataLoader(rows, 4, tail="pad"))
    with pytest.raises(ConfigurationError, match=r"the evaluation's 'x' has shape \(4, 6\)"):
        loop.evaluate(lambda batch: {"x": batch["x"]}, hr.DataLoader(rows, 4))
    with pytest.raises(DataError, match="the evaluation had no batch"):
        loop.evaluate(per_sample, [])
    loop.close()


def test_patience_ends_the_run_and_a_restart_does_not_go_on(tmp_path):
    def worse(batch, values=iter(range(100))):
        return {"loss": torch.tensor([float(next(values))])}

    watched = Watched(tmp_path, measure=worse, evaluate=[1], epochs=50, patience=2).finish()
    assert watched.loop.is_stopped
    assert watched.loop.steps == 3 * 8, "the first evaluation is the best, two worse ones end it"
    again = Watched(tmp_path, measure=worse, evaluate=[1], epochs=50, patience=2).finish()
    assert again.digests == {}


def test_the_best_checkpoint_is_kept(tmp_path):
    values = iter([0.5, 0.2, 0.9])
    watched = Watched(tmp_path, measure=lambda _: {"loss": torch.tensor([float(next(values))])}, evaluate=[1]).finish()

    assert watched.loop.checkpoint.best_metric == pytest.approx(0.2)
    again = Watched(tmp_path)
    assert again.loop.checkpoint.restore("best").epoch == 2
    again.loop.close()


def test_no_evaluation_set_is_a_warning_until_it_is_meant(tmp_path):
    net = Net()
    optimizer = torch.optim.SGD(net.body.parameters(), 0.1)
    unsaid = hr.Loop(net, optimizer, train=own_loader(), epochs=1, folder=tmp_path / "a")
    with pytest.warns(LoopWarning, match="has no evaluation set"):
        next(iter(unsaid))
    unsaid.close()
    meant = hr.Loop(net, optimizer, train=own_loader(), epochs=1, folder=tmp_path / "b", evaluate=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(meant))
    meant.close()


def test_a_loss_that_is_not_finite_is_refused_with_its_samples_and_kept(tmp_path):
    watched = Watched(tmp_path)
    before = digest(watched.net.state_dict())
    step = next(iter(watched.loop))
    with pytest.raises(NonFiniteLoss, match=r"the loss of step 0 \(epoch 0\) is nan; samples \d+, \d+, \d+") as caught:
        step.update(body(watched.net, step.batch) * float("nan"))
    watched.loop.close()

    folder = tmp_path / "failed" / "step-000000000"
    assert str(folder) in caught.value.__notes__[0]
    assert json.loads((folder / "note.json").read_text())["sample_ids"] == list(step.ids)
    assert torch.equal(load_batch(folder)["x"], step.batch["x"])
    assert before != digest(watched.net.state_dict()), "the forward pass alone moved the statistics of the batch norm"
    assert all(parameter.grad is None for parameter in watched.net.parameters())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"accumulate": 0}, "accumulate=0"),
        ({"clip": 0.0}, "clip=0.0"),
        ({"precision": "fp8"}, "precision='fp8'"),
        ({"better": "more"}, "better='more'"),
        ({"patience": 0}, "patience=0"),
        ({"epochs": -1}, "epochs=-1"),
        ({"measure": None}, "measure= does not say what to compute"),
    ],
)
def test_arguments_that_cannot_work_are_refused(tmp_path, more, words):
    with pytest.raises(ConfigurationError, match=words):
        Watched(tmp_path, **more)


def test_a_value_that_is_not_evaluated_cannot_be_watched(tmp_path):
    with pytest.raises(ConfigurationError, match="has no value 'accuracy'; it has 'loss'"):
        Watched(tmp_path, watched="accuracy").finish()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_goes_on_to_the_last_bit_too(tmp_path, precision):
    golden = Watched(tmp_path / "golden", precision=precision).finish()
    first = Watched(tmp_path / "run", precision=precision)
    list(itertools.islice(first.steps(), 11))
    first.loop.checkpoint.save()
    first.loop.close()
    second = Watched(tmp_path / "run", precision=precision, seed=99).finish()

    assert {**first.digests, **second.digests} == golden.digests
    assert golden.digests != Watched(tmp_path / "full").finish().digests


def test_outside_of_the_loop_the_optimizer_is_the_users(tmp_path):
    watched = Watched(tmp_path)
    for step in watched.loop:
        step.update(body(watched.net, step.batch))
        break
    body(watched.net, step.batch).backward()
    watched.optimizer.step()
    watched.loop.close()


def test_it_goes_on_where_it_was_left_in_the_same_process(tmp_path):
    golden = Watched(tmp_path / "golden").finish()
    watched = Watched(tmp_path / "run")
    for _ in range(2):
        list(itertools.islice(watched.steps(), 5))
    watched.finish()

    assert watched.digests == golden.digests
