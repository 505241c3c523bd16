"""HR506 stale-worker-copy: what is changed in the data set between epochs never reaches workers that stay."""

from __future__ import annotations

from headrace.doctor.evidence.workers import StaleAttribute, StaleCopies
from headrace.doctor.made_up.workers import changed, stale
from headrace.doctor.rule import Example, Finding, Fix, Rule


class StaleWorkerCopy(Rule):
    """HR506."""

    code = "HR506"
    name = "stale-worker-copy"
    summary = "Changes of the data set in the training process that persistent workers do not see."
    rationale = """
        With `persistent_workers=True` each worker keeps the copy of the data set that it got when it started. What the
        training loop changes afterwards (`dataset.set_epoch(epoch)`, `dataset.level += 1`, a new draw of pairs) changes
        another object: samples stay as they were in the first epoch, for the whole training, and nothing says so.

        It is no fault if the attribute lives in shared memory (`multiprocessing.Value`, a tensor after
        `share_memory_()`), nor without persistent workers: new workers get a new copy in each epoch. A change that may
        well be made once, before the workers start, is only worth knowing.
        """
    experiment = """
        Methods of the data set (and of what it holds) that write attributes with which samples are made are called, and
        attributes that a loop in TARGET's file sets are set, in the training process of a loader with its own
        persistent workers. Samples are compared before and after, in one process and in the workers, under equal seeds.
        """
    needs = (StaleCopies,)
    fix = Fix(
        text="Keep the value in shared memory, or leave persistent_workers out so that each epoch's workers get the data set "
        "as it is.",
        safety="samples follow the change from then on; without persistent workers they are started in each epoch",
        snippet="self.epoch = multiprocessing.Value('i', 0)  # in __init__\n"
        "self.epoch.value = epoch                    # in set_epoch",
    )
    references = ("pytorch#97326", "starVLA#470", "storage#475", "pytorch#35795")

    def judge(self, copies: StaleCopies) -> list[Finding]:
        """One finding for each change that has an effect and does not arrive."""
        return [self._find(one) for one in copies.tried if one.has_effect and one.reaches_workers is False]

    @staticmethod
    def _find(one: StaleAttribute) -> Finding:
        names = ", ".join(one.attributes)
        return Finding(
            message=f"{one.change} changes samples in one process, and never in persistent workers, which keep their first copy "
            f"of {names}",
            severity="warning" if one.is_between_epochs else "info",
            confidence=0.9 if one.is_between_epochs else 0.5,
            basis="experiment",
            stage="workers",
            sample_ids=() if one.sample_id is None else (one.sample_id,),
            where=one.at,
            evidence={"attributes": list(one.attributes), "is_between_epochs": one.is_between_epochs},
        )

    sick = (
        Example(
            title="An epoch that decides how hard samples are",
            evidence=(stale(changed("dataset.set_epoch(5)")),),
            message="dataset.set_epoch(5) changes samples in one process, and never in persistent workers, which keep their first "
            "copy of epoch",
            sample_ids=(0,),
        ),
        Example(
            title="A switch that may be set once, before training",
            evidence=(stale(changed("dataset.train()", attributes=("training",), is_between_epochs=False)),),
            message="dataset.train() changes samples in one process, and never in persistent workers, which keep their first "
            "copy of training",
            sample_ids=(0,),
        ),
    )
    healthy = (
        Example(title="Workers that do not stay, or nothing to change", evidence=(stale(),)),
        Example(
            title="A value in shared memory", evidence=(stale(changed("dataset.set_epoch(5)", reaches_workers=True)),)
        ),
        Example(
            title="An epoch that samples do not depend on",
            evidence=(stale(changed("dataset.set_epoch(5)", has_effect=False, reaches_workers=None)),),
        ),
    )
