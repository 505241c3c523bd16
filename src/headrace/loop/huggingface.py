"""For Hugging Face's Trainer: a loader that goes on where it was, inside Trainer's own checkpoints.

    from headrace.loop.huggingface import ExactTrainer

    trainer = ExactTrainer(model=model, args=TrainingArguments("runs/a"), train_loader=hr.DataLoader(...))
    trainer.train(resume_from_checkpoint=True)

Trainer saves model, optimizer, scheduler, scaler and each rank's random state; of the loader it keeps nothing. To go on
in the middle of an epoch it makes a loader of torch's from parts of the one it has: data set, batch sampler, collate.
With that the epoch, the random draws of stages, the runner and the contract of headrace's are lost; with
`ignore_data_skip` it begins the epoch anew. No callback can prevent either, so this is a subclass; it leaves Trainer's
loop as it is, and gives it a loader whose parts, put together in that way, are the rest of the epoch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterableDataset

from headrace.engine.loader import DataLoader
from headrace.engine.view import LoaderView
from headrace.errors import CheckpointError, ConfigurationError, MissingExtra, StateMismatch
from headrace.loop.checkpoint.position.own import OwnPosition

try:
    from transformers import Trainer, TrainerCallback
    from transformers.trainer_callback import ExportableState
except ImportError as error:
    raise MissingExtra(
        "headrace.loop.huggingface needs transformers", do="pip install 'transformers[torch]'"
    ) from error

__all__ = ["ExactTrainer"]


class ExactTrainer(Trainer):  # type: ignore[misc, unused-ignore]
    """Hugging Face's Trainer, which trains from a headrace loader and goes on with it to the last bit.

    A resumed run is the run that was never interrupted, if its steps repeat: same batches, same dropout, same
    parameters. It seeks, and does not read again what was used. The place travels in `trainer_state.json`, as plain
    values.

    For other trainers, name it first: `class ExactSFTTrainer(ExactTrainer, SFTTrainer): pass`.

    Args:
        *args: As Trainer's.
        train_loader: `headrace.DataLoader`, or what its `.to(...)` makes of it. Batches are what the model's `forward`
            takes; Trainer's data arguments (batch size, workers, columns to remove) do not touch it. With several ranks
            each makes it with its own `rank` and their `world_size`.
        **kwargs: As Trainer's; `train_dataset` is not needed.

    Raises:
        ConfigurationError: it is no such loader; it has `tail="carry"`, whose epochs differ in length; or its ranks are
            not Trainer's, and they would train on the same samples.

    Not exact: what Trainer itself does not save (generators of your own, buffers left out of the `state_dict`, random
    state of further devices under DataParallel); what drew random numbers at the end of an epoch, as an evaluation
    does, after `save_steps` had saved in its last step; the first loss that is logged, an average of the steps since
    the resume. Whether steps repeat is a matter of the model and the device.
    """

    def __init__(self, *args: Any, train_loader: Any, **kwargs: Any) -> None:
        if not isinstance(train_loader, DataLoader | LoaderView):
            raise ConfigurationError(
                f"train_loader is a {type(train_loader).__name__}, whose place ExactTrainer cannot keep",
                do="train_loader=headrace.DataLoader(...)    or Trainer(train_dataset=...) for torch's own",
            )
        if train_loader._arguments.resolved_tail == "carry":
            raise ConfigurationError(
                'a loader with tail="carry" has one batch more in some epochs, and Trainer takes as many of each',
                do='tail="drop" or tail="partial"',
            )
        super().__init__(*args, **kwargs)
        here, there = (self.args.process_index, self.args.world_size), (train_loader.rank, train_loader.world_size)
        if here != there:
            raise ConfigurationError(
                f"this process is rank {here[0]} of {here[1]}, its train_loader is of rank {there[0]} of {there[1]}",
                why="ranks would train on the same samples, or leave some out",
                do="headrace.DataLoader(..., rank=args.process_index, world_size=args.world_size)",
            )
        self.train_loader = train_loader
        """The loader as it was given."""
        self._train_loader = _TrainerLoader(train_loader)
        self.add_callback(LoaderPlace())

    def get_train_dataloader(self) -> Any:
        """Returns the loader that was given, in a form that Trainer's way of skipping batches leaves whole."""
        return self._train_loader


