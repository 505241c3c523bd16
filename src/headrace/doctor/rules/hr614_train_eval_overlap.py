"""HR614 train-eval-overlap: samples that are evaluated are trained on too."""

from __future__ import annotations

from headrace.doctor.evidence.splits import SharedSamples, SplitOverlap
from headrace.doctor.rule import Example, Finding, Fix, Rule, Severity
from headrace.doctor.wording.samples import verb

MOST = 0.5
"""Share of an evaluation set with equal content from which on it is the training set, and not a few double records."""
FEW = 0.02
"""Share below which equal content may be double records of the collection itself."""


class TrainEvalOverlap(Rule):
    """HR614."""

    code = "HR614"
    name = "train-eval-overlap"
    summary = "Evaluation samples that the training loader delivers too."
    rationale = """
        A score on samples that were trained on says how well the model remembers, not how well it predicts. The
        usual ways in: the training loader is made from the whole data set instead of the training part, two
        splits are drawn with different seeds, the data set is split anew in each epoch of one training, folds
        are mixed up, or the best epoch is chosen on the test set's own samples.

        Samples are the same if they are the same row of one data set object, come from the same file, or have
        equal content. It is no fault if a loader measures the training score on purpose (its name then speaks
        of training), if each split trains a model whose weights begin anew, as the folds of a cross-validation
        do, or if a few records of equal content exist in the collection itself: below two in a hundred that is
        only mentioned. A script that overfits one batch or a small set on purpose gets a warning and no error.
        """
    experiment = """
        The samplers of all loaders are walked once without reading samples, and their numbers are followed through
        subsets and concatenations to the data set underneath. Where the data sets are different objects, paths are
        compared, else digests of some hundred samples of each.
        """
    needs = (SplitOverlap,)
    fix = Fix(
        text="Split once, with a seed, and build both loaders from the parts; never build the training loader from the "
        "whole data set.",
        safety="changes which samples are trained on; scores from before were too good",
        snippet="generator = torch.Generator().manual_seed(0)\n"
        "train_set, val_set = random_split(dataset, [0.9, 0.1], generator)\n"
        "train_loader = DataLoader(train_set, batch_size=64, shuffle=True)\n"
        "val_loader = DataLoader(val_set, batch_size=64)",
    )
    references = (
        "pytorch-cifar#145",
        "LSTM-FCN#7",
        "shapeformer#2",
        "aestetik#12",
        "TOSICA#11",
        "multimil#75",
    )

    def judge(self, overlap: SplitOverlap) -> list[Finding]:
        """One finding per evaluation loader that shares samples."""
        return [self._finding(pair, overlap.purpose) for pair in overlap.pairs if pair.num_shared]

    def _finding(self, pair: SharedSamples, purpose: str | None) -> Finding:
        share = pair.num_shared / pair.num_evaluation
        of = f"all {pair.num_evaluation:,}" if share == 1 else f"{pair.num_shared:,} of {pair.num_evaluation:,}"
        sample = "the only sample" if pair.num_evaluation == 1 else f"{of} samples"
        how = {
            "row": "the same rows of the same data set",
            "path": "the same files",
            "content": "equal content",
        }[pair.by]
        shown = ", ".join(map(str, pair.first_ids[:3])) + (", ..." if pair.num_shared > len(pair.first_ids[:3]) else "")
        was = verb(pair.num_shared, "was", "were")
        what = (
            f"of an epoch of {pair.evaluation} {was} trained on in an earlier one, by {pair.train}: each epoch splits the "
            "data set anew"
            if pair.is_split_anew
            else f"of {pair.evaluation} {verb(pair.num_shared, 'is', 'are')} in {pair.train} too: {how}"
        )
        return Finding(
            message=f"{sample} {what}{f' ({shown})' if pair.first_ids else ''}"
            f"{f'; the file speaks of {purpose!r}, so this may be meant' if purpose else ''}",
            severity=_severity(pair, share, purpose),
            confidence={"row": 1.0, "path": 0.95, "content": 0.9 if share >= MOST else 0.7}[pair.by],
            basis="experiment",
            stage="sampler",
            sample_ids=pair.first_ids,
            where=pair.evaluation,
            evidence={
                "train": pair.train,
                "evaluation": pair.evaluation,
                "num_shared": pair.num_shared,
                "num_train": pair.num_train,
                "num_evaluation": pair.num_evaluation,
                "by": pair.by,
                "is_split_anew": pair.is_split_anew,
            },
        )

    sick = (
        Example(
            title="The training loader was made from the whole data set",
            evidence=(
                SplitOverlap(
                    pairs=(
                        SharedSamples(
                            train="train",
                            evaluation="val",
                            num_train=1_000,
                            num_evaluation=200,
                            num_shared=200,
                            first_ids=(3, 8, 11),
                        ),
                    )
                ),
            ),
            message="all 200 samples of val are in train too: the same rows of the same data set (3, 8, 11, ...)",
            sample_ids=(3, 8, 11),
        ),
        Example(
            title="Two lists of files that meet",
            evidence=(
                SplitOverlap(
                    pairs=(
                        SharedSamples(
                            train="train",
                            evaluation="test",
                            num_train=800,
                            num_evaluation=200,
                            num_shared=2,
                            first_ids=("cat/7.png", "dog/1.png"),
                            by="path",
                        ),
                    )
                ),
            ),
            message="2 of 200 samples of test are in train too: the same files (cat/7.png, dog/1.png)",
            sample_ids=("cat/7.png", "dog/1.png"),
        ),
        Example(
            title="random_split without a seed, once in each epoch",
            evidence=(
                SplitOverlap(
                    pairs=(
                        SharedSamples(
                            train="the loader made at train.py:30",
                            evaluation="the loader made at train.py:31",
                            num_train=800,
                            num_evaluation=200,
                            num_shared=163,
                            first_ids=(2, 3, 9),
                            is_split_anew=True,
                        ),
                    )
                ),
            ),
            message="163 of 200 samples of an epoch of the loader made at train.py:31 were trained on in an earlier one, by "
            "the loader made at train.py:30: each epoch splits the data set anew (2, 3, 9, ...)",
            sample_ids=(2, 3, 9),
        ),
        Example(
            title="One batch is overfitted, as the file says",
            evidence=(
                SplitOverlap(
                    pairs=(
                        SharedSamples(
                            train="train", evaluation="val", num_train=8, num_evaluation=8, num_shared=8, first_ids=(0,)
                        ),
                    ),
                    purpose="overfit",
                ),
            ),
            message="all 8 samples of val are in train too: the same rows of the same data set (0, ...); the file speaks "
            "of 'overfit', so this may be meant",
            sample_ids=(0,),
        ),
    )
    healthy = (
        Example(
            title="Two parts of one data set",
            evidence=(
                SplitOverlap(
                    pairs=(
                        SharedSamples(train="train", evaluation="val", num_train=800, num_evaluation=200, num_shared=0),
                    )
                ),
            ),
        ),
        Example(title="Nothing to compare", evidence=(SplitOverlap(pairs=()),)),
    )


def _severity(pair: SharedSamples, share: float, purpose: str | None) -> Severity:
    if pair.may_be_meant:
        return "info"
    if purpose is not None and share == 1:
        return "warning"
    if pair.by != "content" or share >= MOST:
        return "error"
    return "warning" if share >= FEW else "info"
