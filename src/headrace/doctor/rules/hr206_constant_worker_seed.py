"""HR206 constant-worker-seed: workers are seeded in such a way that workers or epochs draw the same numbers."""

from __future__ import annotations

from headrace.doctor.evidence.randomness import GeneratorDraws, WorkerDraws
from headrace.doctor.made_up.workers import drawn, drew
from headrace.doctor.questions.workers import asleep, in_vain, setting
from headrace.doctor.rule import Example, Finding, Fix, Rule, Severity
from headrace.doctor.wording.samples import listing

MOST = 0.5
"""Share of a stream's samples that must draw, as for generators that the data set holds."""


class ConstantWorkerSeed(Rule):
    """HR206."""

    code = "HR206"
    name = "constant-worker-seed"
    summary = "Seeds in workers that ignore the epoch, or the worker."
    rationale = """
        Torch seeds `random`, `numpy.random` and itself in each worker, differently in each epoch. A `worker_init_fn`
        such as `lambda worker: np.random.seed(worker)` undoes it: with new workers in each epoch, every epoch repeats
        the augmentation of the first. A constant (`np.random.seed(0)`) makes all workers draw the same numbers, too.
        The same happens where a stream seeds in `__iter__`, or a data set when a worker first reads it.

        It is no fault to seed from `torch.initial_seed()` or `get_worker_info().seed`, which change with the epoch,
        nor if workers stay over the epochs (`persistent_workers=True`): then each draws on. Nothing is said about a
        seed that nobody draws from. For loaders that evaluate, repeated draws are often meant, and this is only worth
        knowing.
        """
    experiment = """
        Two epochs with the loader's own number of workers (two if it uses none) over the same samples, the second in
        the opposite order. The states of the interpreter's generators after each of the first samples of each worker
        are compared by place. If the data set has `set_epoch`, it is told the epoch before each.
        """
    needs = (WorkerDraws,)
    fix = Fix(
        text="Seed from torch's seed for this worker and epoch, or leave worker_init_fn out: current torch seeds all three "
        "generators by itself.",
        safety="other draws than before; still the same in every run that starts with torch.manual_seed",
        snippet="def seed_worker(worker_id):\n"
        "    seed = torch.initial_seed() % 2**32\n"
        "    np.random.seed(seed)\n"
        "    random.seed(seed)",
    )
    references = ("sparse-to-dense.pytorch#19", "Open3D-ML#254", "mmdetection#2066", "icefall#221")

    def judge(self, draws: WorkerDraws) -> list[Finding]:
        """At most one finding."""
        fixed = [one for one in draws.generators if not one.is_held and self._is_fixed(one, draws)]
        if not fixed:
            return []
        over_workers = any(one.same_over_workers for one in fixed)
        over_epochs = any(one.same_over_epochs for one in fixed)
        how = in_vain(same_over_workers=over_workers, same_over_epochs=over_epochs)
        names = listing([one.path for one in fixed])
        by = f"by worker_init_fn {draws.worker_init_fn}" if draws.worker_init_fn else "in the data set's own code"
        severity: Severity = "info" if draws.role == "evaluation" else "warning"
        return [
            Finding(
                message=f"{names}: seeded in the workers with fixed numbers, {by}: with {setting(draws)}, {how}",
                severity=asleep(draws.num_own_workers, severity),
                confidence=0.9,
                basis="experiment",
                stage="workers",
                where=draws.worker_init_fn,
                evidence={
                    "generators": [
                        {
                            "name": one.path,
                            "drawn_in": one.num_moved,
                            "followed": one.num_followed,
                            "same_over_workers": one.same_over_workers,
                            "same_over_epochs": one.same_over_epochs,
                        }
                        for one in fixed
                    ],
                    "num_workers": draws.num_workers,
                },
            )
        ]

    @staticmethod
    def _is_fixed(one: GeneratorDraws, draws: WorkerDraws) -> bool:
        if draws.is_iterable and (one.num_moved < MOST * one.num_followed or not one.same_over_epochs):
            return False
        return bool(one.same_over_workers) or bool(one.same_over_epochs and not draws.is_persistent)

    sick = (
        Example(
            title="Seeded with the worker's number",
            evidence=(
                drew(
                    drawn("random", num_moved=0, same_over_workers=None, same_over_epochs=None),
                    drawn("numpy.random", same_over_epochs=True),
                    worker_init_fn="<lambda> (train.py:30)",
                ),
            ),
            message="numpy.random: seeded in the workers with fixed numbers, by worker_init_fn <lambda> (train.py:30): with 2 "
            "workers, each worker draws the same random numbers again in every epoch",
        ),
        Example(
            title="Seeded with a constant in __iter__",
            evidence=(
                drew(drawn("random", same_over_epochs=True, same_over_workers=True), is_iterable=True, role=None),
            ),
            message="random: seeded in the workers with fixed numbers, in the data set's own code: with 2 workers, all workers "
            "draw the same random numbers, and draw them again in every epoch",
        ),
    )
    healthy = (
        Example(
            title="Seeded from torch's seed",
            evidence=(drew(drawn("numpy.random"), worker_init_fn="seed_worker (train.py:30)"),),
        ),
        Example(
            title="Seeded with a constant, and nothing draws",
            evidence=(
                drew(
                    drawn("numpy.random", num_moved=0, same_over_workers=None, same_over_epochs=None),
                    worker_init_fn="seed_worker (train.py:30)",
                ),
            ),
        ),
        Example(
            title="Workers that stay draw on",
            evidence=(drew(drawn("numpy.random", same_over_epochs=None), is_persistent=True),),
        ),
        Example(
            title="Workers of a stream that shuffle alike once, each for its own part",
            evidence=(
                drew(drawn("random", num_moved=2, same_over_workers=True, same_over_epochs=True), is_iterable=True),
            ),
        ),
    )
