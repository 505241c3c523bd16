"""Plan: what to load, as a value. A source and the named stages that turn each record into a sample.

A plan can be printed, compared, hashed, pickled and indexed, and it holds no workers, order or state: the loader adds
those. `folder`, `arrays`, `table` and `tokens` are the front doors.
"""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.source import ArraySource, FolderSource, TableSource, TokenSource, adopt, find_row
from headrace.engine.transform.stage import Stage
from headrace.errors import ConfigurationError, SampleId, Where, annotate
from headrace.keys import derive_key
from headrace.observe import monotonic
from headrace.protocols import Source

__all__ = ["Plan", "arrays", "folder", "table", "tokens"]

RESERVED_NAMES = ("read", "collate")
"""Stage times and error messages use these words for the steps before and after the plan's own stages."""

STAGES_TEXT_CHARS = 256
"""Longest list of stages written into a saved state, which has to stay under 1 KB."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A frozen chain: source, then stages. Itself a map-style data set.

    `plan[i]` is sample i with the draws of seed 0 and epoch 0, the same every time; a loader chooses seed and epoch.

    >>> plan = arrays(x=[1, 2, 3]).map(lambda row: row["x"] * 10, name="scale")
    >>> len(plan), int(plan[-1])
    (3, 30)
    """

    source: Source
    stages: tuple[Stage, ...] = ()

    @classmethod
    def of(cls, data: Any) -> Plan:
        """Returns the plan that loads `data`: a plan as it is, a source, or any map-style data set.

        Raises:
            ConfigurationError: it is none of these; says what is missing.
        """
        return data if isinstance(data, cls) else cls(adopt(data))

    def map(self, function: Callable[..., Any], *, name: str | None = None) -> Plan:
        """Returns this plan with one more stage at its end.

        Args:
            function: Takes one sample and returns one. With a parameter named `rng` it is random, and gets a
                `numpy.random.Generator` made for this seed, epoch, sample and stage.
            name: Name of the stage. Default: the function's own, with a number if it is taken: `crop`, `crop-2`.
                It is part of the key of random stages, so give one that will stay.

        Raises:
            ConfigurationError: the function cannot be called with one sample, or `name` is taken.
        """
        stage = Stage.of(function, name)
        taken = {*RESERVED_NAMES, *(known.name for known in self.all_stages)}
        if stage.name in taken and name is not None:
            raise ConfigurationError(
                f"the stage name {name!r} is taken",
                where=Where(stage=str(stage)),
                why="stages are told apart by name, in messages and in the keys of random draws",
                do=f"name={name + '-2'!r}",
            )
        number = 2
        unique = stage.name
        while unique in taken:
            unique = f"{stage.name}-{number}"
            number += 1
        return dataclasses.replace(self, stages=(*self.stages, dataclasses.replace(stage, name=unique)))

    def cache(self, at: str | None = None, *, max_bytes: int, where: str | os.PathLike[str] = "memory") -> Plan:
        """Returns this plan with the samples kept as they are after one stage, so that later epochs look them up.

        Order, ids and bytes are the same as without. A kept sample is used again only if the record has not changed
        (a file: path, size, times, inode, label; else the digest of the record) and the stages up to `at` are the
        same code with the same values. What is not a dict, tuple or list of arrays, tensors, numbers and strings, or
        drew from a global generator, is loaded each time, with one warning.

        Args:
            at: Name of the stage. Default: the last one before the first random stage.
            max_bytes: Bound for what is kept, in bytes. First come, first kept: when it is full, nothing is evicted,
                and the other samples are loaded as without a cache.
            where: `"memory"`: shared by the workers of this program, gone with it. `"disk"`: the user's cache folder,
                shared by programs and runs. Or a folder.

        Raises:
            ConfigurationError: nothing can be kept, `at` is unknown or comes after a random stage, or a stage holds
                something by which it cannot be told from another; says which and why.
        """
        from headrace.engine.cache import CachedSource

        source, rest = CachedSource.of(self.source, self.stages, at=at, max_bytes=max_bytes, where=where)
        return dataclasses.replace(self, source=source, stages=rest)

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """The stages, with those that the source has taken in to keep what they make."""
        return (*getattr(self.source, "kept_stages", ()), *self.stages)

    @property
    def runs_user_code(self) -> bool:
        """True if loading a sample runs code that is not headrace's."""
        return bool(self.stages) or self.source.runs_user_code

    @property
    def classes(self) -> Sequence[str] | None:
        """Names of the classes, where the source knows them."""
        return getattr(self.source, "classes", None)

    @property
    def num_classes(self) -> int | None:
        """Number of classes, where the source knows it."""
        own = getattr(self.source, "num_classes", None)
        return len(self.classes) if own is None and self.classes is not None else own

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)

    def __iter__(self) -> Iterator[Any]:
        # Without this, Python would take an IndexError raised inside a stage for the end of the data.
        return (self.sample(index) for index in range(len(self)))

    def sample(self, index: int, *, seed: int = 0, epoch: int = 0) -> Any:
        """Returns one sample, with the draws of one seed and epoch; a negative index counts from the end.

        Raises:
            IndexError: there is no such row.
        """
        row = operator.index(index)
        num_samples = len(self)
        if not -num_samples <= row < num_samples:
            raise IndexError(f"row {row:,} of a plan with {num_samples:,} samples")
        return self.load_one(row % num_samples, seed, epoch)

    def load_one(self, index: int, seed: int, epoch: int, observe: Callable[[str, float], None] | None = None) -> Any:
        """Returns one sample; an exception keeps its type and gains a note with sample, stage and epoch.

        Args:
            index: Row number, 0..N-1.
            seed: Seed of the run.
            epoch: Epoch, from 0.
            observe: Told (stage, seconds) after each step, the first of which is `read`.
        """
        sample_id = self.source.sample_id(index)
        current: Stage | None = None  # None: reading
        start_s = monotonic()

        def leave() -> None:
            if observe is not None:
                observe("read" if current is None else current.name, monotonic() - start_s)

        def enter(stage: Stage) -> None:
            nonlocal current, start_s
            leave()
            current, start_s = stage, monotonic()

        try:
            (record,) = self.source.read_many([index])
            sample = self.apply_stages(record, sample_id=sample_id, seed=seed, epoch=epoch, enter=enter)
        except Exception as error:
            place = Where(
                sample_id=sample_id,
                index=index,
                path=self.source.locate(index),
                stage=getattr(error, "headrace_stage", "read") if current is None else str(current),
                epoch=epoch,
                seed=seed,
            )
            annotate(error, place)
            raise
        leave()
        return sample

    def read_many(self, indices: Sequence[int]) -> Sequence[Any]:
        """Returns one record per index, before any stage."""
        return self.source.read_many(indices)

    def apply_stages(
        self,
        record: Any,
        *,
        sample_id: SampleId,
        seed: int,
        epoch: int,
        enter: Callable[[Stage], None] | None = None,
    ) -> Any:
        """Returns the sample that the stages make of a record.

        Args:
            record: What the source read.
            sample_id: Its identity; with seed and epoch the key of random stages.
            seed: Seed of the run.
            epoch: Epoch, from 0.
            enter: Told each stage just before it runs, so that the caller can name and time it from outside.
        """
        for stage in self.stages:
            if enter is not None:
                enter(stage)
            record = stage.apply(record, seed=seed, epoch=epoch, sample_id=sample_id)
        return record

    def sample_id(self, index: int) -> SampleId:
        """Returns the stable identity of a row."""
        return self.source.sample_id(index)

    def sample_ids(self, rows: npt.NDArray[np.int64]) -> tuple[SampleId, ...]:
        """Returns the stable identities of some rows, at once where the source can."""
        many: Callable[[npt.NDArray[np.int64]], tuple[SampleId, ...]] | None = getattr(self.source, "sample_ids", None)
        return tuple(map(self.source.sample_id, rows.tolist())) if many is None else many(rows)

    def locate(self, index: int) -> str | None:
        """Returns where the record of a row lies, for people; None if the id says it all."""
        return self.source.locate(index)

    def index_of(self, sample_id: SampleId) -> int:
        """Returns the row of a sample: of an exact id first, else of a row number (also one typed as digits).

        Raises:
            ConfigurationError: there is no such sample; names the nearest id.

        Cost: through the source's own `index_of` if it has one, else one call of `sample_id` per row.
        """
        return find_row(self.source, sample_id)

    def fingerprint(self) -> dict[str, int | str]:
        """Returns what a saved state says about its data: number of samples, digest of the source, list of stages."""
        stages = " -> ".join(stage.name + ("(rng)" if stage.takes_rng else "") for stage in self.all_stages)
        return {
            "num_samples": len(self),
            "data": self.source.fingerprint(),
            "stages": stages if len(stages) <= STAGES_TEXT_CHARS else _shortened(stages),
        }

    def __repr__(self) -> str:
        width = max([4, *(len(stage.name) for stage in self.stages)])
        rows = [f"  {'read':<{width}}  {self.source!r}"]
        for stage in self.stages:
            notes = [stage.location or "", "random" if stage.takes_rng else ""]
            rows.append(f"  {stage.name:<{width}}  {', '.join(filter(None, notes))}".rstrip())
        return "\n".join([f"Plan of {len(self):,} samples", *rows])


