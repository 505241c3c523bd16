"""Loads a TARGET of the command line: `train.py:make_loader`, or `package.module:attribute`."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import os
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from headrace.doctor.stacks import innermost_at
from headrace.doctor.subject.groups import is_group
from headrace.doctor.subject.kinds import ACCEPTED, is_known_loader
from headrace.errors import ConfigurationError, TargetError, nearest

__all__ = ["check", "check_spec", "check_target", "load_attribute", "load_target"]

_FORMS = "train.py:make_loader    (a file), or package.module:attribute"
_LOADER_NAME = re.compile(r"load|data|train|val|test", re.IGNORECASE)
_loaded: set[str] = set()
"""Modules that came from files by this door: a second file of the same name may take the place of the first."""


def load_target(spec: str) -> Any:
    """Returns what a TARGET names: a loader, a data set, or several (see `subject.split_up`).

    A function (or class) that makes it is called for it.

    Args:
        spec: `FILE.py:ATTRIBUTE` or `MODULE:ATTRIBUTE`; the attribute may be dotted. A file is executed as a module
            under its own name, so what stands under `if __name__ == "__main__":` does not run; its folder is put on
            the import path, and the current folder stays.

    Raises:
        TargetError: nothing is found, it raises, it needs arguments, or it is no data. The exception of the user's
            code is its cause.
    """
    attribute = check_spec(spec)[1]
    value = load_attribute(spec)
    if isinstance(value, type) or (callable(value) and not _is_data(value)):
        value, said = _call(value, attribute, spec), f"{attribute}() returned"
    else:
        said = f"{attribute} is"
    _check_is_data(value, said, spec)
    return value


def check_target(value: Any) -> Any:
    """Returns an object of the caller's own if it can be examined.

    Raises:
        TargetError: it is no data.
    """
    _check_is_data(value, "the object is", "of the caller")
    return value


def check(target: Any, *, do: str) -> None:
    """Checks what a command or a caller wants examined: a TARGET in words, or an object, which needs forks.

    Args:
        target: The text or the object.
        do: What to type where processes cannot fork.

    Raises:
        TargetError: the text can name nothing, or the object is no data.
        ConfigurationError: an object, and no forks.
    """
    if isinstance(target, str):
        check_spec(target)
        return
    check_target(target)
    if not hasattr(os, "fork"):
        raise ConfigurationError("an object can only be examined where processes can fork", do=do)


def load_attribute(spec: str, *, again: bool = True) -> Any:
    """Returns what a TARGET names, without calling it; see `load_target`.

    Args:
        spec: As in `load_target`.
        again: False: a file that this process has executed is not executed once more. Its classes would exist twice,
            and objects of the first could not be pickled any more.

    Raises:
        TargetError: nothing is found, or the file raises while it is executed.
    """
    place, attribute = check_spec(spec)
    module = None if again else _loaded_from(pathlib.Path(place))
    if module is None:
        module = _load_file(pathlib.Path(place), spec) if _is_file(place) else _load_module(place, spec)
    return _find_attribute(module, place, attribute, spec)


def check_spec(spec: str) -> tuple[str, str]:
    """Returns the two sides of a TARGET; raises TargetError if it cannot name anything. Executes nothing."""
    place, colon, attribute = spec.rpartition(":")
    if not colon or not place or not attribute:
        path = pathlib.Path(spec.rstrip(":"))
        if path.suffix == ".py" and path.is_file():
            do = [f"{path}:{name}" for name in _names_in_file(path)] or [_FORMS]
            raise TargetError(f"TARGET {spec!r} names a file, but not what in it to examine", do=do)
        raise TargetError(f"TARGET {spec!r} has no ':' between the place and the name of the loader", do=_FORMS)
    if _is_file(place) and not pathlib.Path(place).is_file():
        raise _missing_file(pathlib.Path(place))
    if not all(part.isidentifier() for part in attribute.split(".")):
        raise TargetError(f"TARGET {spec!r}: {attribute!r} is not the name of an attribute", do=_FORMS)
    return place, attribute


def _is_file(place: str) -> bool:
    return place.endswith(".py") or os.sep in place


def _missing_file(path: pathlib.Path) -> TargetError:
    folder = path.parent
    if path.is_dir():
        return TargetError(f"TARGET: {path} is a folder, not a Python file", do=_FORMS)
    if not folder.is_dir():
        return TargetError(
            f"TARGET: there is no folder {folder}, so no file {path}",
            do=f"cd to the right folder; here is {pathlib.Path.cwd()}",
        )
    known = sorted(entry.name for entry in folder.glob("*.py"))
    listed = f"Python files there: {', '.join(known[:10])}" if known else "there is no Python file in that folder"
    return TargetError(f"TARGET: there is no file {path} in {folder.resolve()}{nearest(path.name, known)}", why=listed)


def _load_file(path: pathlib.Path, spec: str) -> ModuleType:
    """Executes a file as a module under its own name."""
    path = path.resolve()
    name = path.stem
    if name in sys.modules and name not in _loaded:
        if getattr(sys.modules[name], "__file__", None) == str(path):
            return sys.modules[name]
        # Taking the place of a library's module would break the library; only pickling by name is lost this way.
        name = f"target_{name}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    if module_spec is None or module_spec.loader is None:
        raise TargetError(f"TARGET: {path} is not a Python file", do=_FORMS)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    _loaded.add(name)
    again = f'cd {path.parent} && python -c "import {path.stem}"'
    with _blaming(f"{path.name} could not be imported", spec, again):
        module_spec.loader.exec_module(module)
    return module


def _loaded_from(path: pathlib.Path) -> ModuleType | None:
    """The module that this door has made of a file; None: it has not."""
    modules = (sys.modules.get(name) for name in _loaded)
    return next((one for one in modules if one and getattr(one, "__file__", None) == str(path.resolve())), None)


def _load_module(name: str, spec: str) -> ModuleType:
    """Imports a module by its dotted name; the current folder is on the path, as for `python -m`."""
    if str(pathlib.Path.cwd()) not in sys.path:
        sys.path.insert(0, str(pathlib.Path.cwd()))
    try:
        with _blaming(f"module {name} could not be imported", spec, f'python -c "import {name}"'):
            return importlib.import_module(name)
    except TargetError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            raise _missing_module(cause.name) from None
        raise


def _missing_module(name: str) -> TargetError:
    parent, _, last = name.rpartition(".")
    folders = list(getattr(sys.modules.get(parent), "__path__", ())) or [str(pathlib.Path.cwd())]
    known = {entry.stem for folder in folders for entry in pathlib.Path(folder).glob("*.py")}
    known |= {entry.parent.name for folder in folders for entry in pathlib.Path(folder).glob("*/__init__.py")}
    known.discard("__init__")
    return TargetError(
        f"TARGET: there is no module {name}{nearest(last, sorted(known))}",
        why=f"looked in {', '.join(folders)} and in the packages of {sys.executable}",
        do=_FORMS,
    )


@contextlib.contextmanager
def _blaming(what: str, spec: str, again: str) -> Iterator[None]:
    """Turns whatever the user's code raises into a TargetError that says which line did, and how to see it `again`."""
    saved, sys.argv = sys.argv, [spec.rpartition(":")[0]]  # a script that reads arguments must not see ours
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        place = innermost_at(error)
        if isinstance(error, SyntaxError):
            place = f"{error.filename}:{error.lineno}"
        text = str(error).partition("\n")[0]
        raise TargetError(
            f"TARGET {spec}: {what}: {type(error).__name__}{f': {text}' if text else ''}",
            why=f"raised at {place}" if place else None,
            do=_advice(error, again),
        ) from error
    finally:
        sys.argv = saved


