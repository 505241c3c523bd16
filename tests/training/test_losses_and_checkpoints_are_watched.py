"""The first loss that is not finite, and what checkpoints hold."""

from __future__ import annotations

import io
import random
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

from headrace.doctor import catalogue
from headrace.doctor.made_up.training import loader_trace, loaders
from headrace.doctor.watch.contents import holds
from headrace.doctor.watch.intent import goes_on

from .conftest import Net


def test_the_first_loss_that_is_not_finite_names_its_samples(watched):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(watched.batches(0, 8)):
        if number == 5:
            batch[2, 1] = float("nan")
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    (found,) = catalogue.rule("HR910").judge(watched.loss)
    assert found.sample_ids == (20, 21, 22, 23)
    assert "the loss was nan at step 5" in found.message
    assert found.severity == "error"


def test_a_step_that_the_script_leaves_out_is_healthy(watched):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, batch in enumerate(watched.batches(0, 8)):
        optimizer.zero_grad()
        loss = model(batch).square().mean() * (float("inf") if number == 2 else 1)
        loss.backward()
        if torch.isfinite(loss):
            optimizer.step()
    assert watched.loss.num_nonfinite == 1
    assert catalogue.rule("HR910").judge(watched.loss) == []


def states():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    return [
        (model.state_dict(), ("model",)),
        (model, ("model",)),
        ({"net": model.state_dict(), "epoch": 3}, ("model", "epoch")),
        ({"a": {"b": optimizer.state_dict()}}, ("optimizer",)),
        ([model.state_dict(), optimizer.state_dict(), 7], ("model", "optimizer")),
        ({"s": scheduler.state_dict(), "global_step": 3}, ("scheduler", "step")),
        ({"s": plateau.state_dict()}, ("scheduler",)),
        ({"r": torch.get_rng_state()}, ("random-state",)),
        ({"r": random.getstate(), "n": np.random.get_state()}, ("random-state",)),
        (torch.amp.GradScaler("cpu").state_dict(), ("scaler",)),
        ({"images": torch.zeros(3, 4, dtype=torch.uint8), "n": 3}, ()),
        ("text", ()),
        ({}, ()),
    ]


@pytest.mark.parametrize("number", range(len(states())))
def test_contents_are_recognised_by_their_form(number):
    value, expected = states()[number]
    assert holds(value) == expected


def train_and_save(watched, save, num=10, **kwargs):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for number, batch in enumerate(watched.batches(0, num)):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if number == num - 1:
            save(model, optimizer)


def test_files_of_one_moment_are_one_checkpoint(watched, tmp_path):
    def save(model, optimizer):
        torch.save(model.state_dict(), tmp_path / "model.pt")
        torch.save(optimizer.state_dict(), str(tmp_path / "optimizer.pt"))
        torch.save({"step": 3}, io.BytesIO())

    train_and_save(watched, save)
    (one,) = watched.checkpoints.saved
    assert one.holds == ("model", "optimizer")
    assert watched.checkpoints.needed == ("model", "optimizer")
    assert not one.is_complete_write


def test_a_renamed_file_is_a_complete_write(watched, tmp_path):
    def save(model, optimizer):
        torch.save(model.state_dict(), tmp_path / "x.tmp")
        (tmp_path / "x.tmp").replace(tmp_path / "x.pt")

    train_and_save(watched, save)
    (one,) = watched.checkpoints.saved
    assert one.is_complete_write
    assert one.path == str(tmp_path / "x.pt")


def test_weights_that_are_exported_are_healthy(watched, tmp_path):
    train_and_save(watched, lambda model, _: torch.save(model.state_dict(), tmp_path / "model.pt"))
    assert catalogue.rule("HR906").judge(watched.checkpoints, loaders(loader_trace(steps=(10,)))) == []


def test_weights_that_training_begins_with_again_lack_the_optimizer(watched, tmp_path):
    path = tmp_path / "last.pt"
    torch.save(Net().state_dict(), path)
    first = torch.load(path)
    train_and_save(watched, lambda model, _: torch.save(model.state_dict(), path))
    assert first
    (found,) = catalogue.rule("HR906").judge(watched.checkpoints, loaders(loader_trace(steps=(10,))))
    assert "lacks the optimizer" in found.message
    assert found.severity == "error"


RESUMES = """
    import os, torch

    def load(path, model):
        state = torch.load(path)
        model.load_state_dict(state["net"])
        return state["epoch"]

    def main():
        model = make()
        start = load("last.pt", model) if os.path.exists("last.pt") else 0
        for epoch in range(start, 9):
            train(model)
            torch.save({"net": model.state_dict(), "epoch": epoch}, "last.pt")
    """
TESTS_THE_BEST = """
    import torch

    def load(path, model):
        state = torch.load(path)
        model.load_state_dict(state["net"])
        print(state["epoch"])

    def main():
        model = make()
        for epoch in range(9):
            train(model)
            torch.save({"net": model.state_dict(), "epoch": epoch}, "best.pt")
        load("best.pt", model)
    """
SAME_PATH = """
    import pathlib, torch
    CHECKPOINT = pathlib.Path("last.pt")
    model = make()
    if CHECKPOINT.exists():
        model.load_state_dict(torch.load(CHECKPOINT))
    for epoch in range(9):
        train(model)
        torch.save(model.state_dict(), CHECKPOINT)
    """
STARTS_FROM_OTHERS = """
    import torch
    model = make()
    model.load_state_dict(torch.load("imagenet.pt")["weights"])
    for epoch in range(9):
        train(model)
        torch.save({"net": model.state_dict(), "epoch": epoch}, "last.pt")
    """


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RESUMES, "reads 'epoch' back"),
        (TESTS_THE_BEST, None),
        (SAME_PATH, "loads CHECKPOINT, which it saves"),
        (STARTS_FROM_OTHERS, None),
    ],
    ids=["resumes", "tests the best", "same path", "starts from others"],
)
def test_the_text_says_whether_it_goes_on(text, expected):
    text = textwrap.dedent(text)
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "torch.save" in row)
    found = goes_on(text, save_line=line, step_line=line, counters=["epoch"])
    assert (found and found[1]) == expected


def test_a_module_is_saved_as_it_is(watched, tmp_path):
    model = nn.Sequential(nn.Linear(4, 2))
    torch.optim.SGD(model.parameters(), lr=0.1)
    torch.save(model, tmp_path / "whole.pt")
    assert b"headrace" not in (tmp_path / "whole.pt").read_bytes()
