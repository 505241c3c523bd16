"""Field: what one named part of every sample must be.

Axes: `C` channel, `H` height, `W` width, `T` time or tokens, `B` batch (only in front of a batch, never in a field).
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable
from typing import Any, Literal, get_args

from headrace.errors import ConfigurationError, nearest

__all__ = ["DTYPES", "KINDS", "ROLES", "Dim", "Field", "Kind", "Role", "is_count", "shape_text"]

Dim = int | str
"""Size of one axis: an integer is fixed; a name may differ between samples, and is one size within a sample."""
Kind = Literal["tensor", "array", "number", "boolean", "string", "bytes", "sequence", "object"]
Role = Literal["input", "target", "mask", "id", "other"]

KINDS: tuple[str, ...] = get_args(Kind)
ROLES: tuple[str, ...] = get_args(Role)
DTYPES: tuple[str, ...] = (
    *("bool", "int", "float", "str"),  # of Python values, or of the entries of a list
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What one named part of every sample must be. None = not fixed, so not checked.

    Raises:
        ConfigurationError: the declaration contradicts itself, or a word is unknown.

    >>> print(Field(name="image", kind="tensor", dtype="uint8", shape=(3, "H", "W"), axes="CHW", minimum=0, maximum=255))
    image: tensor uint8 (3, H, W) CHW 0..255
    """

    name: str
    """`image`, `boxes.xy`, `0`: keys, names and places joined by dots; `sample` for a sample without parts."""
    kind: Kind | None = None
    """tensor (torch), array (numpy), number, boolean, string, bytes, sequence (a list of numbers), object (others)."""
    dtype: str | None = None
    """`uint8`, `float32`, ...; `int` or `float` for Python numbers."""
    shape: tuple[Dim, ...] | None = None
    """One dim per axis, e.g. (3, "H", "W"); () for numbers. Fields that share a dim's name share its size."""
    axes: str | None = None
    """What the axes are, one letter each, e.g. `CHW`; lets a check say that axes were swapped."""
    minimum: float | None = None
    """Smallest value allowed."""
    maximum: float | None = None
    """Largest value allowed."""
    allow_nan: bool = False
    """True if values may be NaN."""
    allow_inf: bool = False
    """True if values may be infinite."""
    role: Role = "input"
    """What the field is for: input, target, mask (True = real), id, other."""
    num_classes: int | None = None
    """Targets only: values lie in 0..num_classes-1."""
    ignore_index: int | None = None
    """Targets only: this value means "no target here" and is allowed outside the range (torch's losses use -100)."""
    padding_value: float | None = None
    """What fills a sample up to the longest of its batch. Take one that cannot be taken for data: a token id of its own."""
    mask: str | None = None
    """Name of the field that tells real values (True) from padding."""
    required: bool = True
    """False if the field may be missing or None."""

    def __post_init__(self) -> None:
        # Whole numbers become int, so that 0 and 0.0, which are equal, are also written and hashed alike.
        for name in ("minimum", "maximum", "padding_value", "num_classes", "ignore_index"):
            object.__setattr__(self, name, _plain_number(self.name, name, getattr(self, name)))
        if self.shape is not None:
            object.__setattr__(self, "shape", _plain_shape(self.name, self.shape))
        _refuse_odd_words(self)
        _refuse_contradictions(self)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Smallest and largest value allowed, the number of classes taken into account; None = no bound."""
        if self.num_classes is None:
            return self.minimum, self.maximum
        last = self.num_classes - 1
        low = 0 if self.minimum is None else max(self.minimum, 0)
        return low, last if self.maximum is None else min(self.maximum, last)

    @property
    def variable_dims(self) -> tuple[str, ...]:
        """Names of the dims that may differ between samples, in the order of the axes."""
        return tuple(dim for dim in self.shape or () if isinstance(dim, str))

    def describe(self) -> str:
        """Returns everything that the field fixes, on one line."""
        low, high = ("" if bound is None else str(bound) for bound in (self.minimum, self.maximum))
        parts = [
            self.kind or "anything",
            self.dtype,
            None if self.shape is None else shape_text(self.shape),
            self.axes,
            f"{low}..{high}" if low or high else None,
        ]
        rest = [
            None if self.role == "input" else self.role,
            None if self.num_classes is None else f"{self.num_classes} classes",
            None if self.ignore_index is None else f"{self.ignore_index} is ignored",
            None if self.padding_value is None else f"padded with {self.padding_value}",
            None if self.mask is None else f"mask {self.mask}",
            "NaN allowed" if self.allow_nan else None,
            "infinity allowed" if self.allow_inf else None,
            None if self.required else "optional",
        ]
        return ", ".join([" ".join(filter(None, parts)), *filter(None, rest)])

    def __str__(self) -> str:
        return f"{self.name}: {self.describe()}"


def shape_text(shape: Iterable[Dim]) -> str:
    """Returns a shape as a tuple is written, names without quotes: `(3, H, W)`, `(T,)`, `()`."""
    dims = [str(dim) for dim in shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def is_count(value: Any) -> bool:
    """True for 0, 1, 2, ... of any integer type; False for booleans."""
    return not isinstance(value, bool) and isinstance(value, numbers.Integral) and int(value) >= 0


def _plain_number(field: str, key: str, value: Any) -> float | None:
    """Returns a declared number as a Python int if it is whole, else as float."""
    if value is None:
        return None
    if not isinstance(value, numbers.Real):
        raise ConfigurationError(f"field {field}: {key} is a number, not {value!r}")
    if math.isnan(value):
        raise ConfigurationError(
            f"field {field}: {key} cannot be NaN",
            why="NaN equals nothing, not even itself, so it bounds and marks nothing",
        )
    if math.isinf(value) and key != "padding_value":
        raise ConfigurationError(f"field {field}: {key} cannot be infinite", do=f"leave {key} out for no bound")
    as_float = float(value)
    if isinstance(value, numbers.Integral):
        number: float = int(value)
    else:
        number = int(as_float) if math.isfinite(as_float) and as_float.is_integer() else as_float
    # Beyond 2**64 no integer dtype needs the digits, and a file holds no longer integer.
    number = number if abs(number) <= 2**64 else as_float
    if key in {"num_classes", "ignore_index"} and not isinstance(number, int):
        raise ConfigurationError(f"field {field}: {key} is a whole number, not {value!r}")
    return number


def _plain_shape(field: str, shape: Any) -> tuple[Dim, ...]:
    """Returns a declared shape as a tuple of int and str."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Iterable):
        raise ConfigurationError(f"field {field}: shape is a tuple such as (3, 'H', 'W'), not {shape!r}")
    dims: list[Dim] = []
    for dim in shape:
        if not is_count(dim) and not (isinstance(dim, str) and dim.isidentifier()):
            raise ConfigurationError(
                f"field {field}: dim {dim!r} of shape is neither a size (0, 1, 2, ...) nor a name",
                do="3 for a fixed size, 'H' for one that differs between samples",
            )
        dims.append(dim if isinstance(dim, str) else int(dim))
    return tuple(dims)


