"""HR205 cloned-generator: workers get copies of one random generator, so they draw the same numbers."""

from __future__ import annotations

from headrace.doctor.evidence.randomness import GeneratorDraws, WorkerDraws
from headrace.doctor.made_up.workers import drawn, drew
from headrace.doctor.questions.workers import asleep, in_vain, setting
from headrace.doctor.rule import Example, Finding, Fix, Rule, Severity
from headrace.doctor.wording.samples import listing

MOST = 0.5
"""Share of a stream's samples that must draw: drawing once, at its beginning, is shuffling that all workers share."""


class ClonedGenerator(Rule):
    """HR205."""

    code = "HR205"
    name = "cloned-generator"
    summary = "Random generators that the data set or collate function holds, and that workers receive as copies."
    rationale = """
        A DataLoader copies the data set into each worker, and into new workers in each epoch. A generator that the
        data set, a transform or the collate function keeps (`self.rng = np.random.default_rng(0)`) is copied with it,
        in the state that it had: every worker draws the same numbers as the others, and the workers of the second
        epoch draw those of the first again. Augmentation is much poorer than it looks, and nothing says so.

        The interpreter's own generators (`random`, `numpy.random`, torch) are not concerned: current torch seeds them
        anew in each worker and epoch. It is no fault to keep a generator that `worker_init_fn` seeds for each worker,
        one that is made anew for each sample, or one that only the sampler draws from in the training process. For
        loaders that evaluate, repeated draws are often meant, and this is only worth knowing.
        """
    experiment = """
        Two epochs with the loader's own number of workers (two if it uses none) over the same samples, the second in
        the opposite order. In each worker, data set and collate function are searched for generators, and their
        states after each of the first samples are compared by place. A stream comes in its own order both times.
        """
    needs = (WorkerDraws,)
    fix = Fix(
        text="Seed the generator from the worker's own seed, which torch chooses anew in each epoch; or make one for each "
        "sample.",
        safety="other draws than before; the same samples",
        snippet="def seed_worker(worker_id):\n"
        "    info = torch.utils.data.get_worker_info()\n"
        "    info.dataset.rng = np.random.default_rng(info.seed)\n"
        "\n"
        "loader = DataLoader(dataset, ..., worker_init_fn=seed_worker)",
    )
    references = ("MONAI#1068", "AlbumentationsX#272", "Lightning#20412")

    def judge(self, draws: WorkerDraws) -> list[Finding]:
        """At most one finding, for all generators that draw in the same way."""
        cloned = [one for one in draws.generators if one.is_held and self._is_cloned(one, draws)]
        if not cloned:
            return []
        over_workers = any(one.same_over_workers for one in cloned)
        over_epochs = any(one.same_over_epochs for one in cloned)
        how = in_vain(same_over_workers=over_workers, same_over_epochs=over_epochs)
        paths = [one.path for one in cloned]
        severity: Severity = "info" if draws.role == "evaluation" else "warning"
        if draws.is_iterable and not over_epochs:
            severity = "info"  # parts of a stream that are shuffled alike are still different parts
        return [
            Finding(
                message=f"{listing(paths)} ({cloned[0].kind}) is copied into each worker: with {setting(draws)}, {how}",
                severity=asleep(draws.num_own_workers, severity),
                confidence=0.95,
                basis="experiment",
                stage="workers",
                where=paths[0],
                evidence={
                    "generators": [
                        {
                            "path": one.path,
                            "kind": one.kind,
                            "drawn_in": one.num_moved,
                            "followed": one.num_followed,
                            "same_over_workers": one.same_over_workers,
                            "same_over_epochs": one.same_over_epochs,
                        }
                        for one in cloned
                    ],
                    "num_workers": draws.num_workers,
                },
            )
        ]

    @staticmethod
    def _is_cloned(one: GeneratorDraws, draws: WorkerDraws) -> bool:
        if draws.is_iterable and one.num_moved < MOST * one.num_followed:
            return False
        return bool(one.same_over_workers) or bool(one.same_over_epochs and not draws.is_persistent)

    sick = (
        Example(
            title="A generator kept by a transform",
            evidence=(
                drew(
                    drawn("numpy.random", num_moved=0),
                    drawn("dataset.transform.transforms[1].rng", same_over_workers=True, same_over_epochs=True),
                ),
            ),
            message="dataset.transform.transforms[1].rng (numpy.Generator) is copied into each worker: with 2 workers, all "
            "workers draw the same random numbers, and draw them again in every epoch",
        ),
        Example(
            title="One worker, new in each epoch",
            evidence=(
                drew(
                    drawn("dataset.rng", same_over_workers=None, same_over_epochs=True, kind="random.Random"),
                    num_workers=1,
                    num_own_workers=1,
                ),
            ),
            message="dataset.rng (random.Random) is copied into each worker: with 1 worker, each worker draws the same random "
            "numbers again in every epoch",
        ),
        Example(
            title="Workers that stay, with equal copies",
            evidence=(drew(drawn("dataset.rng", same_over_workers=True, same_over_epochs=None), is_persistent=True),),
            message="dataset.rng (numpy.Generator) is copied into each worker: with 2 workers, all workers draw the same random "
            "numbers",
        ),
    )
    healthy = (
        Example(title="A generator that worker_init_fn seeds for each worker", evidence=(drew(drawn("dataset.rng")),)),
        Example(
            title="A generator that workers never draw from",
            evidence=(drew(drawn("dataset.rng", num_moved=0, same_over_workers=None, same_over_epochs=None)),),
        ),
        Example(
            title="Workers of a stream that shuffle the list of files alike, each for its own part",
            evidence=(
                drew(
                    drawn("dataset.rng", num_moved=2, same_over_workers=True, same_over_epochs=None), is_iterable=True
                ),
            ),
        ),
        Example(title="The interpreter's own generators", evidence=(drew(drawn("random"), drawn("torch")),)),
    )
