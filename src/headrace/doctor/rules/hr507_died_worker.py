"""HR507 died-worker: a worker process ends, and says no more than its number."""

from __future__ import annotations

from headrace.doctor.evidence.workers import WorkerEnd, WorkerEnds
from headrace.doctor.made_up.workers import end, fared
from headrace.doctor.questions.workers import asleep, setting
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, listing

_DOING = {
    "start": "while it started",
    "worker_init_fn": "in worker_init_fn",
    "collate": "while it joined samples",
    "waiting": "with nothing in hand",
}
_WHY = {
    "SIGKILL": "; SIGKILL is how the system ends a process when memory runs out",
    "SIGBUS": "; SIGBUS is what a full /dev/shm gives, or a file that became shorter while it was mapped",
}


class DiedWorker(Rule):
    """HR507."""

    code = "HR507"
    name = "died-worker"
    summary = "Worker processes that end: by a crash in native code, by exit(), or killed for want of memory."
    rationale = """
        Training stops with "DataLoader worker (pid 4711) is killed by signal" or "exited unexpectedly". Neither says
        which sample it was, nor where the code stood: the worker took that with it. A crash in a decoder points to one
        file; SIGKILL points to memory; an exit status to `sys.exit` or `os._exit` in the data set's own code.

        It is no fault of the workers if a sample ends one process, too: where that is known beforehand, the sample is
        reported for itself and not handed to workers. A worker that ends when its part of a stream is over is well.
        """
    experiment = """
        Workers write down what they take in hand before they begin, so that the last entry outlives them. What was in
        hand is tried again in fresh workers, and shrunk to the fewest samples that still end one.
        """
    needs = (WorkerEnds,)
    fix = Fix(
        text="Prepare the named samples in one process (num_workers=0), under a debugger if it is a crash; for SIGKILL use fewer "
        "workers, a smaller prefetch_factor or smaller samples.",
        safety="none",
        snippet="sample = loader.dataset[{index}]",
    )
    references = ("pytorch#8976", "SoftGroup#18", "mmrotate#501", "kraken#266", "MeanFlow#28")

    def judge(self, seen: WorkerEnds) -> list[Finding]:
        """One finding for each worker that ended."""
        return [self._find(one, seen) for one in seen.ends if one.kind == "died"]

    @staticmethod
    def _find(one: WorkerEnd, seen: WorkerEnds) -> Finding:
        ids = one.fewest_ids or one.sample_ids
        if one.is_any_sample:
            doing = "whichever sample it prepares"
        elif one.stage in {"sample", "collate"} and ids:
            work = "preparing" if one.stage == "sample" else "joining"
            doing = f"while {work} {'sample' if len(ids) == 1 else count(len(ids), 'sample') + ':'} {listing(ids)}"
        else:
            doing = _DOING.get(one.stage, "while it prepared a sample")
        alone = {"fine": "; one process does not end so", "same": "; one process ends so, too"}
        return Finding(
            message=f"with {setting(seen)}, one ends {doing} ({one.cause}){alone.get(one.in_one_process, '')}"
            f"{_WHY.get(one.cause, '')}",
            severity="error" if one.in_one_process == "same" else asleep(seen.num_own_workers, "error"),
            basis="experiment",
            stage=one.stage,
            sample_ids=ids,
            where=one.at,
            confidence=1.0 if one.fewest_ids else 0.8,
            evidence={
                "cause": one.cause,
                "in_hand": [str(sample_id) for sample_id in one.sample_ids],
                "seen_again": one.fewest_ids is not None,
                "tries": one.num_attempts,
                "in_one_process": one.in_one_process,
                "stack": one.stack,
            },
        )

    sick = (
        Example(
            title="A decoder that crashes on one file, in workers",
            evidence=(fared(ends=(end("died"),)),),
            message="with 2 workers, one ends while preparing sample 3 (SIGSEGV); one process does not end so",
            sample_ids=(3,),
        ),
        Example(
            title="Killed for want of memory",
            evidence=(
                fared(
                    ends=(end("died", cause="SIGKILL", fewest_ids=None, sample_ids=(7, 8), in_one_process="unknown"),)
                ),
            ),
            message="with 2 workers, one ends while preparing 2 samples: 7, 8 (SIGKILL); SIGKILL is how the system ends a "
            "process when memory runs out",
            sample_ids=(7, 8),
        ),
        Example(
            title="sys.exit in worker_init_fn",
            evidence=(
                fared(
                    ends=(end("died", cause="exit status 1", stage="worker_init_fn", sample_ids=(), fewest_ids=None),)
                ),
            ),
            message="with 2 workers, one ends in worker_init_fn (exit status 1); one process does not end so",
        ),
    )
    healthy = (
        Example(title="All workers live", evidence=(fared(),)),
        Example(title="A worker that hangs", evidence=(fared(ends=(end("stuck"),)),)),
    )