def _shortened(stages: str) -> str:
    """The beginning of a long list of stages, and a digest that stands for the rest."""
    digest = f"... {derive_key('stages', stages):032x}"
    return stages[: STAGES_TEXT_CHARS - len(digest)] + digest


def folder(
    root: str | os.PathLike[str],
    *,
    labels: bool = True,
    classes: Sequence[str] | None = None,
    extensions: Sequence[str] | str | None = None,
    ignore: Sequence[str] | str = (),
) -> Plan:
    """Returns a plan over data files in class folders: `root/<class>/.../file`.

    Each record has `id` (the path relative to `root`), `path`, `data` (the bytes), `label` and `class_name`; a stage
    decodes it. The order is by class and path, compared by code points, on every machine the same.

    Args:
        root: The folder.
        labels: True: the folders directly in `root` are the classes, and their ranks the labels. False: no labels;
            files directly in `root` or anywhere below.
        classes: Names of the classes in the order of their labels, e.g. `train.classes` for a validation folder that
            lacks some of them. Default: the class folders, sorted.
        extensions: Endings of data files, in any case: `[".png", ".jpg"]`. Default: every file.
        ignore: Names or relative paths to pass over, as patterns: `["*.txt", ".cache", "test/*"]`.

    Raises:
        SourceError: the folder cannot be used as it is (missing, empty, hidden or empty class folders, files without
            a class, broken links): says which, and what to do. Only files with a leading dot, `Thumbs.db` and
            `desktop.ini` are passed over without a word.
        ConfigurationError: the arguments do not fit together.

    Cost: one `stat` per file, about 4 s for 1,000,000 local files; then 24 bytes per file beside its path.

    >>> import pathlib, shutil, tempfile
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat/2.txt", "cat/10.txt", "dog/1.txt"):
    ...     (root / name).parent.mkdir(exist_ok=True)
    ...     _ = (root / name).write_text(name.upper())
    >>> plan = folder(root).map(lambda record: (record.data.decode(), record.label), name="decode")
    >>> plan.classes, plan.sample_id(0), plan[0]
    (['cat', 'dog'], 'cat/10.txt', ('CAT/10.TXT', 0))
    >>> shutil.rmtree(root)
    """
    return Plan(FolderSource(root, labels=labels, classes=classes, extensions=extensions, ignore=ignore))


