"""HR501 handle-across-fork: workers share an open file or connection with the process that started them."""

from __future__ import annotations

from headrace.doctor.evidence.objects import Handle, HeldObjects
from headrace.doctor.rule import Example, Finding, Fix, Rule

ADVICE = {
    "lmdb.Environment": "an lmdb environment must never be carried across a fork",
    "sqlite3.Connection": "a SQLite connection belongs to the process that opened it",
    "sqlite3.Cursor": "a SQLite connection belongs to the process that opened it",
    "h5py.File": "HDF5 keeps caches and positions for each open file",
}
FORK = "fork"


class HandleAcrossFork(Rule):
    """HR501."""

    code = "HR501"
    name = "handle-across-fork"
    summary = "An open file, archive or connection that forked workers share with their parent and with each other."
    rationale = """
        A forked worker inherits what is open, down to the file position. Two workers that seek and read through one
        handle get each other's bytes: wrong values, "bad CRC" in a healthy archive, a malformed database image, a crash
        in the library; and it depends on timing, so that small tests pass. Nothing of it happens without workers.

        It is no fault to hold a handle that workers do not use, or one that each worker replaces by its own: when
        `worker_init_fn` opens it anew, or the data set opens it at the first read. In-memory files and memory maps
        are safe. Without workers a held handle is only a remark: it will be a fault on the day that workers are added.
        """
    experiment = """
        The objects that data set, transforms and collate function hold are walked through. If an open handle is found, a
        fork is set up as torch sets up a worker and prepares two samples; a handle whose position moved there, or that
        the preparing code names, and that is still the parent's, is shared.
        """
    needs = (HeldObjects,)
    fix = Fix(
        text="Open it in the worker: keep the path, and open at the first read.",
        safety="same data; each worker has a handle of its own",
        snippet="def __getitem__(self, index):\n"
        "    if self.pid != os.getpid():  # this process has not opened it\n"
        "        self.file, self.pid = open_archive(self.path), os.getpid()\n"
        "    return read_sample(self.file, index)",
    )
    references = (
        "pytorch#11887",
        "pytorch#11929",
        "pytorch#1919",
        "numpy#18124",
        "zarr-python#1218",
        "graphnet#243",
        "py-lmdb#159",
        "pytorch#113228",
    )

    def judge(self, seen: HeldObjects) -> list[Finding]:
        """One finding for all handles of one place."""
        if seen.start_method not in {FORK, None}:
            return []
        shared = [handle for handle in seen.handles if handle.is_used and not handle.is_replaced]
        if not shared:
            return []
        first = _outermost(shared)
        others = f", and {len(shared) - 1} more" if len(shared) > 1 else ""
        on = f" on {first.file}" if first.file else ""
        reason = f"; {ADVICE[first.kind]}" if first.kind in ADVICE else ""
        if seen.num_workers == 0:
            message = (
                f"{first.path} is an open {_noun(first)}{on}{others}: fine without workers, shared once there are some"
            )
        else:
            message = (
                f"{first.path} is an open {_noun(first)}{on}{others}, which {seen.num_workers} forked "
                f"{'worker shares with its parent' if seen.num_workers == 1 else 'workers share'}{reason}"
            )
        return [
            Finding(
                message=message,
                severity="info" if seen.num_workers == 0 else "error",
                basis="experiment",
                confidence=0.9,
                stage="read",
                where=first.path,
                evidence={"handles": [handle.path for handle in shared], "kind": first.kind, "file": first.file},
            )
        ]

    sick = (
        Example(
            title="An HDF5 file opened by the constructor",
            evidence=(
                HeldObjects(
                    num_workers=4,
                    start_method="fork",
                    handles=(
                        Handle(path="dataset.file", kind="h5py.File", file="train.h5", is_used=True, is_replaced=False),
                    ),
                ),
            ),
            message="dataset.file is an open h5py.File on train.h5, which 4 forked workers share; HDF5 keeps caches and "
            "positions for each open file",
        ),
        Example(
            title="A plain file in which each sample seeks",
            evidence=(
                HeldObjects(
                    num_workers=1,
                    start_method="fork",
                    handles=(
                        Handle(
                            path="dataset.blob", kind="open file", file="/data/all.bin", is_used=True, is_replaced=False
                        ),
                    ),
                ),
            ),
            message="dataset.blob is an open file on /data/all.bin, which 1 forked worker shares with its parent",
        ),
        Example(
            title="Not yet with workers",
            evidence=(
                HeldObjects(
                    num_workers=0,
                    start_method="fork",
                    handles=(
                        Handle(
                            path="dataset.db",
                            kind="sqlite3.Connection",
                            file=None,
                            is_used=True,
                            is_replaced=False,
                        ),
                    ),
                ),
            ),
            message="dataset.db is an open sqlite3.Connection: fine without workers, shared once there are some",
        ),
    )
    healthy = (
        Example(
            title="worker_init_fn opens it anew",
            evidence=(
                HeldObjects(
                    num_workers=2,
                    start_method="fork",
                    handles=(
                        Handle(
                            path="dataset.zip", kind="zipfile.ZipFile", file="a.zip", is_used=True, is_replaced=True
                        ),
                    ),
                ),
            ),
        ),
        Example(
            title="A log file that preparing samples does not touch",
            evidence=(
                HeldObjects(
                    num_workers=2,
                    start_method="fork",
                    handles=(
                        Handle(path="dataset.log", kind="open file", file="log", is_used=False, is_replaced=False),
                    ),
                ),
            ),
        ),
        Example(
            title="Workers that are no forks have nothing to inherit",
            evidence=(
                HeldObjects(
                    num_workers=2,
                    start_method="spawn",
                    handles=(Handle(path="dataset.f", kind="h5py.File", file="a.h5", is_used=True, is_replaced=False),),
                ),
            ),
        ),
    )


def _outermost(handles: list[Handle]) -> Handle:
    """The one that the others hang on: the shortest path."""
    return min(handles, key=lambda handle: (handle.path.count(".") + handle.path.count("["), len(handle.path)))


def _noun(handle: Handle) -> str:
    return "file" if handle.kind == "open file" else handle.kind
