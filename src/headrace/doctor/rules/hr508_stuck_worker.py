"""HR508 stuck-worker: a worker does not go on, and the loader waits for it without end."""

from __future__ import annotations

from headrace.doctor.evidence.workers import WorkerEnd, WorkerEnds
from headrace.doctor.made_up.workers import end, fared
from headrace.doctor.questions.workers import asleep, setting
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, listing

_DOING = {
    "start": "while it starts",
    "worker_init_fn": "in worker_init_fn",
    "waiting": "with nothing in hand",
}


class StuckWorker(Rule):
    """HR508."""

    code = "HR508"
    name = "stuck-worker"
    summary = "Workers that hang where one process does not."
    rationale = """
        A process that is forked gets the locks of its parent as they are, and none of its threads. A lock that another
        thread held at that moment is never released in the worker; pools of threads that OpenCV, OpenMP, BLAS or a
        tokenizer had already started exist only in name. The worker waits for ever, the loader waits for the worker,
        and nothing is printed unless the loader has a `timeout`.

        It is no fault of the workers if a sample hangs in one process, too (HR109). Slow is not stuck: nothing at all
        went on for several seconds more than the slowest sample took.
        """
    experiment = """
        Workers write down what they take in hand. When none goes on, the stacks of the one that has something in hand
        are written, its processes are ended, and what it had in hand is tried again in fresh workers and shrunk to the
        fewest samples that still hang. Then one process tries the same samples.
        """
    needs = (WorkerEnds,)
    fix = Fix(
        text="Create locks, threads and pools in the worker when the first sample is asked for, or start workers without fork; "
        "with OpenCV call cv2.setNumThreads(0) in worker_init_fn. A timeout makes the loader say so instead of waiting.",
        safety="same data; starting without fork takes seconds for each worker",
        snippet="loader = DataLoader(dataset, ..., timeout=120,\n"
        '                    multiprocessing_context="forkserver")',
    )
    references = ("pytorch#1355", "pytorch#1838", "tokenizers#187", "pytorch#33296", "pytorch#113228")

    def judge(self, seen: WorkerEnds) -> list[Finding]:
        """One finding for each worker that did not go on."""
        return [self._find(one, seen) for one in seen.ends if one.kind == "stuck" and one.stage != "hand-over"]

    @staticmethod
    def _find(one: WorkerEnd, seen: WorkerEnds) -> Finding:
        ids = one.fewest_ids or one.sample_ids
        if one.is_any_sample:
            doing = f"with whichever sample it prepares (tried: {listing(one.sample_ids)} and another)"
        elif one.stage in {"sample", "collate"} and ids:
            work = "preparing" if one.stage == "sample" else "joining"
            doing = f"while {work} {'sample' if len(ids) == 1 else count(len(ids), 'sample') + ':'} {listing(ids)}"
        else:
            doing = _DOING.get(one.stage, "while it prepares a sample")
        alone = (
            {"fine": "; one process goes on", "same": "; one process hangs, too"}[one.in_one_process]
            if (one.in_one_process != "unknown" and ids)
            else ""
        )
        return Finding(
            message=f"with {setting(seen)}, one does not go on {doing}: nothing for {one.waited_s:.0f} s{alone}",
            severity="error" if one.in_one_process == "same" else asleep(seen.num_own_workers, "error"),
            basis="experiment",
            stage=one.stage,
            sample_ids=ids,
            where=one.at,
            confidence=1.0 if one.fewest_ids else 0.7,
            evidence={
                "waited_s": one.waited_s,
                "in_hand": [str(sample_id) for sample_id in one.sample_ids],
                "seen_again": one.fewest_ids is not None,
                "tries": one.num_attempts,
                "start_method": seen.start_method,
                "in_one_process": one.in_one_process,
                "stack": one.stack,
            },
        )

    sick = (
        Example(
            title="A lock that was held when the workers were forked",
            evidence=(fared(ends=(end("stuck", is_any_sample=True, sample_ids=(0,)),)),),
            message="with 2 workers, one does not go on with whichever sample it prepares (tried: 0 and another): nothing for "
            "5 s; one process goes on",
            sample_ids=(3,),
        ),
        Example(
            title="Two samples that hang only together",
            evidence=(fared(ends=(end("stuck", stage="collate", sample_ids=(1, 2, 3, 4), fewest_ids=(2, 4)),)),),
            message="with 2 workers, one does not go on while joining 2 samples: 2, 4: nothing for 5 s; one process goes on",
            sample_ids=(2, 4),
        ),
    )
    healthy = (
        Example(title="All workers go on", evidence=(fared(),)),
        Example(title="A worker that dies", evidence=(fared(ends=(end("died"),)),)),
        Example(
            title="An exception that cannot be sent, which is another matter",
            evidence=(fared(ends=(end("stuck", stage="hand-over", fewest_ids=None),)),),
        ),
    )
