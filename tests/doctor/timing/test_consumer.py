"""Who takes the batches: what counts as a training step, and what is said of what does not."""

import functools
import os
import pickle
import textwrap
import time

import numpy as np
import pytest
import torch

from headrace.doctor.subject.target import load_target
from headrace.doctor.timing.consumer import Emulated, GivenStep, TrainStep, held, touch
from headrace.doctor.timing.step_check import CheckStep, raise_refusal
from headrace.errors import TargetError


class Trainer:
    def __init__(self):
        self.seen = []

    def step(self, batch):
        self.seen.append(batch)
        return "trained"

    def make(self):
        return self.step

    def two(self, batch, target):
        pass

    @classmethod
    def of_class(cls, batch):
        return "trained"


class Model(torch.nn.Module):
    def forward(self, batch):
        return "trained"


class Made:
    """A class whose objects take batches is a maker."""

    def __call__(self, batch):
        return "trained"


def plain(batch):
    return "trained"


def with_options(batch, scale=1.0, *, log=False):
    return "trained"


def by_name(batch, *, model):
    pass


@pytest.mark.parametrize(
    "given",
    [
        plain,
        with_options,
        lambda batch: "trained",
        lambda *batch: "trained",
        lambda: plain,
        lambda: Model(),
        lambda lr=0.1: plain,
        Trainer().step,
        Trainer().make,
        Trainer.of_class,
        Model(),
        Made,
        Made(),
        functools.partial(with_options, scale=2.0),
        functools.partial(lambda model, batch: "trained", "a model"),
        functools.partial(lambda model: plain, "a model"),
        torch.compile(plain, backend="eager"),
    ],
)
def test_what_takes_a_batch_is_a_step(given):
    with held(given) as consumer:
        assert not consumer.is_emulated
        step = consumer.start()
        assert step("batch") == step("batch") == "trained"


def test_builtins_do_not_say_what_they_take():
    with held(len) as consumer:
        assert consumer.start()([1, 2]) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "int"),
        (Trainer().two, "takes 2 arguments"),
        (lambda: None, "returned None"),
        (lambda: 7, "returned an int"),
        (lambda: lambda: None, "takes no argument"),
        (lambda: Trainer().two, "takes 2 arguments"),
        (by_name, "needs model by name"),
    ],
)
def test_what_does_not_is_told(given, said):
    with held(given) as consumer, pytest.raises(TargetError, match=said) as caught:
        consumer.start()
    assert "def train_step(batch)" in str(caught.value)


@pytest.mark.parametrize("given", [lambda: None, lambda: Trainer().two, plain, Model(), len])
def test_a_check_calls_nothing(given):
    with held(given) as consumer:
        consumer.check()
        assert list(CheckStep(consumer).run(None, None)) == []


@pytest.mark.parametrize(
    ("given", "said"), [(3, "an int"), (Trainer().two, "takes 2"), (by_name, "needs model by name")]
)
def test_a_check_refuses_what_can_be_seen_without_calling(given, said):
    with held(given) as consumer, pytest.raises(TargetError, match=said):
        consumer.check()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("{}:other", "there is no training step {}:other: {} has no other"),
        ("{}:wrong", "{}:wrong is an int"),
        ("{}", "there is no training step {}: '{}' names a file"),
        ("{}/no.py:step", "there is no training step {}/no.py:step: there is no"),
    ],
)
def test_what_is_found_wrong_in_a_child_is_raised_in_the_parent(train_file, spec, said):
    records = pickle.loads(pickle.dumps(list(CheckStep(TrainStep(spec.format(train_file))).run(None, None))))
    with pytest.raises(TargetError) as caught:
        raise_refusal(records)
    assert said.replace("{}", str(train_file)) in str(caught.value)
    assert "def train_step(batch)" in str(caught.value)


