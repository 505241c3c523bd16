"""Reads the source around TARGET: its file, the files of its folder that it imports, and those that import it.

Nothing is executed. What is looked for is a habit that no run of the loader alone can show: whether the training loop
tells the sampler the epoch, whether there are ranks, whether seeds know of them.
"""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
from collections.abc import Callable, Iterator

__all__ = ["Source", "read_source"]

MAX_FILES = 40
"""Files read around TARGET: a folder of scripts, not a library."""
MAX_BYTES = 500_000

FRAMEWORKS = {
    "lightning": "lightning",
    "pytorch_lightning": "pytorch_lightning",
    "lightning_fabric": "lightning",
    "accelerate": "accelerate",
    "composer": "composer",
    "mmengine": "mmengine",
    "catalyst": "catalyst",
    "fastai": "fastai",
    "ray": "ray",
}
"""Libraries whose trainers deal samples out to ranks and tell samplers the epoch, by the name they are imported under."""

PARALLEL = {"DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard", "all_reduce"}
"""Calls that train one model on several ranks with different data; a process group alone may serve other ends."""
RANK_WORDS = re.compile(
    r"\b(WORLD_SIZE|LOCAL_RANK|RANK|get_rank|get_world_size|DistributedSampler|num_replicas|world_size|"
    r"split_dataset_by_node|process_index|SLURM_PROCID)\b"
)
PURPOSES = re.compile(r"overfit|sanity|debug|smoke|toy_run|dry_run", re.IGNORECASE)
SEEDERS = re.compile(
    r"manual_seed|seed_everything|set_seed|seed_all|set_random_seed|fix_seed|random\.seed", re.IGNORECASE
)
EVALUATION = re.compile(r"val|test|eval|dev", re.IGNORECASE)
PARTS = {"sampler", "batch_sampler", "dataset", "base_sampler", "data_source", "inner"}
"""Attributes of a loader through which `set_epoch` is called."""
SLOTS = {
    "transform",
    "transforms",
    "target_transform",
    "augment",
    "augmentation",
    "train",
    "training",
    "is_train",
    "mode",
}

