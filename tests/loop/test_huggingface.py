"""Hugging Face's Trainer, cut and gone on with: as if it had not been, with headrace's loader and `ExactTrainer`."""

import contextlib
import functools
import json
import pathlib
import random
import shutil
from typing import NamedTuple

import numpy as np
import pytest
import torch
from tests.loop.sensitive import digest, shaken, vector
from torch import nn

import headrace as hr
from headrace.errors import CheckpointError, ConfigurationError, StateMismatch

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Trainer has much to say of small runs

NUM_SAMPLES, BATCH_SIZE, NUM_BATCHES, NUM_EPOCHS = 23, 3, 8, 3  # the last batch is smaller


class Cut(Exception):
    pass


class Net(nn.Module):
    """Whatever is random or has a history has an effect on every later loss; notes what it was given, by micro-step."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
        self.notes = []

    def forward(self, x, labels, row):
        if self.training:
            x = x + 0.1 * random.random() + 0.1 * np.random.rand()
        logits = self.body(x)
        loss = nn.functional.cross_entropy(logits, labels)
        if self.training:
            self.notes.append((row.tolist(), digest(x), loss.item().hex()))
        return {"loss": loss, "logits": logits}


class Rows:
    """Notes what is read."""

    def __init__(self):
        self.read = []

    def __len__(self):
        return NUM_SAMPLES

    def __getitem__(self, row):
        self.read.append(row)
        return row


def sample(row):
    return {"x": vector(row), "labels": row % 2, "row": row}


def shake(sample, rng):
    return {**sample, "x": shaken(sample["x"], rng)}


def make_loader(rows=range(NUM_SAMPLES), **settings):
    plan = hr.Plan.of(rows).map(sample).map(shake)
    return hr.DataLoader(plan, **{"batch_size": BATCH_SIZE, "shuffle": True, "seed": 4, **settings})


def make_plain(loader, **given):
    """A Trainer as people make it without ExactTrainer: it is handed headrace's loader."""

    class Plain(transformers.Trainer):
        def get_train_dataloader(self):
            return loader

    return Plain(**given)


def make_exact(loader, **given):
    from headrace.loop.huggingface import ExactTrainer

    return ExactTrainer(train_loader=loader, **given)