def test_a_file_that_fails_is_shown_with_its_traceback(tmp_path):
    (tmp_path / "train_failing.py").write_text("x = 1\ny = x.missing\n")
    with pytest.raises(TargetError) as caught:
        raise_refusal(CheckStep(TrainStep(f"{tmp_path}/train_failing.py:step")).run(None, None))
    assert "train_failing.py" in str(caught.value)
    assert "y = x.missing" in str(caught.value.__cause__)


def test_names_are_what_people_call_them():
    def local(batch):
        pass

    with held(local) as one, held(Model()) as two, held(functools.partial(by_name, model=1)) as three:
        assert [one.name, two.name, three.name] == ["local", "Model", "by_name"]
    assert TrainStep("train.py:step").name == "train.py:step"
    assert Emulated(step_s=0.02).name == "20 ms a step, busy (emulated)"
    assert Emulated(step_s=0.5e-3, is_busy=False).name == "0.5 ms a step, asleep (emulated)"


def test_a_function_is_held_as_long_as_it_is_needed():
    with held(plain) as outer:
        with held(plain) as inner:
            assert inner.start() is plain
        assert outer.start() is plain
    with pytest.raises(TargetError, match="plain is a function of another process"):
        outer.start()
    with pytest.raises(TargetError):
        GivenStep(10**9, "other").start()


def test_a_fork_has_it_too():
    read, write = os.pipe()
    with held(lambda batch: batch + 1) as consumer:
        pid = os.fork()
        if not pid:
            os.write(write, str(consumer.start()(41)).encode())
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 10) == b"42"


@pytest.fixture
def train_file(tmp_path):
    path = tmp_path / "train_here.py"
    path.write_text(
        textwrap.dedent("""
        from torch.utils.data import DataLoader
        class Rows:
            def __len__(self): return 4
            def __getitem__(self, row): return row
        times = globals().get("times", 0) + 1
        loads = []
        def make_loader(): return DataLoader(Rows(), batch_size=2)
        def train_step(batch): return "trained"
        def make_step(): loads.append(1); return train_step
        wrong = 7
    """)
    )
    return path


def test_a_step_of_a_file(train_file):
    assert TrainStep(f"{train_file}:train_step").start()(0) == "trained"
    assert TrainStep(f"{train_file}:make_step").start()(0) == "trained"
    with pytest.raises(TargetError, match="wrong is an int"):
        TrainStep(f"{train_file}:wrong").start()
    with pytest.raises(TargetError, match="has no other"):
        TrainStep(f"{train_file}:other").start()


def test_the_file_of_the_loader_is_not_executed_twice(train_file):
    """Its classes would be others, and the loader's data set could not be sent to a worker any more."""
    loader = load_target(f"{train_file}:make_loader")
    TrainStep(f"{train_file}:train_step").start()
    assert len(pickle.loads(pickle.dumps(loader.dataset))) == 4


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(3, 5),
        torch.zeros(3, 5, dtype=torch.bfloat16),
        torch.zeros(3, 5).t(),
        torch.zeros(0),
        torch.tensor(3),
        torch.zeros(4, dtype=torch.bool),
        torch.zeros(4, dtype=torch.complex64),
        torch.zeros(2, 2).to_sparse(),
        torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged),
        torch.zeros(2, requires_grad=True),
        torch.empty(2, device="meta"),
        np.zeros((3, 4)),
        np.array(["a", "b"]),
        np.array([object], dtype=object),
        np.zeros(3, dtype=[("a", "i4")]),
        None,
        "text",
        [],
        3,
    ],
    ids=str,
)
def test_anything_can_be_touched(value):
    touch({"a": value, "b": [value, (value,)]})


@pytest.mark.parametrize("is_busy", [True, False])
def test_an_emulated_step_takes_its_time(is_busy):
    step = Emulated(step_s=0.02, is_busy=is_busy).start()
    began = time.perf_counter(), time.process_time()
    step(torch.zeros(3))
    assert time.perf_counter() - began[0] >= 0.02
    if not is_busy:
        assert time.process_time() - began[1] < 0.015
