"""What is read in the source around a target, without running it."""

from __future__ import annotations

import textwrap

import pytest

from headrace.doctor.probes.sources import Source, read_source


@pytest.fixture
def read(tmp_path):
    def of(code, **others):
        for name, text in {"data": code, **others}.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        return read_source(f"{tmp_path / 'data.py'}:make_loader")

    return of


def test_a_source_that_is_not_there_says_nothing(tmp_path):
    assert read_source(f"{tmp_path}/none.py:x") == Source()
    assert read_source("") == Source()
    (tmp_path / "odd.py").write_text("def (")
    assert read_source(f"{tmp_path}/odd.py:x") == Source()


@pytest.mark.parametrize(
    ("call", "path", "is_constant"),
    [
        ("loader.sampler.set_epoch(epoch)", ("sampler",), False),
        ("self.train_loader.batch_sampler.sampler.set_epoch(e)", ("batch_sampler", "sampler"), False),
        ("sampler.set_epoch(start + epoch)", (), False),
        ("loader.sampler.set_epoch(0)", ("sampler",), True),
        ("loader.dataset.set_epoch(epoch)", ("dataset",), False),
    ],
)
def test_calls_of_set_epoch_are_followed_from_the_loader(read, call, path, is_constant):
    (found,) = read(f"for epoch in range(3):\n    {call}").epoch_calls
    assert (found.path, found.is_constant, found.for_evaluation) == (path, is_constant, False)


def test_a_set_epoch_that_hands_on_is_no_call_and_evaluation_is_told_apart(read):
    code = """
    class Own:
        def set_epoch(self, epoch):
            self.sampler.set_epoch(epoch)
    val_loader.sampler.set_epoch(epoch)
    """
    (found,) = read(code).epoch_calls
    assert found.for_evaluation


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("for epoch in range(3): pass", True),
        ("for _ in range(args.num_epochs): pass", True),
        ("while epoch < 3: pass", True),
        ("for i in range(3): pass", False),
    ],
)
def test_loops_over_epochs_are_known_by_their_words(read, code, found):
    assert (read(code).epoch_loop_at is not None) == found


def test_the_script_that_imports_the_target_is_read_and_others_are_not(read):
    source = read(
        "x = 1",
        train="import data\nfor epoch in range(3):\n    loss.backward()",
        other="import torch.distributed as dist\ndist.init_process_group('gloo')",
    )
    assert source.epoch_loop_at == "train.py:2"
    assert source.trains_at == "train.py:3"
    assert source.parallel_at is None
    assert not source.speaks_of_ranks


@pytest.mark.parametrize(
    ("code", "place", "knows"),
    [
        ("torch.manual_seed(3)", "data.py:1", False),
        ("torch.manual_seed(seed + rank)", None, True),
        ("seed = args.seed + dist.get_rank()\ntorch.manual_seed(seed)", None, True),
        ("def fix(seed):\n    torch.manual_seed(seed)\nset_seed(4)", "data.py:3", False),
        ("torch.manual_seed(3)\ns = DistributedSampler(d, seed=1, rank=rank)", "data.py:1", False),
        ("generator = torch.Generator()\ngenerator.manual_seed(3)", None, False),
        ("random.seed(3)", None, False),
    ],
)
def test_seeds_with_and_without_the_rank(read, code, place, knows):
    source = read(code)
    assert (source.seeded_at, source.seeds_know_rank) == (place, knows)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import lightning as L", "lightning"),
        ("from accelerate import Accelerator", "accelerate"),
        ("trainer = Trainer(model, train_dataset=data)", "a Trainer"),
        ("class Trainer: pass\nTrainer(model)", None),
        ("import torch", None),
    ],
)
def test_libraries_that_take_care_of_ranks_and_epochs(read, code, name):
    assert read(code).framework == name


def test_a_purpose_is_a_word_of_the_code_and_not_of_its_texts(read):
    assert read("def overfit_one_batch(): pass").purpose == "overfit"
    assert read("# overfit\nx = 'debug'").purpose is None


def test_transforms_that_are_set_through_subsets(read):
    code = """
    train.dataset.transform = a
    val.dataset.transform = b
    data.transform = c
    """
    assert read(code).shared_slots == ("data.py:2 train.dataset.transform", "data.py:3 val.dataset.transform")
    assert read(code).switches_at is None
    assert read("for epoch in range(3):\n    full.transform = a").switches_at == "data.py:2"


def test_results_that_are_cut_to_the_length_count_repeats_once(read):
    assert read("scores = scores[: len(dataset)]").counts_once_at == "data.py:1"
    assert read("accelerator.gather_for_metrics(x)").counts_once_at == "data.py:1"
    assert read("x = x[:3]").counts_once_at is None
