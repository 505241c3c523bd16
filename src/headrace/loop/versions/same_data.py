"""Whether a run goes on with the data that it began with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigurationError
from headrace.loop.versions.version import DataVersion

__all__ = ["as_plain", "differences"]

SHORT = 12
"""Digits of a digest that people compare."""


def as_plain(data: DataVersion | Mapping[str, Any]) -> dict[str, Any]:
    """Returns versions, one or several by name, or facts of one's own, as plain values.

    Raises:
        ConfigurationError: a value is no plain one.
    """
    import msgspec

    try:
        return dict(msgspec.json.decode(msgspec.json.encode(data)))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"data={type(data).__name__} cannot be kept in a checkpoint: {error}",
            do='data=headrace.data_version("data/train")    # or plain values by name',
        ) from error


def differences(saved: Mapping[str, Any], here: Mapping[str, Any], name: str = "data") -> list[str]:
    """Returns in words each version, or fact, of the data that is another one here; what only one side knows is passed over."""
    if "kind" in saved and "kind" in here:
        return _differences_of_versions(saved, here, name)
    found: list[str] = []
    for key in saved.keys() & here.keys():
        if isinstance(saved[key], Mapping) and isinstance(here[key], Mapping):
            found += differences(saved[key], here[key], f"{name} {key}")
        elif saved[key] != here[key]:
            found.append(f"{name} {key}: {saved[key]} when saved, {here[key]} here")
    return sorted(found)


def _differences_of_versions(saved: Mapping[str, Any], here: Mapping[str, Any], name: str) -> list[str]:
    """By what the tool states, if it is the same tool; and by the fingerprint, which also sees what no tool was told."""
    keys = ["digest"] if saved["kind"] == here["kind"] else []
    keys += ["fingerprint"] if saved.get("has_content") == here.get("has_content") else []
    for key in keys:
        before, now = saved.get(key), here.get(key)
        if None not in {before, now} and before != now:
            tools = (saved["kind"], here["kind"]) if key == "digest" and saved["kind"] != "none" else ("files", "files")
            return [f"{name}: {tools[0]} {_short(before)} when saved, {tools[1]} {_short(now)} here"]
    return []


def _short(digest: Any) -> str:
    return str(digest).removeprefix("sha256:")[:SHORT] + ".."