Found = tuple[ast.AST, "pathlib.Path"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EpochCall:
    """One call of `set_epoch`."""

    at: str
    path: tuple[str, ...]
    """Attributes from a loader to the object that is told: ("batch_sampler", "sampler"); empty: a name of its own."""
    is_constant: bool
    for_evaluation: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the source says; places are `file:line`, None = nowhere."""

    epoch_calls: tuple[EpochCall, ...] = ()
    epoch_loop_at: str | None = None
    trains_at: str | None = None
    """Where it calls `backward()` or steps an optimizer."""
    num_loaders: int = 0
    """Calls that make a DataLoader in the file of TARGET."""
    framework: str | None = None
    parallel_at: str | None = None
    speaks_of_ranks: bool = False
    joins_at: str | None = None
    counts_once_at: str | None = None
    resets_at: str | None = None
    purpose: str | None = None
    seeded_at: str | None = None
    """Where it seeds torch, if no statement about seeds mentions the rank."""
    seeds_know_rank: bool = False
    shared_slots: tuple[str, ...] = ()
    """Assignments to a transform (or the like) through a subset: `val_set.dataset.transform = ...`."""
    switches_at: str | None = None
    """Where such an attribute is assigned in a loop."""
    returned: tuple[str, ...] = ()
    """Names in the tuple that TARGET's function returns; empty: it returns something else."""


def read_source(spec: str) -> Source:
    """Returns what the source around a TARGET says; empty if it cannot be found or read."""
    path = _path(spec)
    files = dict(_files(path)) if path is not None else {}
    if not files or path is None:
        return Source()
    own = files[path]
    told = _Reading(files, own, path).told()
    return dataclasses.replace(told, returned=_returned(own, spec.rpartition(":")[2]))


def _path(spec: str) -> pathlib.Path | None:
    place = spec.rpartition(":")[0]
    if not place:
        return None
    path = pathlib.Path(place) if place.endswith(".py") else pathlib.Path(*place.split(".")).with_suffix(".py")
    if not place.endswith(".py") and not path.is_file():
        path = path.with_suffix("") / "__init__.py"
    return path.resolve() if path.is_file() else None


def _files(path: pathlib.Path) -> Iterator[tuple[pathlib.Path, ast.Module]]:
    """Yields (path, tree): TARGET's file, what it imports of its own folder, and what there imports it."""
    trees = {path: _parse(path)}
    if trees[path] is None:
        return
    neighbours = [found.resolve() for found in sorted(path.parent.glob("*.py"))[:MAX_FILES] if found.resolve() != path]
    trees |= {found: _parse(found) for found in neighbours}
    by_name = {found.stem: found for found in trees}
    imports = {
        found: {by_name[name] for name in _imported(tree) if name in by_name} for found, tree in trees.items() if tree
    }
    wanted, pending = {path}, [path]
    while pending:
        for found in imports.get(pending.pop(), ()):
            if found not in wanted:
                wanted.add(found)
                pending.append(found)
    wanted |= {found for found, names in imports.items() if path in names}
    for found in sorted(wanted, key=lambda one: (one != path, one)):
        tree = trees[found]
        if tree is not None:
            yield found, tree


def _parse(path: pathlib.Path) -> ast.Module | None:
    try:
        text = path.read_bytes()
        return ast.parse(text) if len(text) <= MAX_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
            if node.level:
                yield from (alias.name for alias in node.names)


class _Reading:
    """Looks through the trees once for each question; they are small."""

    def __init__(self, files: dict[pathlib.Path, ast.Module], own: ast.Module, path: pathlib.Path) -> None:
        self._files, self._own, self._path = files, own, path

    def told(self) -> Source:
        parallel = self._first(lambda node: isinstance(node, ast.Call) and _called(node) in PARALLEL)
        framework = next(
            (FRAMEWORKS[name] for tree in self._files.values() for name in _imported(tree) if name in FRAMEWORKS), None
        )
        if framework is None and self._first(lambda node: isinstance(node, ast.Call) and _is_trainer(node)):
            framework = "a Trainer"
        seeded, know_rank = self._seeds()
        return Source(
            epoch_calls=tuple(self._epoch_calls()),
            epoch_loop_at=self._first(_is_epoch_loop),
            trains_at=self._first(_is_training_call),
            num_loaders=sum(
                isinstance(node, ast.Call) and _called(node).endswith("DataLoader") for node in ast.walk(self._own)
            ),
            framework=framework,
            parallel_at=parallel,
            speaks_of_ranks=any(RANK_WORDS.search(ast.unparse(tree)) for tree in self._files.values()),
            joins_at=self._first(lambda node: isinstance(node, ast.Call) and _called(node) in {"Join", "join_uneven"}),
            counts_once_at=self._first(_counts_once),
            resets_at=self._first(
                lambda node: (
                    isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reset"
                )
            ),
            purpose=self._purpose(),
            seeded_at=None if know_rank else seeded,
            seeds_know_rank=know_rank,
            shared_slots=tuple(self._shared_slots()),
            switches_at=self._switches(),
        )

    def _nodes(self) -> Iterator[tuple[ast.AST, pathlib.Path]]:
        for path, tree in self._files.items():
            yield from ((node, path) for node in ast.walk(tree))

    def _first(self, fits: Callable[[ast.AST], bool]) -> str | None:
        return next((_at(node, path) for node, path in self._nodes() if fits(node)), None)

    def _epoch_calls(self) -> Iterator[EpochCall]:
        for path, tree in self._files.items():
            forwarded = {
                id(inner)
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef) and node.name == "set_epoch"
                for inner in ast.walk(node)
            }
            for node in ast.walk(tree):
                if id(node) in forwarded:
                    continue
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "set_epoch"
                ):
                    names = ast.unparse(node.func.value).split(".")
                    tail: list[str] = []
                    while len(names) > 1 and names[-1] in PARTS:
                        tail.insert(0, names.pop())
                    if names == ["self"]:
                        tail = []
                    argument = node.args[0] if node.args else None
                    yield EpochCall(
                        at=_at(node, path),
                        path=tuple(tail),
                        is_constant=isinstance(argument, ast.Constant),
                        for_evaluation=bool(EVALUATION.search(names[-1])) and "train" not in names[-1].lower(),
                    )

    def _seeds(self) -> tuple[str | None, bool]:
        """Returns where torch is seeded, and whether any statement about seeds mentions the rank."""
        found: list[tuple[bool, str]] = []
        know_rank = False
        handed_on = {id(call) for tree in self._files.values() for call in _calls_with_parameters(tree)}
        for node, path in self._nodes():
            if isinstance(node, ast.Call) and SEEDERS.search(ast.unparse(node.func)):
                is_of_generator = isinstance(node.func, ast.Attribute) and "enerator" in ast.unparse(node.func.value)
                if not is_of_generator and "random.seed" not in ast.unparse(node.func):
                    found.append((id(node) in handed_on, _at(node, path)))
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)):
                text = _without_samplers(node)
                know_rank |= (
                    "seed" in text.lower() and re.search(r"rank|process_index", text, re.IGNORECASE) is not None
                )
        # The place where the number is chosen says more than the function that hands it on.
        return min(found, key=lambda one: one[0], default=(False, None))[1], know_rank

    def _purpose(self) -> str | None:
        words: list[str] = [self._path.stem]
        for node in ast.walk(self._own):
            if isinstance(node, ast.Name):
                words.append(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.arg)):
                words.append(node.name if isinstance(node, ast.FunctionDef) else node.arg)
            elif isinstance(node, ast.keyword):
                words.append(node.arg or "")
        found = next((match for match in map(PURPOSES.search, words) if match), None)
        return None if found is None else found.group().lower()

    def _shared_slots(self) -> Iterator[str]:
        for node, path in self._nodes():
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Attribute) and target.attr in SLOTS:
                    holder = target.value
                    if isinstance(holder, ast.Attribute) and holder.attr == "dataset":
                        yield f"{_at(node, path)} {ast.unparse(target)}"

    def _switches(self) -> str | None:
        for loop, path in self._nodes():
            if isinstance(loop, (ast.For, ast.While)):
                for node in ast.walk(loop):
                    for target in node.targets if isinstance(node, ast.Assign) else ():
                        if isinstance(target, ast.Attribute) and target.attr in SLOTS:
                            return _at(node, path)
        return None


