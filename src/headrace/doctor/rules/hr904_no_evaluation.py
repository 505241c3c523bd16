"""HR904 no-evaluation: epochs of training without a look at samples that are not trained on."""

from __future__ import annotations

from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces
from headrace.doctor.evidence.training import ModelTraces
from headrace.doctor.made_up.training import loader_trace, loaders, model, models
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count
from headrace.doctor.wording.training import at

__all__ = ["NoEvaluation"]


class NoEvaluation(Rule):
    """HR904."""

    code = "HR904"
    name = "no-evaluation"
    summary = "A finished training run of several epochs that never evaluated the model."
    rationale = """
        The training loss falls also while the model learns its samples by heart. Without a measure on others nobody
        knows when to stop, and which of two runs was better. Worst is a loader for evaluation that is made and then
        never read: everybody believes that it is.

        It is no fault if the model is evaluated without a loader, in another script, or at the end of a run that was
        stopped before it came there. Where no loader for evaluation was made at all, this is a remark only, and so it is
        where the unread one comes from another file than the loop: a function that makes the loaders for a script that
        trains and for one that evaluates makes both each time.
        """
    experiment = """
        The script runs as it is, to its end. Seen are the loaders that it makes and reads, and whether its models are
        called without recording gradients.
        """
    needs = (LoaderTraces, ModelTraces)
    fix = Fix(
        text="Evaluate after each epoch on samples that are not trained on.",
        safety="the same training; takes the time of the evaluation",
        snippet="for epoch in range(epochs):\n    train_one_epoch(model, train_loader)\n"
        "    print(epoch, evaluate(model, val_loader))",
    )
    references = ("pytorch-cifar#145", "deep-learning-v2-pytorch#3")

    def judge(self, seen: LoaderTraces, models: ModelTraces) -> list[Finding]:
        """One finding at most."""
        trained = [one for one in seen.loaders if one.role == "train"]
        num_epochs = max((one.num_passes for one in trained), default=0)
        if seen.outcome != "finished" or num_epochs < 2:
            return []
        if any(one.role in {"evaluation", "unknown"} for one in seen.loaders):
            return []
        if any(one.num_evaluations for one in models.models):
            return []
        unused = [one for one in seen.loaders if one.role == "unused" and _is_other_data(one, trained)]
        unused.sort(key=lambda one: _is_from_elsewhere(one, trained))
        epochs = f"the run trained {count(num_epochs, 'epoch')}"
        if unused:
            is_shared = _is_from_elsewhere(unused[0], trained)
            return [
                Finding(
                    message=f"{epochs} without evaluation: the loader made{at(unused[0].where)} was never read"
                    f"{', at least in this script' if is_shared else ''}",
                    severity="info" if is_shared else "warning",
                    confidence=0.6 if is_shared else 0.8,
                    stage="evaluation",
                    where=unused[0].where,
                    evidence={"num_epochs": num_epochs},
                )
            ]
        return [
            Finding(
                message=f"{epochs} and measured nothing on other samples",
                severity="info",
                confidence=0.6,
                stage="evaluation",
                where=trained[0].where,
                evidence={"num_epochs": num_epochs},
            )
        ]

    sick = (
        Example(
            title="A validation loader that nobody reads",
            evidence=(
                loaders(loader_trace(), loader_trace(1, "unused", steps=(), shuffles=False, num_drawn=0, root="other")),
                models(model(num_evaluations=0)),
            ),
            message="the run trained 2 epochs without evaluation: the loader made at train.py:13 was never read",
        ),
        Example(
            title="The same, from a file of functions that other scripts may call too: a remark",
            evidence=(
                loaders(
                    loader_trace(where="data.py:12"),
                    loader_trace(1, "unused", steps=(), shuffles=False, num_drawn=0, root="other", where="data.py:13"),
                ),
                models(model(num_evaluations=0)),
            ),
            message="the run trained 2 epochs without evaluation: the loader made at data.py:13 was never read, at least in "
            "this script",
        ),
        Example(
            title="No loader but the training one: a remark",
            evidence=(loaders(loader_trace()), models(model(num_evaluations=0))),
            message="the run trained 2 epochs and measured nothing on other samples",
        ),
    )
    healthy = (
        Example(
            title="A second loader is read",
            evidence=(loaders(loader_trace(), loader_trace(1, "evaluation", steps=(0, 0))), models()),
        ),
        Example(title="Evaluated without a loader", evidence=(loaders(loader_trace()), models())),
        Example(
            title="Stopped before its end, where it may evaluate",
            evidence=(loaders(loader_trace(), outcome="interrupted"), models(model(num_evaluations=0))),
        ),
    )


def _is_from_elsewhere(one: LoaderTrace, trained: list[LoaderTrace]) -> bool:
    """True if it was made in another file than those in which loaders are trained on."""
    loops = {place.rpartition(":")[0] for other in trained for place, _ in other.iter_places}
    return one.where is not None and bool(loops) and one.where.rpartition(":")[0] not in loops


def _is_other_data(one: LoaderTrace, trained: list[LoaderTrace]) -> bool:
    """False for a second loader over all that is trained on: an old or a new version of the training loader."""
    return not any(
        other.root is not None and other.root == one.root and other.num_samples == one.num_samples for other in trained
    )
