"""Contracts as TOML: a small writer (the standard library only reads), and a reader that refuses what it does not know."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from headrace.contract.field import KINDS, ROLES
from headrace.errors import ContractFileError, nearest

__all__ = ["CONTRACT_KEYS", "FIELD_KEYS", "HEADER", "parse", "take", "write"]

HEADER = f"""\
# What every sample of a data set must be. Written by headrace; edit it freely, and review its changes like code.
# A key that is left out is not fixed, and so not checked.
#
# num_samples    number of samples in the data set
# may_filter     true: a transform may drop a sample
# may_reshape    true: a transform may change the shape of a field on its way; what is delivered has the shape below
# incomplete     what to do with a sample in which something is missing: refuse, skip, replace
# extra_fields   what to do with fields that are not listed here: refuse, ignore
#
# One table per field, named by its keys or places joined by dots; "sample" for a sample without parts:
# kind           {", ".join(KINDS)}
# dtype          uint8, int64, float32, ...; int or float for Python numbers
# shape          a number is a fixed size, a name differs between samples; one name is one size within a sample
# axes           what the axes are, one letter each: C channel, H height, W width, T time or tokens
# minimum, maximum, allow_nan, allow_inf    what numbers are allowed, bounds included
# role           {", ".join(ROLES)}
# num_classes, ignore_index    for targets: from 0 to num_classes-1, or ignore_index
# padding_value, mask          what fills short samples up in a batch, and the field that is false there
# required       false: the field may be missing

"""

_Key = tuple[str, Callable[[Any], bool]]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TEXT: _Key = ("a string", lambda value: isinstance(value, str))
_FLAG: _Key = ("true or false", lambda value: isinstance(value, bool))
_WHOLE: _Key = ("a whole number", _is_int)
_NUMBER: _Key = ("a number", lambda value: _is_int(value) or isinstance(value, float))
_DIMS: _Key = (
    "a list of sizes and names",
    lambda value: isinstance(value, list) and all(_is_int(dim) or isinstance(dim, str) for dim in value),
)

CONTRACT_KEYS: dict[str, _Key] = {
    "format": _WHOLE,
    "num_samples": _WHOLE,
    "may_filter": _FLAG,
    "may_reshape": _FLAG,
    "incomplete": _TEXT,
    "extra_fields": _TEXT,
    "fields": ("tables, one per field", lambda value: isinstance(value, dict)),
}
FIELD_KEYS: dict[str, _Key] = {
    "kind": _TEXT,
    "dtype": _TEXT,
    "shape": _DIMS,
    "axes": _TEXT,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "allow_nan": _FLAG,
    "allow_inf": _FLAG,
    "role": _TEXT,
    "num_classes": _WHOLE,
    "ignore_index": _WHOLE,
    "padding_value": _NUMBER,
    "mask": _TEXT,
    "required": _FLAG,
}


def parse(text: str, origin: str) -> dict[str, Any]:
    """Reads TOML.

    Args:
        text: The document.
        origin: Name of the file, for messages.

    Raises:
        ContractFileError: not TOML; names the line and shows it.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        rows = text.splitlines()
        number = int(place.group(1)) if place else len(rows)
        shown = f"line {number}: {rows[number - 1].strip()}" if 0 < number <= len(rows) else None
        raise ContractFileError(f"{origin} is not TOML: {error}", why=shown) from error


def take(table: Mapping[str, Any], known: Mapping[str, _Key], place: str) -> dict[str, Any]:
    """Returns the entries of a table after checking that each key is known and of its type.

    Raises:
        ContractFileError: names the key, and the nearest known one or both types.
    """
    for key, value in table.items():
        if key not in known:
            raise ContractFileError(
                f"{place}: unknown key {key!r}{nearest(key, known)}", do=f"known keys: {', '.join(known)}"
            )
        expected, fits = known[key]
        if not fits(value):
            raise ContractFileError(f"{place}: {key} must be {expected}, not {_literal(value)}")
    return dict(table)


def write(options: Mapping[str, Any], fields: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the document without the header; the same text for the same contract, always."""
    lines = [f"{key} = {_literal(value)}" for key, value in options.items()]
    for name, table in fields.items():
        lines += ["", f"[fields.{_key(name)}]", *(f"{key} = {_literal(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _literal(value: Any) -> str:
    """Returns a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        return "a table"  # only in messages: what is written holds none
    return str(value)  # Python's and TOML's int and float, infinity included, are spelled alike


def _string(text: str) -> str:
    """Returns a basic string. Control characters must be escaped, and so must what would end the string."""

    def escape(found: re.Match[str]) -> str:
        letter = found.group()
        return f"\\{letter}" if letter in '"\\' else f"\\u{ord(letter):04X}"

    return '"' + re.sub(r'[\x00-\x1f\x7f"\\]', escape, text) + '"'