class LoaderPlace(TrainerCallback, ExportableState):  # type: ignore[misc, unused-ignore]
    """Puts the loader's place into Trainer's state when it saves, and takes it from there when it goes on.

    Made without arguments, because `restore_callback_states_from_checkpoint` makes another one; the loader comes with
    the event.
    """

    def __init__(self) -> None:
        self.place: dict[str, Any] | None = None
        """As it was read; kept only because Trainer sets the attributes that `state` names."""
        self._loader: _TrainerLoader | None = None

    def state(self) -> dict[str, Any]:
        """Returns the place as JSON; Trainer writes it into `trainer_state.json`."""
        return {"args": {}, "attributes": {"place": None if self._loader is None else self._loader.place()}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - Trainer's
        """Brings the loader to the start, or to the place that was saved.

        Raises:
            ConfigurationError: what Trainer iterates is not the loader; it is to begin epochs anew.
            CheckpointError: the checkpoint holds no place.
            StateMismatch: it is the place of another loader, or not the one that Trainer goes on from.
        """
        loader = kwargs["train_dataloader"]
        if not isinstance(loader, _TrainerLoader):
            raise ConfigurationError(
                f"Trainer iterates a {type(loader).__name__} and not train_loader, whose place therefore is not known",
                why="get_train_dataloader is overridden, or Trainer wraps what it returns on this kind of device",
                do="leave get_train_dataloader as it is",
            )
        if args.ignore_data_skip:
            raise ConfigurationError(
                "ignore_data_skip=True makes Trainer begin an interrupted epoch anew",
                do="leave it out: with this loader nothing is read again",
            )
        self._loader = loader
        if state.global_step == 0:
            loader.begin_anew()
            return
        place = state.stateful_callbacks.get(type(self).__name__, {}).get("attributes", {}).get("place")
        if place is None:
            raise CheckpointError(
                f"the checkpoint of step {state.global_step} holds no place of the loader",
                why="it was saved by a Trainer without ExactTrainer",
                do="go on from it as it was saved, or start anew",
            )
        loader.load(place, self._trainers_place(args, state, loader))

    @staticmethod
    def _trainers_place(args: Any, state: Any, loader: _TrainerLoader) -> tuple[int, int]:
        """Epoch and batches of it that Trainer will go on from: it reckons them from its steps alone."""
        accumulate, num_batches = args.gradient_accumulation_steps, loader.num_batches
        steps_per_epoch = state.max_steps if num_batches is None else max(-(-num_batches // accumulate), 1)
        epoch, steps = divmod(state.global_step, steps_per_epoch)
        return epoch, steps * accumulate


class _TrainerLoader:
    """A headrace loader with the parts that Trainer and Accelerate's `skip_first_batches` ask of a torch one.

    To skip N batches they make a torch loader of `dataset` and these settings, and throw its first N batches away. The
    data set here is the epoch itself: as many empty places as were handed over, then the batches still to come.
    """

    # No batching, no workers: the loader inside has done all that.
    batch_size = prefetch_factor = None
    num_workers = 0
    drop_last = pin_memory = False

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.dataset = _Epoch(self)
        self._position = OwnPosition(loader)
        self.num_used = 0
        """Batches that were handed over of the epoch that was loaded."""
        self._next_epoch: int | None = None
        """What the next `iter` begins or goes on in; None: nothing is begun."""

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        batches = self._position.begin()
        self._next_epoch = self.loader.stats().epoch + 1
        return batches

    @staticmethod
    def collate_fn(batch: Any) -> Any:
        """Leaves batches as they are."""
        return batch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next `iter` that epoch. Trainer calls this before each; a place in it that was loaded stays."""
        if epoch != self._next_epoch:
            self.loader.set_epoch(epoch)
            self._next_epoch = epoch

    @property
    def num_batches(self) -> int | None:
        """Batches of an epoch; None: a stream that does not say."""
        try:
            return len(self)
        except TypeError:
            return None

    def begin_anew(self) -> None:
        """Forgets where it is."""
        self._position = OwnPosition(self.loader)
        self._next_epoch = None

    def place(self) -> dict[str, Any]:
        """Returns the place behind the batch that was handed over last."""
        place = self._position.state()
        if place["batches"] == self.num_batches:
            # Trainer takes as many batches as there are and does not ask for one more, so it never sees the end.
            place |= {"loader": self.loader.next_start.state_dict(), "is_over": True}
        return place

    def load(self, place: dict[str, Any], trainers_place: tuple[int, int]) -> None:
        """Makes the next `iter` go on from a place, which must be the one that Trainer goes on from."""
        epoch, batches = trainers_place
        said = (place["pass"] + 1, 0) if place["is_over"] else (place["pass"], place["batches"])
        if said != (epoch, batches):
            raise StateMismatch(
                f"Trainer goes on behind batch {batches} of epoch {epoch}; the loader was saved behind batch "
                f"{place['batches']} of epoch {place['pass']}",
                why="Trainer reckons its place from its steps: batch size or accumulation differ from those at saving, "
                "an epoch was left early, or it is a stream without a length in its second pass",
                do="the same batch_size and gradient_accumulation_steps as in the run that was saved",
            )
        self._position = OwnPosition(self.loader)
        self._position.load(place)
        self.num_used, self._next_epoch = batches, epoch


class _Epoch(IterableDataset[Any]):
    """One epoch as a data set of batches, for a torch loader that skips those that were used."""

    def __init__(self, loader: _TrainerLoader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain(itertools.repeat(None, self._loader.num_used), self._loader)

    def __len__(self) -> int:
        """Number of samples, which Trainer shows."""
        return len(self._loader.loader.dataset)