def _returned(tree: ast.Module, function: str) -> tuple[str, ...]:
    """Names in the last tuple that a function returns."""
    found: tuple[str, ...] = ()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Tuple):
                    found = tuple(ast.unparse(part) for part in inner.value.elts)
    return found


def _at(node: ast.AST, path: pathlib.Path) -> str:
    return f"{path.name}:{getattr(node, 'lineno', 0)}"


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_trainer(node: ast.Call) -> bool:
    return _called(node).endswith("Trainer") and any(
        keyword.arg in {"train_dataset", "args"} for keyword in node.keywords
    )


def _is_epoch_loop(node: ast.AST) -> bool:
    if isinstance(node, ast.For):
        return "epoch" in f"{ast.unparse(node.target)} {ast.unparse(node.iter)}".lower()
    return isinstance(node, ast.While) and "epoch" in ast.unparse(node.test).lower()


def _is_training_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    holder = ast.unparse(node.func.value).lower()
    return node.func.attr == "backward" or (node.func.attr == "step" and re.search(r"opt", holder) is not None)


def _calls_with_parameters(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls inside functions that hand on a parameter of the function."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            names = {argument.arg for argument in function.args.args}
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and any(
                    isinstance(one, ast.Name) and one.id in names for one in node.args
                ):
                    yield node


def _counts_once(node: ast.AST) -> bool:
    """`gather_for_metrics(...)`, or a result cut to the length of the data set: `scores[: len(dataset)]`."""
    if isinstance(node, ast.Call):
        return _called(node) == "gather_for_metrics"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.upper is not None:
        return "len(" in ast.unparse(node.slice.upper) and "dataset" in ast.unparse(node.slice.upper)
    return False


def _without_samplers(node: ast.AST) -> str:
    """The text of a statement without the calls that make samplers: their seed is meant to be the same on all ranks."""

    class Leaving(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.AST:
            self.generic_visit(call)
            return ast.Constant(None) if _called(call).endswith("Sampler") else call

    return ast.unparse(ast.fix_missing_locations(Leaving().visit(ast.parse(ast.unparse(node)))))
