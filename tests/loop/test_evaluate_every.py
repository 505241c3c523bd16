"""Evaluation every so many steps: the run is the one without it, and cut anywhere it goes on to the last bit."""

import itertools
import json
import os
import signal

import pytest
import torch
from tests.loop.sensitive import own_loader, torch_loader
from tests.loop.test_loop import EPOCHS, Watched, body, measured, plain, validation

import headrace as hr
from headrace.errors import ConfigurationError

PER_EPOCH = 8


class Evaluated(Watched):
    """A loop that is evaluated every 3 steps; `asked` has the optimizer steps at which it was, in this process."""

    def __init__(self, folder, *, dies_at=None, **more):
        self.asked = []
        self.dies_at = dies_at
        super().__init__(folder, **{"evaluate_every": 3, **more})
        of_batch = measured(self.net)

        def measure(batch):
            if not self.asked or self.asked[-1] != self.loop.steps:
                self.asked.append(self.loop.steps)
            if self.loop.steps == self.dies_at and batch["y"].shape[0] == 2:  # its last batch
                raise KeyboardInterrupt
            return of_batch(batch)

        self.loop._measure = more.get("measure") or measure


def evaluations(folder):
    """(step, value) of each evaluation in the history, in its order."""
    rows = map(json.loads, (folder / "history.jsonl").read_text(encoding="utf-8").splitlines())
    return [(row["step"], row["evaluation/loss"]) for row in rows if "evaluation/loss" in row]


def losses(folder):
    rows = map(json.loads, (folder / "history.jsonl").read_text(encoding="utf-8").splitlines())
    return [(row["step"], row["loss"]) for row in rows if "loss" in row]


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    runs = {}

    def of(**more):
        key = tuple(more.items())
        if key not in runs:
            folder = tmp_path_factory.mktemp("golden")
            run = Evaluated(folder, log_every=1, **more).finish()
            runs[key] = run, evaluations(folder), losses(folder)
        return runs[key]

    return of


@pytest.mark.parametrize("every", [3, 5, 8, 20, 100])
def test_it_does_what_the_plain_loop_does_to_the_last_bit(tmp_path, every):
    digests, history = plain(every=every)
    watched = Evaluated(tmp_path, evaluate_every=every).finish()

    assert list(watched.digests.values()) == digests
    assert [one["loss"] for one in watched.loop.history] == history
    assert watched.asked == sorted({*range(every, 25, every), 24})
    assert evaluations(tmp_path) == list(zip(watched.asked, history, strict=True))


@pytest.mark.parametrize("loader", [own_loader, torch_loader])
def test_it_changes_nothing_in_the_training(tmp_path, loader):
    ends = []
    for more in ({"evaluate_every": 3}, {"evaluate_every": 5}, {}, {"evaluate": None, "measure": None}):
        watched = Watched(
            tmp_path / str(len(ends)),
            **{"train": Dicts(loader()) if loader is torch_loader else loader(), "epoch_scheduler": None, **more},
        ).finish()
        ends.append(watched.digests)

    assert len(ends[0]) == EPOCHS * PER_EPOCH
    assert all(one == ends[0] for one in ends)