def arrays(*arrays: Any, ids: Sequence[SampleId] | None = None, **fields: Any) -> Plan:
    """Returns a plan over the rows of numpy arrays, memory maps, torch tensors or lists of equal length.

    Args:
        arrays: One mapping of arrays, or arrays by place: one gives bare rows, several give tuples.
        ids: N unique identities: all strings, or all whole numbers. Default: the row number.
        fields: Arrays by field name; records are dicts.

    Raises:
        ConfigurationError: unequal lengths (names both), no axis of rows, Python objects in an array, ids that are
            repeated or not N.

    >>> import numpy as np
    >>> plan = arrays(image=np.zeros((3, 8, 8), np.float32), label=[0, 1, 1], ids=["a", "b", "c"])
    >>> plan
    Plan of 3 samples
      read  ArraySource(3 rows: image float32[3, 8, 8], label int64[3])
    >>> plan.sample_id(2), plan[2]["image"].shape, int(plan[2]["label"]), plan.index_of("b")
    ('c', (8, 8), 1, 1)
    """
    return Plan(ArraySource(*arrays, ids=ids, **fields))


def table(table: Any, *, columns: Sequence[str] | None = None) -> Plan:
    """Returns a plan over the rows of an Arrow table; a sample is a dict of its columns, its id the row number.

    Args:
        table: A `pyarrow.Table` or `RecordBatch`, or the path of a file, or paths of several: Parquet (`.parquet`,
            `.pq`), of which the chosen columns are read into memory, or Arrow (`.arrow`, `.feather`), which is mapped.
        columns: Names of the columns to take, in that order. Default: all.

    Raises:
        MissingExtra: pyarrow is not installed.
        SourceError: there is no such file, or it is no table.
        ConfigurationError: there is no such column, or two of one name.

    Numbers are numpy scalars of the column's type, lists of numbers numpy arrays, dictionary-encoded values the values,
    structs dicts; nulls are None. A batch of columns of numbers, text, and lists of one length is gathered at once,
    whatever the number of chunks; columns with nulls and other types are read value by value.

    >>> import pyarrow as pa
    >>> plan = table(pa.table({"x": pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2)), "name": ["a", "b"]}))
    >>> plan
    Plan of 2 samples
      read  TableSource(2 rows: x fixed_size_list<item: int16>[2], name string)
    >>> plan[1]
    {'x': array([3, 4], dtype=int16), 'name': 'b'}
    """
    return Plan(TableSource(table, columns=columns))


