"""Reads `[tool.headrace]` of pyproject.toml: what a project wants at every run. The command line wins over it."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

from headrace.cli.options import parse_codes, parse_duration
from headrace.errors import ConfigurationError, nearest

__all__ = ["Settings", "read_settings"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the project's file says; None or empty: nothing."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    num_classes: int | None = None
    contract: pathlib.Path | None = None
    budget: float | None = None
    """Seconds."""
    baseline: pathlib.Path | None = None


def read_settings(folder: pathlib.Path | None = None) -> Settings:
    """Returns the settings in the nearest pyproject.toml, in this folder or above it; paths in it start at the file.

    Args:
        folder: Where to begin. Default: the current folder.

    Raises:
        ConfigurationError: the file is no TOML, has a key that is not known (names the nearest), or a value that
            cannot be meant.
    """
    start = pathlib.Path.cwd() if folder is None else folder.resolve()
    path = next((found for one in (start, *start.parents) if (found := one / "pyproject.toml").is_file()), None)
    return Settings() if path is None else _read(path)


def _read(path: pathlib.Path) -> Settings:
    import tomllib

    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read", why=str(error)) from None
    table = tool.get("headrace", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigurationError(f"{path}: tool.headrace is a {type(table).__name__}, not a table of settings")
    readers = _readers(path.parent)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in readers:
            raise ConfigurationError(
                f"{path}: [tool.headrace] has no key {key!r}{nearest(key, readers)}", do=f"keys: {', '.join(readers)}"
            )
        try:
            values[key.replace("-", "_")] = readers[key](value)
        except Exception as error:
            raise ConfigurationError(f"{path}: [tool.headrace] {key} = {value!r}: {error}") from None
    return Settings(**values)


def _readers(folder: pathlib.Path) -> dict[str, Callable[[Any], Any]]:
    """Key -> what makes the value of it, or says why it cannot."""

    def path(value: Any) -> pathlib.Path:
        if not isinstance(value, str) or not value:
            raise ValueError("expected the name of a file")
        return folder / value

    return {
        "select": _codes,
        "ignore": _codes,
        "num-classes": _number,
        "contract": path,
        "budget": _seconds,
        "baseline": path,
    }


def _codes(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return parse_codes(value)
    if isinstance(value, list) and all(isinstance(code, str) for code in value):
        return tuple(value)
    raise ValueError('expected a list of codes, such as ["HR301", "HR6"]')


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("expected a whole number of at least 1")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError('expected a duration, such as "90s"')
    return parse_duration(value)