class Dicts:
    """Batches of another loader, by name."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return ({"x": x, "y": y} for x, y in self.loader)

    def __len__(self):
        return len(self.loader)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("at", range(1, 25))
def test_cut_before_an_evaluation_or_anywhere_it_goes_on_to_the_last_bit(tmp_path, golden, at, accumulate):
    whole, values, logged = golden(accumulate=accumulate)
    first = Evaluated(tmp_path, accumulate=accumulate, log_every=1)
    list(itertools.islice(first.steps(), at))
    first.loop.checkpoint.save()
    first.loop.close()
    second = Evaluated(tmp_path, accumulate=accumulate, seed=99, log_every=1).finish()

    assert {**first.digests, **second.digests} == whole.digests
    assert evaluations(tmp_path) == values
    assert losses(tmp_path) == logged
    assert first.asked + second.asked == whole.asked, "each evaluation was made once"


@pytest.mark.parametrize("steps", [3, 4, 6, 9, 15, 16])
def test_cut_behind_an_evaluation_it_is_not_made_again(tmp_path, golden, steps):
    whole, values, logged = golden(accumulate=1)
    first = Evaluated(tmp_path, every=1, log_every=1)
    for step in first.loop:
        if step.number == steps:
            break  # behind what follows the step before
        step.update(body(first.net, step.batch))
        first.note()
    first.loop.close()
    second = Evaluated(tmp_path, seed=99, log_every=1).finish()

    assert {**first.digests, **second.digests} == whole.digests
    assert second.loop.restored.step == steps
    assert first.asked + second.asked == whole.asked
    assert evaluations(tmp_path) == values
    assert losses(tmp_path) == logged


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("goes_on", ["from the last save", "from a save now", "in this process"])
@pytest.mark.parametrize("dies_at", [6, 9])
def test_cut_within_an_evaluation_it_is_made_anew(tmp_path, golden, dies_at, goes_on, accumulate):
    whole, values, logged = golden(accumulate=accumulate)
    first = Evaluated(tmp_path, every=2, log_every=1, dies_at=dies_at, accumulate=accumulate)
    with pytest.raises(KeyboardInterrupt):
        first.finish()
    first.dies_at = None
    if goes_on == "from a save now":
        first.loop.checkpoint.save()
    second = first
    if goes_on != "in this process":
        first.loop.close()
        second = Evaluated(tmp_path, seed=99, log_every=1, accumulate=accumulate)
    second.finish()

    assert {**first.digests, **second.digests} == whole.digests
    assert evaluations(tmp_path) == values
    assert losses(tmp_path) == logged


@pytest.mark.parametrize("every", [None, 3])
def test_cut_within_the_evaluation_after_an_epoch_nothing_of_it_is_left_out(tmp_path, golden, every):
    whole, values, _ = golden(evaluate_every=every)
    for name, saves in (("saved", True), ("kept", False)):
        folder = tmp_path / name
        first = Evaluated(folder, evaluate_every=every, log_every=1, dies_at=16 if every is None else 24)
        with pytest.raises(KeyboardInterrupt):
            first.finish()
        first.dies_at = None
        second = first
        if saves:
            first.loop.checkpoint.save()
            first.loop.close()
            second = Evaluated(folder, evaluate_every=every, log_every=1, seed=99)
        second.finish()

        assert {**first.digests, **second.digests} == whole.digests
        assert evaluations(folder) == values
        assert second.loop.epoch == EPOCHS


def told(values):
    """A measure that says these values, one for each evaluation of one batch."""
    values = iter(values)
    return {"measure": lambda _: {"loss": torch.tensor([float(next(values))])}, "evaluate": [1]}


def test_patience_ends_it_in_mid_epoch_and_a_restart_does_not_go_on(tmp_path, capsys):
    watched = Evaluated(tmp_path, epochs=50, patience=2, **told([5, 4, 6, 4.5])).finish()

    assert watched.loop.is_stopped
    assert watched.loop.steps == 12, "the second is the best, two worse ones end it"
    assert watched.loop.epoch == 1
    assert capsys.readouterr().err == "stopped at step 12: 2 evaluations without a better 'loss' (patience)\n"
    again = Evaluated(tmp_path, seed=99, epochs=50, patience=2, **told([])).finish()
    assert again.digests == {}
    assert again.loop.is_stopped
    assert again.loop.restored.step == 12
    assert "stopped at step 12: " in capsys.readouterr().err


@pytest.mark.parametrize("at", [5, 6, 8, 9, 11])
def test_patience_counts_on_over_a_cut(tmp_path, at):
    values = [5, 4, 6, 4.5]
    first = Evaluated(tmp_path, epochs=50, patience=2, **told(values))
    list(itertools.islice(first.steps(), at))
    first.loop.checkpoint.save()
    first.loop.close()
    second = Evaluated(tmp_path, seed=99, epochs=50, patience=2, **told(values[(at - 1) // 3 :])).finish()

    assert second.loop.steps == 12
    assert second.loop.checkpoint.best_metric == 4


def test_the_best_of_a_mid_epoch_is_brought_back_to_its_very_batch(tmp_path):
    whole = Evaluated(tmp_path / "whole", epoch_scheduler=None, **told([5, 4, 3, 1, 6, 7, 8, 9])).finish()
    first = Evaluated(tmp_path / "run", epoch_scheduler=None, **told([5, 4, 3, 1, 6, 7])).finish_at(18)
    place = first.loop.folder / "checkpoints" / (first.loop.folder / "checkpoints/best").read_text().strip()
    assert json.loads((place / "manifest.json").read_text())["metric"] == 1

    again = Evaluated(tmp_path / "run", seed=99, epoch_scheduler=None, **told([6, 7, 8, 9]))
    restored = again.loop.checkpoint.restore("best")
    assert (restored.step, restored.epoch, restored.batch) == (12, 1, 4)
    again.loop._is_begun = True  # as after a break: go on from what was brought back
    again.finish()
    assert again.digests == {step: one for step, one in whole.digests.items() if step > 12}


@pytest.mark.parametrize("more", [{"every": 3}, {"every": 1}])
def test_a_save_that_is_due_does_not_take_the_place_of_the_best_at_its_step(tmp_path, more):
    loop = Evaluated(tmp_path, epoch_scheduler=None, **more, **told([5, 4, 3, 1, 6, 7, 8, 9])).finish().loop
    # Once for each step that is due, best or not; at the ends of epochs that are due; and at the end.
    assert loop.checkpoint._attempts == (8 + 1 + 1 if more["every"] == 3 else 24 + 3 + 1)
    folder = tmp_path / "checkpoints"
    manifest = json.loads((folder / (folder / "best").read_text().strip() / "manifest.json").read_text())
    assert (manifest["step"], manifest["metric"], manifest["reason"]) == (12, 1, "evaluated")


class Taught(torch.optim.lr_scheduler.ReduceLROnPlateau):
    """Writes down what it is given."""

    def __init__(self, optimizer):
        self.given = []
        super().__init__(optimizer)

    def step(self, metrics, epoch=None):
        self.given.append(float(metrics))
        super().step(metrics, epoch)


@pytest.mark.parametrize(
    ("every", "given"),
    [
        (3, [2, 5, 8]),  # 3, 6 | 9, 12, 15 | 18, 21, 24
        (10, [1, 3]),  # none | 10 | 20, 24
        (16, [1, 2]),  # none | 16 | 24, the last
    ],
)
def test_schedules_that_take_a_value_get_the_newest_and_wait_where_there_is_none(tmp_path, every, given):
    net = torch.nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    taught, counted = Taught(optimizer), torch.optim.lr_scheduler.StepLR(optimizer, 1)
    loop = hr.Loop(
        net,
        optimizer,
        train=own_loader(),
        epochs=EPOCHS,
        folder=tmp_path,
        evaluate_every=every,
        epoch_scheduler={"taught": taught, "counted": counted},
        sanity=False,
        **told(range(1, 9)),
    )
    for step in loop:
        step.update(torch.nn.functional.cross_entropy(net(step.batch["x"]), step.batch["y"]))
    loop.close()

    assert taught.given == given
    assert counted.last_epoch == EPOCHS


def test_who_asks_by_a_signal_does_not_wait_for_an_evaluation(tmp_path):
    seen = []

    def measure(_):
        watched.loop.checkpoint.wait()
        seen.append((watched.loop.steps, sorted(watched.loop.checkpoint._folder.steps())))
        return {"loss": torch.ones(1)}

    watched = Evaluated(tmp_path, measure=measure, evaluate=[1])
    for step in watched.loop:
        step.update(body(watched.net, step.batch))
        if watched.loop.steps == 6:
            os.kill(os.getpid(), signal.SIGUSR1)
        if watched.loop.steps == 7:
            break
    watched.loop.close()

    assert seen == [(3, []), (6, [3, 6])], "the first is the best so far; the second was saved because it was asked"


def test_what_the_body_does_behind_the_update_is_saved_too(tmp_path):
    def run(folder, most=None):
        averaged = {"steps": 0}
        watched = Evaluated(folder, every=1, extra={"averaged": averaged})
        for step in watched.loop:
            if step.number == most:
                break
            step.update(body(watched.net, step.batch))
            averaged["steps"] += 1
        watched.loop.close()
        return averaged

    run(tmp_path / "run", most=5)
    assert run(tmp_path / "run") == {"steps": 24}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"evaluate_every": 0}, "evaluate_every=0"),
        ({"evaluate": None}, "evaluate_every=3, and there is nothing to evaluate on"),
        ({"evaluate": None, "evaluate_every": None}, "takes a value, and there is no evaluation"),
    ],
)
def test_arguments_that_cannot_work_are_refused(tmp_path, more, words):
    with pytest.raises(ConfigurationError, match=words):
        Evaluated(tmp_path, **more)


def test_the_loader_that_is_trained_on_cannot_be_evaluated_on(tmp_path):
    loader = own_loader()
    with pytest.raises(ConfigurationError, match="evaluate= is the loader that is trained on"):
        Watched(tmp_path, train=loader, evaluate=loader)
    rows = list(validation())
    Watched(tmp_path, train=rows, evaluate=rows, evaluate_every=2).finish()