def _refuse_odd_words(field: Field) -> None:
    """Raises if a name or one of the fixed words cannot be right."""
    for key, value in (("name", field.name), ("mask", field.mask)):
        if not isinstance(value, str) and not (key == "mask" and value is None):
            raise ConfigurationError(f"field {field.name}: {key} is a string, not {value!r}")
        if value is not None and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ConfigurationError(f"field {field.name!r}: {key} has half a character (a lone surrogate)")
    for key, value, known in (
        ("kind", field.kind, KINDS),
        ("role", field.role, ROLES),
        ("dtype", field.dtype, DTYPES),
    ):
        if (value is None and key != "role") or value in known:
            continue
        hint = nearest(str(value).removeprefix("torch."), known)
        listed = "" if key == "dtype" else f" (known: {', '.join(known)})"
        raise ConfigurationError(f"field {field.name}: unknown {key} {value!r}{hint}{listed}")
    for key in ("allow_nan", "allow_inf", "required"):
        if not isinstance(getattr(field, key), bool):
            raise ConfigurationError(f"field {field.name}: {key} is True or False, not {getattr(field, key)!r}")


def _refuse_contradictions(field: Field) -> None:
    """Raises if two parts of the declaration cannot both hold."""
    name = field.name
    if field.axes is not None:
        if not isinstance(field.axes, str) or not field.axes.isalpha() or len(set(field.axes)) != len(field.axes):
            raise ConfigurationError(
                f"field {name}: axes is one letter per axis, each once, such as 'CHW', not {field.axes!r}"
            )
        if field.shape is None or len(field.axes) != len(field.shape):
            shown = "no shape" if field.shape is None else f"shape {shape_text(field.shape)}"
            raise ConfigurationError(f"field {name}: axes {field.axes!r} does not fit {shown}: one letter per dim")
    if len(set(field.variable_dims)) != len(field.variable_dims) and field.padding_value is not None:
        raise ConfigurationError(
            f"field {name}: a dim that stands twice in {shape_text(field.shape or ())} cannot be padded"
        )
    if field.num_classes is not None and field.num_classes < 1:
        raise ConfigurationError(f"field {name}: num_classes is at least 1, not {field.num_classes}")
    if field.role != "target" and (field.num_classes is not None or field.ignore_index is not None):
        raise ConfigurationError(f"field {name}: num_classes and ignore_index are for targets", do='role="target"')
    low, high = field.bounds
    if low is not None and high is not None and low > high:
        raise ConfigurationError(f"field {name}: no value is allowed, the range {low:g}..{high:g} is empty")
    if field.padding_value is None:
        return
    if not field.variable_dims:
        shown = "none" if field.shape is None else shape_text(field.shape)
        raise ConfigurationError(
            f"field {name}: padding_value is for a shape with a named dim; the shape is {shown}", do='shape=("T",)'
        )
    if field.mask is None and field.padding_value != field.ignore_index:
        raise ConfigurationError(
            f"field {name}: padding_value without mask",
            why="nobody could tell padding from data",
            do=[
                'mask="mask"    to add a field of that name to each batch, True where values are real',
                "for a target also: ignore_index equal to padding_value",
            ],
        )
