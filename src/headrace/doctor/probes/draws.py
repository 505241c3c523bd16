"""Finds random steps and seeding in the code that ran while a sample was read.

Which functions ran is observed; what they draw is read in their source. Nothing is guessed from names of fields.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import pathlib
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

from headrace.doctor.stacks import is_user_code

__all__ = ["Draws", "Seeding", "draws_in", "functions_run", "heard_seeding"]

_TORCH_DRAWS = frozenset({
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "normal", "multinomial",
})  # fmt: skip
_IN_PLACE_DRAWS = frozenset({
    "uniform_", "normal_", "bernoulli_", "random_", "exponential_", "cauchy_", "geometric_", "log_normal_",
})  # fmt: skip
_DRAWS = frozenset({
    "random", "uniform", "normal", "integers", "choice", "choices", "randint", "randrange", "rand", "randn", "sample",
    "standard_normal", "permutation", "permuted", "shuffle", "gauss", "normalvariate", "betavariate", "random_sample",
    "ranf", "binomial", "poisson", "beta", "exponential", "laplace", "triangular", "lognormal", "getrandbits",
})  # fmt: skip
_HOLDERS = ("rng", "random", "generator", "rand", "rnd", "prng", "gen")
"""Last word of what a draw is called on, where it is neither a module nor known."""
_MAKERS = frozenset({"default_rng", "RandomState", "Random", "Generator", "manual_seed", "seed", "PCG64"})
_LIBRARIES = ("torchvision", "albumentations", "kornia", "monai", "imgaug", "audiomentations", "torch_audiomentations")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Random steps by where they stand."""

    places: tuple[str, ...]
    """`file.py:12 random.random()`, or the class of a library's random transform."""
    constant_makers: tuple[str, ...]
    """`file.py:9 np.random.default_rng(0)`: generators made, or seeded, with a value that no sample changes, and then
    drawn from in the same function."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seeding:
    """One call that seeds a global generator."""

    call: str
    """`numpy.random.seed(0)`."""
    at: str
    """`file.py:9`: the user's line."""