def tokens(
    tokens: str | os.PathLike[str] | npt.ArrayLike,
    *,
    window: int = 1025,
    stride: int | None = None,
    dtype: npt.DTypeLike = "uint16",
) -> Plan:
    """Returns a plan over windows of one long row of token numbers; a sample is (window,) int64, its id its number.

    Args:
        tokens: A file of raw token numbers (mapped, never read whole), a `.npy` file, or a 1-D array of integers.
        window: Tokens in one window. Default 1025: inputs `batch[:, :-1]` and targets `batch[:, 1:]` of 1024.
        stride: Tokens from the beginning of one window to the next. Default: `window`, so that no token comes twice;
            `window - 1` also makes a target of each window's first token.
        dtype: What one token is in a raw file: `uint16`, `uint32`, ... Arrays and `.npy` files keep their own.

    Raises:
        SourceError: there is no such file, it is not a whole number of tokens, or too short for one window.
        ConfigurationError: a number below 1, or tokens that are no integers in one row.

    Tokens at the end that fill no window are left out; printing the plan says how many.

    >>> import numpy as np
    >>> plan = tokens(np.arange(11, dtype=np.uint16), window=4, stride=3)
    >>> plan
    Plan of 3 samples
      read  TokenSource(3 windows of 4 uint16 tokens, stride 3, 1 tokens left out at the end)
    >>> plan[1].tolist()
    [3, 4, 5, 6]
    """
    return Plan(TokenSource(tokens, window=window, stride=stride, dtype=dtype))