class CutAfter(transformers.TrainerCallback):
    """Ends the run as if it had been killed: behind an optimizer step, before what Trainer does after it."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            raise Cut


def make_trainer(folder, *, cut=None, seed=0, make=make_exact, loader=None, callbacks=(), **arguments):
    """A Trainer with new objects throughout."""
    settings = {
        "num_train_epochs": NUM_EPOCHS,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "cosine",
        "save_strategy": "no" if cut is None else "steps",
        "save_steps": max((cut or 0) - 1, 1),  # so that the step before the cut is the one to go on from
        "logging_steps": 1,
        "seed": seed,
        "use_cpu": True,
        "report_to": "none",
        "disable_tqdm": True,
    }
    return make(
        make_loader() if loader is None else loader,
        args=transformers.TrainingArguments(str(folder), **{**settings, **arguments}),
        model_init=Net,
        eval_dataset=[{**sample(row), "x": torch.from_numpy(vector(row))} for row in range(4)],
        callbacks=[CutAfter(cut), *callbacks],
    )


class Fit(NamedTuple):
    notes: list
    weights: str
    losses: dict


def train(trainer, *, resume=None):
    """What the model was given and what came out, by micro-step from where it began; parameters; logged losses."""
    with contextlib.suppress(Cut):
        trainer.train(resume_from_checkpoint=resume)
    losses = {log["step"]: log["loss"] for log in trainer.state.log_history if "loss" in log}
    return Fit(trainer.model.notes, digest(trainer.model.state_dict()), losses)


def fit(folder, *, resume=None, **given):
    return train(make_trainer(folder, **given), resume=resume)


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """What the run that was never interrupted is, by the settings of Trainer that differ."""

    @functools.cache
    def made(**settings):
        return fit(tmp_path_factory.mktemp("golden"), **settings)

    return made


def each_once_per_epoch(notes):
    rows = [row for rows, *_ in notes for row in rows]
    parts = [rows[start : start + NUM_SAMPLES] for start in range(0, len(rows), NUM_SAMPLES)]
    return len(parts) == NUM_EPOCHS and all(sorted(part) == list(range(NUM_SAMPLES)) for part in parts)


# (micro-steps per step, step of the cut): saved is after the step before.
CUTS = {
    "in the first epoch": (1, 4),
    "at its end": (1, 9),
    "in the second": (1, 14),
    "accumulated, in the first": (3, 3),
    "accumulated, before the smaller last step": (3, 6),
    "accumulated, at the end of the second": (3, 7),
}


@pytest.mark.parametrize(("accumulate", "cut"), CUTS.values(), ids=CUTS)
def test_a_resumed_run_is_the_one_that_was_never_interrupted(tmp_path, golden, accumulate, cut):
    settings = {"gradient_accumulation_steps": accumulate, "eval_strategy": "steps", "eval_steps": 2}
    first = fit(tmp_path, cut=cut, **settings)
    rest = fit(tmp_path, seed=99, resume=True, **settings)

    steps_per_epoch = -(-NUM_BATCHES // accumulate)
    epochs, steps = divmod(cut - 1, steps_per_epoch)
    used = first.notes[: epochs * NUM_BATCHES + steps * accumulate]
    assert used + rest.notes == golden(**settings).notes
    assert rest.weights == golden(**settings).weights
    assert rest.losses == golden(**settings).losses
    assert each_once_per_epoch(used + rest.notes)


@pytest.mark.parametrize("cut", [4, 14])
def test_without_it_a_run_that_is_cut_within_an_epoch_becomes_another(tmp_path, golden, cut):
    assert golden(make=make_plain) == golden(), "uninterrupted, the two are the same"

    first = fit(tmp_path / "run", cut=cut, make=make_plain)
    rest = fit(tmp_path / "run", seed=99, resume=True, make=make_plain)

    assert rest.weights != golden().weights
    assert each_once_per_epoch(first.notes[: cut - 1] + rest.notes) == (cut < NUM_BATCHES)


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_do_not_matter(tmp_path, golden, persistent):
    settings = {"num_workers": 2, "runner": "processes" if persistent else "threads", "persistent_workers": persistent}
    for cut in (9, 14):
        first = fit(tmp_path / str(cut), cut=cut, loader=make_loader(**settings))
        rest = fit(tmp_path / str(cut), seed=99, resume=True, loader=make_loader(**settings))

        assert first.notes[: cut - 1] + rest.notes == golden().notes
        assert rest.weights == golden().weights


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return ({**sample(row), "x": vector(row) + np.random.rand(6).astype(np.float32)} for row in range(NUM_SAMPLES))

    def __len__(self):
        if self.length is None:
            raise TypeError
        return self.length


@pytest.mark.parametrize("given", ["sampler", "stream"])
def test_other_orders(tmp_path, given):
    def make():
        if given == "stream":
            return hr.DataLoader(Stream(NUM_SAMPLES), batch_size=BATCH_SIZE, seed=4)
        weights = torch.linspace(1, 2, NUM_SAMPLES)
        return make_loader(shuffle=None, sampler=torch.utils.data.WeightedRandomSampler(weights, NUM_SAMPLES))

    whole = fit(tmp_path / "golden", loader=make())
    alone = make()
    assert [rows for rows, *_ in whole.notes] == [batch["row"].tolist() for _ in range(NUM_EPOCHS) for batch in alone]
    for cut in (len(make()) + 1, len(make()) + 4):
        first = fit(tmp_path / str(cut), cut=cut, loader=make())
        rest = fit(tmp_path / str(cut), seed=99, resume=True, loader=make())

        assert first.notes[: cut - 1] + rest.notes == whole.notes
        assert rest.weights == whole.weights


def test_what_was_used_is_not_read_again(tmp_path):
    fit(tmp_path, cut=14, loader=make_loader(Rows()))
    rows = Rows()
    rest = fit(tmp_path, seed=99, resume=True, loader=make_loader(rows))

    assert rows.read == [row for delivered, *_ in rest.notes for row in delivered]


def test_a_view_of_a_loader_goes_on_as_the_loader_does(tmp_path, golden):
    first = fit(tmp_path, cut=14, loader=make_loader().to("cpu"))
    rest = fit(tmp_path, seed=99, resume=True, loader=make_loader().to("cpu"))

    assert first.notes[:13] + rest.notes == golden().notes
    assert rest.weights == golden().weights


def test_a_trainer_trains_again_and_goes_on_from_what_it_saved_itself(tmp_path, golden):
    trainer = make_trainer(tmp_path, cut=14)
    train(trainer)

    trainer.remove_callback(CutAfter)
    assert train(trainer, resume=True).weights == golden().weights
    assert train(trainer) == golden()


def test_callbacks_that_trainer_makes_anew_keep_the_place(tmp_path, golden):
    fit(tmp_path, cut=6)
    settings = {"restore_callback_states_from_checkpoint": True, "save_strategy": "steps", "save_steps": 1}
    fit(tmp_path, seed=99, resume=True, cut=14, **settings)

    assert fit(tmp_path, seed=98, resume=True, **settings).weights == golden().weights


def test_a_run_that_ends_by_its_steps_goes_on_within_an_epoch(tmp_path, golden):
    fit(tmp_path, cut=11, max_steps=13)
    rest = fit(tmp_path, seed=99, resume=True, max_steps=13)

    assert rest.notes == golden(max_steps=13).notes[10:]
    assert rest.weights == golden(max_steps=13).weights


def test_two_ranks_go_on_each_with_its_own(tmp_path):
    from tests.loop.test_ranks import under_torchrun

    under_torchrun(2, "tests.loop.ranked_trainer", tmp_path, 8)
    ranks = [json.loads((tmp_path / f"rank-{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]

    for whole, first, rest in ranks:
        (notes, weights, _), (before, *_), (after, weights_after, _) = whole, first, rest
        assert before[:7] + after == notes
        assert weights_after == weights
    (one, *_), (other, *_) = ranks
    assert not {tuple(rows) for rows, *_ in one[0]} & {tuple(rows) for rows, *_ in other[0]}


def test_it_stands_before_a_subclass_of_trainer(tmp_path, golden):
    from headrace.loop.huggingface import ExactTrainer

    class Theirs(transformers.Trainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.is_theirs = True

    class Ours(ExactTrainer, Theirs):
        pass

    trainer = make_trainer(tmp_path, make=lambda loader, **given: Ours(train_loader=loader, **given))
    assert trainer.is_theirs
    assert train(trainer) == golden()


def test_what_the_guide_shows(tmp_path, monkeypatch, load_file):
    tests = pathlib.Path(__file__).parents[1]
    blocks = load_file(tests / "docs/blocks.py").read_blocks(tests.parent / "docs/guide/checkpoints.md")
    (shown,) = [block.body for block in blocks if "ExactTrainer(" in block.body]
    monkeypatch.chdir(tmp_path)

    def weights():
        names = {"torch": torch, "hr": hr}
        exec(compile(shown, "docs/guide/checkpoints.md", "exec"), names)
        return digest(names["trainer"].model.state_dict())

    whole = weights()
    assert sorted(path.name for path in pathlib.Path("runs/squares").iterdir())[:3] == [
        *("checkpoint-10", "checkpoint-15", "checkpoint-20")
    ]
    for newer in ("checkpoint-15", "checkpoint-20", "checkpoint-24"):
        shutil.rmtree(pathlib.Path("runs/squares") / newer)
    assert weights() == whole


# What cannot be exact is refused.


def test_a_loader_whose_place_cannot_be_kept_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^train_loader is a DataLoader, whose place"):
        make_trainer(tmp_path, loader=torch.utils.data.DataLoader([1, 2]))


def test_epochs_of_several_lengths_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r'^a loader with tail="carry"'):
        make_trainer(tmp_path, loader=make_loader(tail="carry").to("cpu"))


def test_a_loader_of_other_ranks_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^this process is rank 0 of 1, its train_loader is of rank 1 of 2"):
        make_trainer(tmp_path, loader=make_loader(batch_size=4, rank=1, world_size=2))


def test_to_begin_epochs_anew_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^ignore_data_skip=True"):
        fit(tmp_path, ignore_data_skip=True)


def test_a_loader_that_somebody_else_hands_out_is_refused(tmp_path):
    trainer = make_trainer(tmp_path)
    trainer.get_train_dataloader = make_loader
    with pytest.raises(ConfigurationError, match=r"^Trainer iterates a DataLoader and not train_loader"):
        train(trainer)


def test_a_checkpoint_without_a_place_is_refused(tmp_path):
    fit(tmp_path, cut=4, make=make_plain)
    with pytest.raises(CheckpointError, match=r"^the checkpoint of step 3 holds no place"):
        fit(tmp_path, resume=True)


def test_a_stream_that_does_not_say_its_length_goes_on_in_its_first_pass_alone(tmp_path):
    def run(folder, **given):
        return fit(tmp_path / folder, loader=hr.DataLoader(Stream(None), batch_size=BATCH_SIZE), max_steps=12, **given)

    whole = run("golden")
    run("run", cut=5)
    rest = run("run", seed=99, resume=True)
    assert rest.notes == whole.notes[4:]
    assert rest.weights == whole.weights

    run("later", cut=11)
    with pytest.raises(
        StateMismatch, match=r"^Trainer goes on behind batch 10 of epoch 0; the loader was saved behind batch 2 "
    ):
        run("later", resume=True)


@pytest.mark.parametrize("changed", [{"gradient_accumulation_steps": 2}, {"loader": {"batch_size": 4}}])
def test_a_place_that_trainer_does_not_go_on_from_is_refused(tmp_path, changed):
    fit(tmp_path, cut=12)
    loader = make_loader(**changed.pop("loader", {}))
    with pytest.raises(
        StateMismatch, match=r"^Trainer goes on behind batch . of epoch .; the loader was saved behind batch 3"
    ):
        fit(tmp_path, resume=True, loader=loader, **changed)


def test_other_data_are_refused(tmp_path):
    fit(tmp_path, cut=4)
    with pytest.raises(StateMismatch, match=r"^the saved state does not fit this loader"):
        fit(tmp_path, resume=True, loader=make_loader(range(100, 100 + NUM_SAMPLES + 1)))


def test_the_place_is_plain_values_in_trainers_own_file(tmp_path):
    fit(tmp_path, cut=12)
    state = json.loads((tmp_path / "checkpoint-11" / "trainer_state.json").read_text(encoding="utf-8"))
    place = state["stateful_callbacks"]["LoaderPlace"]["attributes"]["place"]

    assert (place["pass"], place["batches"], place["is_over"]) == (1, 3, False)
    assert (place["loader"]["epoch"], place["loader"]["consumed"]) == (1, 9)