@contextlib.contextmanager
def functions_run(into: set[types.CodeType]) -> Iterator[None]:
    """Collects the code of the functions that this thread runs: the user's own, and known random transforms."""

    def hear(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            into.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextlib.contextmanager
def heard_seeding(into: list[Seeding]) -> Iterator[None]:
    """Hears calls that seed the global generators while it is open; they seed as before."""
    import random

    owners: list[tuple[Any, str, str]] = [(random, "seed", "random.seed")]
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    torch: Any = sys.modules.get("torch")
    if numpy_random is not None:
        owners.append((numpy_random, "seed", "numpy.random.seed"))
    if torch is not None and hasattr(torch, "manual_seed"):
        owners.append((torch, "manual_seed", "torch.manual_seed"))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in owners]

    def spy(function: Any, shown: str) -> Any:
        @functools.wraps(function)
        def seed(*arguments: Any, **options: Any) -> Any:
            frame: types.FrameType | None = sys._getframe(1)
            while frame is not None and not is_user_code(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None and (arguments or options):
                value = repr(next(iter([*arguments, *options.values()])))[:40]
                at = f"{pathlib.Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                into.append(Seeding(call=f"{shown}({value})", at=at))
            return function(*arguments, **options)

        return seed

    try:
        for owner, name, shown in owners:
            setattr(owner, name, spy(getattr(owner, name), shown))
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def draws_in(codes: Iterable[types.CodeType]) -> Draws:
    """Returns what the functions draw; those of foreign libraries count if their class says that it is random."""
    places: dict[str, None] = {}
    makers: dict[str, None] = {}
    for code in sorted(codes, key=lambda one: (one.co_filename, one.co_firstlineno)):
        if is_user_code(code.co_filename):
            found, made = _draws_of(code)
            places |= dict.fromkeys(found)
            makers |= dict.fromkeys(made)
        elif f"{code.co_filename}".find("site-packages") >= 0 and _is_random_transform(code):
            places[code.co_qualname.partition(".")[0]] = None
    return Draws(places=tuple(places), constant_makers=tuple(makers))


def _is_random_transform(code: types.CodeType) -> bool:
    owner = code.co_qualname.partition(".")[0]
    of_library = any(f"site-packages/{name}/" in code.co_filename for name in _LIBRARIES)
    return of_library and owner.startswith(("Random", "ColorJitter", "AutoAugment", "TrivialAugment", "AugMix"))


def _draws_of(code: types.CodeType) -> tuple[list[str], list[str]]:
    module = _module(code.co_filename)
    node = None if module is None else module.functions.get((code.co_name, code.co_firstlineno))
    if module is None or node is None:
        return [], []
    file, draws, makers = pathlib.Path(code.co_filename).name, list[str](), list[str]()
    inner = [child for part in _body(node) for child in _own_nodes(part)]
    for call in (child for child in inner if isinstance(child, ast.Call)):
        name = module.dotted(call.func)
        if _is_draw(name):
            draws.append(f"{file}:{call.lineno} {_shown(call.func)}()")
        elif name.rpartition(".")[2] in _MAKERS and call.args and all(map(_is_constant, call.args)):
            makers.append(f"{file}:{call.lineno} {_shown(call.func)}({', '.join(map(ast.unparse, call.args))})")
    # A fixed order of pixels or words, drawn anew from the same seed, is a way to define a task, and no augmentation.
    varies = any(not draw.endswith((".permutation()", ".permuted()", ".shuffle()")) for draw in draws)
    return draws, makers if varies else []


def _body(node: ast.AST) -> list[ast.AST]:
    body = getattr(node, "body", [])
    return list(body) if isinstance(body, list) else [body]


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions inside it: they run, or not, on their own."""
    yield node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
        return
    for child in ast.iter_child_nodes(node):
        yield from _own_nodes(child)


def _is_draw(name: str) -> bool:
    holder, _, function = name.rpartition(".")
    if function in _IN_PLACE_DRAWS:
        return True
    if holder == "torch":
        return function in _TORCH_DRAWS
    if holder in {"random", "numpy.random"}:
        return function in _DRAWS
    last = holder.rpartition(".")[2].lower().strip("_")
    return function in _DRAWS and (last in _HOLDERS or last.endswith(("_rng", "_random", "_generator", "random_state")))


def _is_constant(node: ast.expr) -> bool:
    """True for what no sample changes: literals, and attributes of self."""
    if isinstance(node, ast.Constant):
        return node.value is not None
    if isinstance(node, ast.Attribute):
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
        return is_own and not any(word in node.attr for word in ("epoch", "step", "iter", "count", "call"))
    if isinstance(node, ast.BinOp):
        return _is_constant(node.left) and _is_constant(node.right)
    return isinstance(node, ast.Name) and node.id.isupper()


def _shown(node: ast.expr) -> str:
    return ast.unparse(node)


class _Module:
    """The source of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[tuple[str, int], ast.AST] = {}
        self._names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # Code begins at its first decorator.
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self.functions[node.name, first] = node
            elif isinstance(node, ast.Lambda):
                self.functions["<lambda>", node.lineno] = node
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self._names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def dotted(self, node: ast.expr) -> str:
        """`np.random.rand` as `numpy.random.rand`; what a call is called on, where it is itself a call, by its function."""
        parts: list[str] = []
        while True:
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            elif isinstance(node, ast.Call):
                node = node.func
            else:
                break
        first = node.id if isinstance(node, ast.Name) else "?"
        return ".".join([self._names.get(first, first), *reversed(parts)])


@functools.cache
def _module(filename: str) -> _Module | None:
    try:
        return _Module(ast.parse(pathlib.Path(filename).read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return None