def _advice(error: BaseException, again: str) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{sys.executable} -m pip install ...    if {error.name} is missing from the Python that runs headrace"
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "headrace diagnose package.module:attribute    a file inside a package is named by its module"
    if isinstance(error, SystemExit):
        return 'put what reads arguments or trains under  if __name__ == "__main__":  so that the file can be imported'
    return f"{again}    shows the same without headrace"


def _find_attribute(module: ModuleType, place: str, attribute: str, spec: str) -> Any:
    value: Any = module
    for name in attribute.split("."):
        if not hasattr(value, name):
            known = [key for key in dir(value) if not key.startswith("_")]
            candidates = _candidates(module) if value is module else []
            raise TargetError(
                f"TARGET {spec}: {place} has no {name}{nearest(name, known)}",
                do=[f"{place}:{candidate}" for candidate in candidates[:5]],
            )
        value = getattr(value, name)
    return value


def _candidates(module: ModuleType) -> list[str]:
    """Names in a module that look like loaders or like functions that make one."""
    own = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    return [name for name, value in own.items() if _is_data(value) or (callable(value) and _LOADER_NAME.search(name))]


def _names_in_file(path: pathlib.Path) -> list[str]:
    """As `_candidates`, from the text alone."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError, OSError):
        return []
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    names += [
        name.id for node in body if isinstance(node, ast.Assign) for name in node.targets if isinstance(name, ast.Name)
    ]
    names = [name for name in names if _LOADER_NAME.search(name)]
    names += [node.name for node in body if isinstance(node, ast.ClassDef) and _defines_samples(node)]
    return [name for name in names if not name.startswith("_")][:5]


def _defines_samples(node: ast.ClassDef) -> bool:
    return any(isinstance(part, ast.FunctionDef) and part.name in {"__getitem__", "__iter__"} for part in node.body)


def _call(make: Callable[..., Any], attribute: str, spec: str) -> Any:
    """Calls a function without arguments, or says which it needs."""
    with contextlib.suppress(ValueError, TypeError):  # built-in callables may have no signature
        required = [
            parameter.name
            for parameter in inspect.signature(make).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        ]
        if required:
            raise TargetError(
                f"TARGET {spec}: {attribute} needs arguments ({', '.join(required)}); headrace calls it without any",
                do=f"def loader_to_examine(): return {attribute}({', '.join(f'{name}=...' for name in required)})",
            )
    module = (
        pathlib.Path(spec.rpartition(":")[0]).stem if _is_file(spec.rpartition(":")[0]) else spec.rpartition(":")[0]
    )
    with _blaming(f"{attribute}() failed", spec, f'python -c "import {module}; {module}.{attribute}()"'):
        return make()


def _is_data(value: Any) -> bool:
    """True for what has samples: indexable, or iterable more than once."""
    kind = type(value)
    if isinstance(value, (str, bytes, bytearray, type)):
        return False
    if hasattr(kind, "__getitem__"):
        return True
    return hasattr(kind, "__iter__") and not hasattr(kind, "__next__")


def _check_is_data(value: Any, said: str, spec: str) -> None:
    accepted = f"{ACCEPTED}; several as (train, val)"
    if value is None:
        raise TargetError(
            f"TARGET {spec}: {said} None", why="probably a return statement is missing", do=f"return {accepted}"
        )
    if is_group(value) or is_known_loader(value):
        return
    if isinstance(value, Mapping) or not _is_data(value):
        if inspect.iscoroutine(value):
            value.close()  # or Python warns that it was never awaited
        why = "an iterator can be walked through once only" if hasattr(type(value), "__next__") else None
        raise TargetError(
            f"TARGET {spec}: {said} something of type {_type_name(value)}", why=why, do=f"return {accepted}"
        )


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
