"""HR204 shared-split-transform: training and validation share one data set object, and with it one transform."""

from __future__ import annotations

from headrace.doctor.evidence.splits import SharedDataSet, SharedDataSets
from headrace.doctor.rule import Example, Finding, Fix, Rule


def _shared(**more: object) -> SharedDataSet:
    facts: dict[str, object] = {
        "train": "train",
        "evaluation": "val",
        "dataset_kind": "ImageFolder",
        "num_read": 4,
        "num_random": 0,
    }
    return SharedDataSet(**{**facts, **more})  # type: ignore[arg-type]


class SharedSplitTransform(Rule):
    """HR204."""

    code = "HR204"
    name = "shared-split-transform"
    summary = "Training and evaluation subsets of one data set object that share its random transform."
    rationale = """
        `random_split` makes two views of one object. Its transform holds for both: augmentation makes validation noisy
        and its score too low, or the validation transform, set later through `val_set.dataset.transform`, silently
        ends the augmentation of training.

        It is no fault if the shared object prepares samples the same way each time, or if each side has a wrapper with a
        transform of its own. If the source switches the object over in a loop, it is only mentioned.
        """
    experiment = """
        The data sets under all subsets and wrappers are compared as objects. A few rows of a shared one are prepared
        twice from the same random state and once from another.
        """
    needs = (SharedDataSets,)
    fix = Fix(
        text="Make two data set objects over the same files, each with its own transform, and take the parts of the "
        "split from each.",
        safety="changes how samples of one side are prepared",
        snippet="train_all = Photos(root, transform=train_transform)\n"
        "val_all = Photos(root, transform=val_transform)\n"
        "order = torch.randperm(len(train_all)).tolist()\n"
        "train_set = Subset(train_all, order[1000:])\n"
        "val_set = Subset(val_all, order[:1000])",
    )
    references = ("gromo#58", "efficient_densenet_pytorch#51", "deep-learning-v2-pytorch#132", "pytorch-randaugment#16")

    def judge(self, seen: SharedDataSets) -> list[Finding]:
        """One finding per evaluation loader."""
        return [finding for one in seen.shared if (finding := self._finding(one)) is not None]

    @staticmethod
    def _finding(one: SharedDataSet) -> Finding | None:
        holders = {place.partition(" ")[2].partition(".")[0] for place in one.assigned}
        both = f"{one.train} and {one.evaluation} share one {one.dataset_kind}"
        where: str | None
        if one.num_random:
            message = (
                f"{both}, so {one.evaluation} is prepared at random too: {one.num_random} of {one.num_read} samples "
            )
            message += "come out differently each time"
            where, confidence = one.evaluation, 0.85
        elif len(holders) > 1 and one.changes_later is None:
            where, _, target = one.assigned[-1].partition(" ")
            message, confidence = f"{both}: setting {target} ({where}) sets it for both", 0.9
        else:
            return None
        return Finding(
            message=message,
            severity="info" if one.changes_later else "warning",
            confidence=0.6 if one.changes_later else confidence,
            basis="experiment",
            stage="transform",
            where=where,
            evidence={"num_read": one.num_read, "num_random": one.num_random, "assigned": list(one.assigned)},
        )

    sick = (
        Example(
            title="Two parts of one augmented data set",
            evidence=(SharedDataSets(shared=(_shared(num_random=4),)),),
            message="train and val share one ImageFolder, so val is prepared at random too: 4 of 4 samples come out "
            "differently each time",
        ),
        Example(
            title="A transform that was meant for one side",
            evidence=(
                SharedDataSets(
                    shared=(
                        _shared(
                            assigned=(
                                "train.py:20 train_set.dataset.transform",
                                "train.py:21 val_set.dataset.transform",
                            )
                        ),
                    )
                ),
            ),
            message="train and val share one ImageFolder: setting val_set.dataset.transform (train.py:21) sets it for both",
        ),
    )
    healthy = (
        Example(title="A shared object without randomness", evidence=(SharedDataSets(shared=(_shared(),)),)),
        Example(title="Two objects", evidence=(SharedDataSets(shared=()),)),
        Example(
            title="A transform that was set once",
            evidence=(SharedDataSets(shared=(_shared(assigned=("train.py:20 train_set.dataset.transform",)),)),),
        ),
    )
