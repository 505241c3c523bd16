"""`headrace.DataLoader`: torch's constructor; deterministic under any layout, exact in accounting, resumable anywhere.

Joins a way of loading (indexed data or a stream) and a runner (who executes); holds no data itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Generic, TypeVar

from headrace.contract import Contract
from headrace.engine.accounting import Account
from headrace.engine.arguments import Arguments
from headrace.engine.batch import BatchInfo, attach
from headrace.engine.collate import ContractCollate, default_collate, default_convert, is_ours
from headrace.engine.governor import AutoRunner
from headrace.engine.indexed import IndexedLoading
from headrace.engine.order.cursor import Cursor
from headrace.engine.order.ledger import Ledger
from headrace.engine.passes import Run
from headrace.engine.plan import Plan
from headrace.engine.relay import Relay
from headrace.engine.stream import StreamLoading, is_stream
from headrace.engine.transfer import DeviceTransfer, Normalize, pin, signature_of, to_jax, to_numpy, to_tf
from headrace.engine.view import LoaderView, each
from headrace.engine.work import Refusal
from headrace.engine.workers import make_runner
from headrace.errors import ConfigurationError, SampleId
from headrace.observe import LoaderStats

__all__ = ["DataLoader"]

BatchT = TypeVar("BatchT")


class DataLoader(Generic[BatchT]):
    """Delivers batches of a data set: torch's arguments, torch's batches, plus identity, state and accounting.

    Each `iter(loader)` is one epoch: the first one epoch 0, the next one epoch 1. For a given seed, the samples of an
    epoch, their order and their random draws are the same under any `num_workers`, `runner`, `world_size`, and after
    any resume; batches are cut from that order by `batch_size` alone.

    Args:
        dataset: A `Plan` (`hr.folder(...).map(...)`), any map-style data set (`__len__` and `__getitem__`, optionally
            `__getitems__`), or an iterable data set (`torch.utils.data.IterableDataset`; see "Streams").
        batch_size: Samples per *global* batch; with several ranks each gets its contiguous part. None: single samples.
            Default 1, as in torch.
        shuffle: A new random order in each epoch, in constant memory. Default False.
        sampler: Any iterable of row numbers; its own and the global generators are keyed by (seed, epoch) while it
            is listed. Excludes `shuffle`.
        batch_sampler: Any iterable of lists of row numbers. Excludes `batch_size`, `shuffle`, `sampler`, `drop_last`.
        num_workers: 0 loads in the caller, with readable tracebacks. Default 0, as in torch. "auto" begins in the
            caller, measures, and moves to threads, a host process or processes if the loop would wait; what it decided
            and why is in `stats().decisions`.
        collate_fn: Joins a list of samples. Default: by the contract if there is one, else torch's rules.
        pin_memory: Deliver batches in page-locked memory if there is a CUDA device. Default False.
        drop_last: Short for `tail="drop"`.
        timeout: Seconds without a batch after which a worker counts as stuck (StuckWorker, with its stack). 0: never,
            but stacks are logged after five minutes.
        worker_init_fn: Called with the worker's number in each worker process.
        multiprocessing_context: "fork", "forkserver", "spawn" or a context; None: Python's default.
        generator: A torch generator whose first seed is the loader's seed if `seed` is None; nothing is drawn from it.
        prefetch_factor: Batches that each worker may hold ready. Default 2, as in torch.
        persistent_workers: Keep worker processes between epochs, with the data set as it was when they started. They
            load the first batches of the next epoch while this one ends, so that between two there is no gap (not with
            a sampler, which is asked for its order at the start of each epoch). Default False, as in torch.
        pin_memory_device: Accepted for torch's sake; memory is pinned for the current device.
        in_order: Accepted for torch's sake; delivery is always in order.
        seed: What every order and every random draw is derived from. None: `torch.initial_seed()` (what
            `torch.manual_seed` was given, or torch's fixed default), so runs repeat; with several ranks 0, because
            ranks often seed torch differently and must agree here.
        contract: What each sample and batch must look like; breaches are raised by sample id.
        on_error: What to do with a sample that fails: "raise" (default), `hr.Skip(...)`, `hr.Replace(...)`.
        tail: What to do with the incomplete last batch: "drop"; "partial" (default); "pad" (filled up by repeats that
            `loader.last.is_pad` flags); "carry" (its samples open the next epoch's first batch).
        runner: "auto" (default: inline without workers, processes with), "inline", "threads", "host" (threads in one
            process of their own), "processes".
        memory_limit: Bytes. With worker processes: of the shared memory that batches travel in, held ones included;
            beyond it they are copied. With `num_workers="auto"`: of all batches in flight. None: twice what can be in
            flight, or a quarter of what is free.
        rank: This process's number among `world_size`; None: 0 of 1.
        world_size: Number of processes that share the batches.

    Raises:
        ConfigurationError: arguments that cannot work, alone or together.
        SourceError: an empty data set.

    Order and state: `state_dict()` is a few integers, the same on every rank; see `Cursor`.
    Errors: a failure in user code keeps its type and gains a note with the sample, the place and the way to replay.
    Streams: an iterable data set has no row numbers; its ids are `worker:number`, and its state fits only the same
        number of workers and ranks.

    >>> import headrace as hr
    >>> loader = hr.DataLoader(range(10), batch_size=4, shuffle=True, seed=7)
    >>> seen = [sample_id for batch in loader for sample_id in loader.last.sample_ids]
    >>> sorted(seen) == list(range(10)), seen == list(range(10))
    (True, False)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int | str = 0,
        collate_fn: Callable[[Any], BatchT] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        contract: Contract | None = None,
        on_error: Any = "raise",
        tail: str | None = None,
        runner: str = "auto",
        memory_limit: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        arguments = Arguments(
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            collate_fn=collate_fn,
            drop_last=drop_last,
            timeout=timeout,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            on_error=on_error,
            tail=tail,
            runner=runner,
            memory_limit=memory_limit,
            rank=rank,
            world_size=world_size,
            seed=seed,
        )
        self._arguments = arguments
        self._sampler, self._batch_sampler = sampler, batch_sampler
        self.dataset = dataset
        self.batch_size = None if batch_sampler is not None else batch_size
        self.num_workers = num_workers
        self.collate_fn = collate_fn or self._default_collate(arguments, contract)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = arguments.resolved_tail == "drop"
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.contract = contract
        self.on_error = on_error
        self.rank, self.world_size = arguments.effective_rank, arguments.effective_world_size
        self.seed = seed if seed is not None else _seed_from_torch(generator, self.world_size)

        if is_ours(self.collate_fn):
            import torch  # noqa: F401 - the batches are made of it: better once here than in each worker that is forked
        self._runner = make_runner(arguments, multiprocessing_context)
        self._loading: IndexedLoading | StreamLoading = self._make_loading(arguments, worker_init_fn)
        self._next_epoch = 0
        self._start: Cursor | None = None
        self._cursor: Cursor | BatchInfo | None = None  # BatchInfo: the batch handed over last, which makes its own
        self._last: BatchInfo | None = None
        self._account: Account | None = None
        self._relay: Relay[Any, Any] | None = None

    @staticmethod
    def _default_collate(arguments: Arguments, contract: Contract | None) -> Callable[[Any], Any]:
        if arguments.batch_size is None and arguments.batch_sampler is None:
            return default_convert
        return default_collate if contract is None else ContractCollate(contract)

    def _make_loading(
        self, arguments: Arguments, worker_init_fn: Callable[[int], None] | None
    ) -> IndexedLoading | StreamLoading:
        if is_stream(self.dataset):
            if arguments.num_workers == "auto":
                raise ConfigurationError(
                    "num_workers='auto' cannot be chosen for an iterable data set",
                    why="its samples and their order depend on the number of workers, which therefore must be said",
                    do="num_workers=2    or 0 to load in the caller",
                )
            return StreamLoading(
                self.dataset, arguments, collate=self.collate_fn, seed=self.seed, worker_init_fn=worker_init_fn
            )
        return IndexedLoading(
            Plan.of(self.dataset),
            arguments,
            collate=self.collate_fn,
            contract=self.contract,
            seed=self.seed,
            worker_init_fn=worker_init_fn,
            dataset=self.dataset,
        )

    # Iterating.

    def __len__(self) -> int:
        """Number of batches in a whole epoch: the same on every rank. TypeError for a stream without a length."""
        return self._loading.num_batches(self.seed, self._next_epoch)

    def __iter__(self) -> Iterator[BatchT]:
        """Begins the next epoch, or goes on from a loaded state."""
        start = self.next_start
        run = self._loading.begin(start, self._runner, self._relay)
        self._relay = run.relay
        # Where this pass will end is known beforehand, so a `break` in it does not change what the next one delivers.
        self._next_epoch, self._start = run.epoch + 1, run.end
        # From here on the place is the start of this pass, also after a `break` in the one before.
        self._cursor, self._account, self._last = run.start, run.account, None
        return self._hand_over(run)

    def _hand_over(self, run: Run) -> Generator[BatchT, None, None]:
        for batch, info in run.batches:
            # Set before the batch is handed over: the batch that the caller holds is never part of what is to come.
            self._cursor = self._last = info
            yield attach(pin(batch) if self.pin_memory else batch, info)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next `iter(loader)` epoch `epoch`, and its start the place where the loader stands."""
        if epoch < 0:
            raise ConfigurationError(f"set_epoch({epoch}): epochs count from 0")
        self._next_epoch, self._start, self._cursor = epoch, None, None

    # What was handed over.

    @property
    def last(self) -> BatchInfo:
        """Identity of the batch handed over last: sample_ids, cursor, positions, is_pad, is_replaced."""
        if self._last is None:
            raise AttributeError("no batch has been handed over in this pass, so there is no last one")
        return self._last

    @property
    def ledger(self) -> Ledger | None:
        """Counts and order hash of the current pass; None before the first, and for streams."""
        return None if self._account is None else self._account.ledger

    @property
    def quarantine(self) -> list[Refusal]:
        """Samples refused in the current pass, in the order of delivery."""
        return [] if self._account is None else list(self._account.quarantine)

    def stats(self) -> LoaderStats:
        """Returns times and counts of the current pass."""
        decisions = self._runner.decisions if isinstance(self._runner, AutoRunner) else ()
        if self._account is not None:
            return dataclasses.replace(self._account.stats(), num_workers=self._runner.num_workers, decisions=decisions)
        return LoaderStats(
            epoch=-1,
            num_batches=0,
            num_samples=0,
            first_batch_s=None,
            wait_s=0.0,
            stages=(),
            runner=self._runner.name,
            num_workers=self._runner.num_workers,
            decisions=decisions,
        )

    # State.

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after the batch handed over last: a few integers, JSON, the same on every rank.

        Batches that are loaded but not handed over are no part of it; they are made again.
        """
        place = self._cursor or self._loading.cursor(self.seed, self._next_epoch, 0)
        cursor = place.cursor if isinstance(place, BatchInfo) else place
        return cursor.state_dict()

    def load_state_dict(self, state: Mapping[str, Any] | Cursor) -> None:
        """Makes the next `iter(loader)` go on from a saved state, whose seed becomes the loader's.

        Workers, runner, ranks and batch size may all differ from those at saving. A state saved at the end of an
        epoch goes on with the next one.

        Raises:
            StateMismatch: the state is of another data set, plan or order; the message prints both sides.
        """
        saved = Cursor.from_state_dict(state)
        self._loading.check_fits(saved)
        self.seed = saved.seed
        self._start = self._cursor = saved
        self._next_epoch, self._last, self._account = saved.epoch, None, None

    @property
    def next_start(self) -> Cursor:
        """Where the next `iter(loader)` begins: the place that was loaded, or the start of the next pass."""
        return self._start or self._loading.cursor(self.seed, self._next_epoch, 0)

    # One sample.

    def replay(self, sample_id: SampleId, epoch: int = 0) -> Any:
        """Returns one sample as that epoch delivers it: same stages, same random draws, here in the caller.

        Raises:
            the sample's own exception, with its note, if it fails; ConfigurationError for a stream or an unknown id.
        """
        return self._loading.replay(sample_id, self.seed, epoch)

    # The same batches elsewhere.

    def to(self, device: Any, *, normalize: Normalize | None = None) -> LoaderView:
        """Returns this loader with its batches on a device, each copied while the one before is computed on.

        Args:
            device: A torch device or its name. The CPU passes batches straight through.
            normalize: `hr.Normalize(...)`: uint8 travels, and becomes normalised float32 on the device.
        """
        return LoaderView(self, DeviceTransfer(device, normalize=normalize))

    def to_numpy(self) -> LoaderView:
        """Returns this loader with its batches as numpy arrays over the same memory."""
        return LoaderView(self, each(to_numpy))

    def to_jax(self) -> LoaderView:
        """Returns this loader with its batches as JAX arrays, shared where JAX allows it."""
        return LoaderView(self, each(to_jax))

    def to_tf(self, *, signature: Any = None) -> Any:
        """Returns a `tf.data.Dataset` of the batches; each iteration over it is the next epoch of this loader.

        Args:
            signature: A structure of `tf.TensorSpec`, as `tf.data.Dataset.from_generator` takes it. Default: made of
                three samples (first, middle, last), each as a batch of its own; the batch axis is None, and so are
                sizes that differ among the three or may differ by the contract.

        Raises:
            MissingExtra: TensorFlow is not installed.
            ConfigurationError: the batches hold what is no tensor to TensorFlow; or a stream without `signature`.

        TensorFlow reads the memory of a batch without copying it where that memory begins at a multiple of 64 bytes,
        and copies it otherwise. `state_dict()` stands after the batch that TensorFlow took last: `prefetch` and other
        buffers of `tf.data` count as handed over. Lists and tuples come as tuples, text as `tf.string`.
        """
        if signature is None:
            is_batched = self.batch_size is not None or self._batch_sampler is not None
            signature = signature_of(self._trial_batches(is_batched), is_batched=is_batched, contract=self.contract)
        return to_tf(self.__iter__, signature)

    def _trial_batches(self, is_batched: bool) -> list[Any]:
        """Up to three samples as batches of one, made here without moving the loader; the failure of all is raised."""
        if isinstance(self._loading, StreamLoading):
            raise ConfigurationError(
                "a stream does not say what its batches are before they are read", do="to_tf(signature=...)"
            )
        plan = self._loading.plan
        batches: list[Any] = []
        failure: Exception | None = None
        for row in sorted({0, len(plan) // 2, len(plan) - 1}):
            try:
                sample = self._loading.replay(plan.sample_id(row), self.seed, self._next_epoch)
            except Exception as error:
                failure = error
                continue
            if sample is not None:
                batches.append(self.collate_fn([sample] if is_batched else sample))
        if not batches:
            raise failure or ConfigurationError("no sample to make a signature of", do="to_tf(signature=...)")
        return batches

    # Torch's attributes.

    @property
    def sampler(self) -> Any:
        """The sampler that was given, or an iterable over the next epoch's row numbers."""
        return self._sampler if self._sampler is not None else self._loading.sampler(self.seed, self._next_epoch)

    @property
    def batch_sampler(self) -> Any:
        """The batch sampler that was given, or torch's own over `sampler`; None without batches."""
        if self._batch_sampler is not None or self.batch_size is None or self.sampler is None:
            return self._batch_sampler
        from torch.utils.data import BatchSampler

        return BatchSampler(self.sampler, self.batch_size, self.drop_last)

    def __repr__(self) -> str:
        return (
            f"DataLoader({self._loading.describe()}, batch_size={self.batch_size}, seed={self.seed}, "
            f"tail={self._arguments.resolved_tail.value!r}, runner={self._runner.name!r}, "
            f"num_workers={self.num_workers}, rank={self.rank} of {self.world_size})"
        )


def _seed_from_torch(generator: Any, world_size: int) -> int:
    """The seed when none is given: torch's own, without drawing from it."""
    if generator is not None:
        return int(generator.initial_seed())
    if world_size > 1:
        return 0
    import torch

    return int(torch.initial_seed())
