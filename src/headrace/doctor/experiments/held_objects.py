"""Walks through what the loader's parts hold: open handles, threads, locks, tensors on a device.

Whether a handle is carried into workers is tried and not guessed: a fork is set up as torch sets up a worker, prepares
two samples, and says which handles it found, used or replaced.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.objects import Handle, HeldObjects, ThreadHeld
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.graph_walk import walk
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject

__all__ = ["STEP", "WalkObjects", "parts_of"]

HANDLES = {
    "h5py._hl.files.File": "h5py.File",
    "h5py._hl.dataset.Dataset": "h5py.Dataset",
    "h5py._hl.group.Group": "h5py.Group",
    "sqlite3.Connection": "sqlite3.Connection",
    "sqlite3.Cursor": "sqlite3.Cursor",
    "zipfile.ZipFile": "zipfile.ZipFile",
    "tarfile.TarFile": "tarfile.TarFile",
    "numpy.lib.npyio.NpzFile": "numpy.lib.npyio.NpzFile",
    "numpy.lib._npyio_impl.NpzFile": "numpy.lib.npyio.NpzFile",
    "lmdb.Environment": "lmdb.Environment",
    "lmdb.Transaction": "lmdb.Transaction",
    "netCDF4._netCDF4.Dataset": "netCDF4.Dataset",
    "tables.file.File": "tables.File",
    "rasterio.io.DatasetReader": "rasterio.DatasetReader",
    "cv2.VideoCapture": "cv2.VideoCapture",
    "socket.socket": "socket.socket",
    "requests.sessions.Session": "requests.Session",
    "psycopg2.extensions.connection": "psycopg2.connection",
    "pymongo.mongo_client.MongoClient": "pymongo.MongoClient",
    "redis.client.Redis": "redis.Redis",
}
"""Classes whose objects must not be shared by processes: a position, a connection or a cache lies behind them."""
MAX_HANDLES = 16
NUM_TRIED = 2
"""Samples that the fork prepares: the first opens what is opened late, the second uses it."""
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def parts_of(subject: Subject) -> Iterator[tuple[str, Any]]:
    """Yields (name, object) for the parts of a loader that travel into its workers."""
    yield "dataset", subject.dataset
    for name in ("collate_fn", "worker_init_fn"):
        held = getattr(subject.loader, name, None)
        if held is not None:
            yield name, held


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WalkObjects:
    """The experiment; yields one HeldObjects. Prepares two samples, in a fork that ends."""

    name: ClassVar[str] = "objects held by the loader"
    starts_processes: ClassVar[bool] = True

    start_method: str | None
    num_workers: int
    indices: tuple[int, ...]
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[HeldObjects]:
        """Walks here, then in a fork."""
        with bench.holding(None, None, stage="walk through the objects"):
            held = [found for name, part in parts_of(subject) for found in walk(part, name)]
            handles = {path: value for path, value in held if _is_handle(value)}
            places = {path: _position(value) for path, value in handles.items()}
        seen = dict[str, tuple[bool, bool]]()
        if handles:
            with bench.holding(None, None, stage="prepare samples as a worker"):
                seen = self._try_in_fork(subject, handles, places)
        named = _names_used(subject) if handles else set()
        yield HeldObjects(
            num_workers=self.num_workers,
            start_method=self.start_method,
            handles=tuple(
                Handle(
                    path=path,
                    kind=_kind(value),
                    file=_file_of(value),
                    is_used=seen.get(path, (False, False))[0] or (places[path] is None and _last(path) in named),
                    is_replaced=seen.get(path, (False, False))[1],
                )
                for path, value in list(handles.items())[:MAX_HANDLES]
            ),
            threads=tuple(_threads(held)),
            device_tensors=tuple(_device_tensors(held)),
        )

    def _try_in_fork(
        self, subject: Subject, handles: dict[str, Any], places: dict[str, int | None]
    ) -> dict[str, tuple[bool, bool]]:
        """Path -> (its position moved, a worker has another one in its place)."""
        told, tell = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(told)
            try:
                found = self._as_worker(subject, handles, places)
                os.write(tell, pickle.dumps(found))
            finally:
                os._exit(0)
        os.close(tell)
        with os.fdopen(told, "rb") as answer:
            data = answer.read()
        os.waitpid(pid, 0)
        result: dict[str, tuple[bool, bool]] = pickle.loads(data) if data else {}
        return result

    def _as_worker(
        self, subject: Subject, handles: dict[str, Any], places: dict[str, int | None]
    ) -> dict[str, tuple[bool, bool]]:
        _become_worker(subject, self.seed)
        with contextlib.suppress(BaseException):  # whether samples can be prepared is another experiment's question
            if subject.is_iterable:
                stream = iter(subject.dataset)
                for _ in range(NUM_TRIED):
                    next(stream)
            else:
                for index in self.indices[:NUM_TRIED]:
                    subject.read(index)
        now = {path: value for name, part in parts_of(subject) for path, value in walk(part, name)}
        return {
            path: (
                places[path] is not None and _position(value) != places[path],
                now.get(path) is not value or not _is_handle(value),
            )
            for path, value in handles.items()
        }


def _become_worker(subject: Subject, seed: int) -> None:
    """Sets up this fork as torch sets up worker 0 of 2."""
    worker: Any = sys.modules.get("torch.utils.data._utils.worker")
    if worker is None:
        return
    with contextlib.suppress(BaseException):
        worker._worker_info = worker.WorkerInfo(id=0, num_workers=2, seed=seed, dataset=subject.dataset)
        set_up = getattr(subject.loader, "worker_init_fn", None)
        if callable(set_up):
            set_up(0)


def _kind(value: Any) -> str:
    if isinstance(value, io.IOBase):
        return "open file"
    return next((HANDLES[name] for name in _class_names(value) if name in HANDLES), type(value).__qualname__)


def _class_names(value: Any) -> list[str]:
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__]


def _is_handle(value: Any) -> bool:
    """True for an open handle; one that is closed does no harm."""
    if isinstance(value, (io.BytesIO, io.StringIO)):
        return False
    if isinstance(value, io.IOBase):
        with contextlib.suppress(Exception):
            return not value.closed and value.fileno() > 2 and value.readable()
        return False
    if not any(name in HANDLES for name in _class_names(value)):
        return False
    if _kind(value) == "zipfile.ZipFile":
        return getattr(value, "fp", None) is not None
    if _kind(value).startswith("h5py"):
        with contextlib.suppress(Exception):
            return bool(value)
    if _kind(value) == "sqlite3.Connection":
        try:
            value.total_changes  # noqa: B018 - raises once it is closed
        except Exception:
            return False
        return not _is_in_memory(value)
    return True


def _is_in_memory(connection: Any) -> bool:
    with contextlib.suppress(Exception):
        return all(not row[2] for row in connection.execute("PRAGMA database_list"))
    return False


def _position(value: Any) -> int | None:
    """Where the shared file position stands; None: there is none to look at."""
    file = getattr(value, "fp", None) or getattr(value, "fid", None) or getattr(value, "fileobj", None) or value
    with contextlib.suppress(Exception):
        return os.lseek(file.fileno(), 0, os.SEEK_CUR)
    return None


def _file_of(value: Any) -> str | None:
    for name in ("filename", "name"):
        with contextlib.suppress(Exception):
            found = getattr(value, name, None)
            if isinstance(found, (str, bytes, os.PathLike)):
                return os.fsdecode(found)
    return None


def _last(path: str) -> str:
    """`dataset.images.file` -> `file`; `dataset.files[0]` -> `files`."""
    return path.partition("[")[0].rpartition(".")[2]


def _names_used(subject: Subject) -> set[str]:
    """Names that methods of the user's classes use, constructors apart."""
    names: set[str] = set()
    for _, part in parts_of(subject):
        for _, value in walk(part, "part"):
            for kind in type(value).__mro__:
                for name, held in vars(kind).items():
                    code = getattr(held, "__code__", None)
                    if code is not None and name not in {
                        "__init__",
                        "__del__",
                        "__getstate__",
                        "__setstate__",
                        "close",
                    }:
                        names.update(code.co_names)
            code = getattr(value, "__code__", None)
            if code is not None:
                names.update(code.co_names, code.co_freevars)
    return names


def _threads(held: list[tuple[str, Any]]) -> Iterator[ThreadHeld]:
    for path, value in held:
        if isinstance(value, threading.Thread) and value.is_alive() and value is not threading.main_thread():
            yield ThreadHeld(path=path, kind="thread", name=value.name)
        elif (
            "concurrent.futures.thread.ThreadPoolExecutor" in _class_names(value) and getattr(value, "_threads", None)
        ) or "multiprocessing.pool.ThreadPool" in _class_names(value):
            yield ThreadHeld(path=path, kind="thread pool", name=None)
        elif isinstance(value, _LOCKS) and _is_locked(value):
            yield ThreadHeld(path=path, kind="held lock", name=None)


def _is_locked(lock: Any) -> bool:
    if hasattr(lock, "locked"):
        return bool(lock.locked())
    return "locked" in repr(lock) and "unlocked" not in repr(lock)


def _device_tensors(held: list[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    torch: Any = sys.modules.get("torch")
    for path, value in held:
        if torch is not None and isinstance(value, torch.Tensor) and value.device.type not in {"cpu", "meta"}:
            yield path, str(value.device)


class _Step:
    place = 200
    gives: tuple[type[Evidence], ...] = (HeldObjects,)
    every_split = True

    def run(self, round_: Round) -> None:
        facts = round_.facts
        readable = tuple(one.read.index for one in round_.prepared if one.read.outcome == "ok")[:NUM_TRIED]
        if not hasattr(os, "fork"):
            round_.found.lacks([HeldObjects], "this platform has no fork, so nothing is carried across one")
            return
        experiment = WalkObjects(
            start_method=facts.start_method,
            num_workers=facts.num_workers,
            indices=readable,
            seed=round_.wishes.seed,
        )
        round_.gather(experiment, HeldObjects, alone=True)


STEP = _Step()
