"""Contract: what a loader must deliver. Declared or inferred, kept as TOML, checked by sample id, compared as a diff."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from headrace.contract import toml
from headrace.contract.breach import Breach, require_none
from headrace.contract.check import check_sample, check_stage
from headrace.contract.check_batch import check_batch
from headrace.contract.diff import ContractDiff, compare
from headrace.contract.field import Field, Role, is_count, shape_text
from headrace.contract.infer import DEFAULT_SAMPLES, infer
from headrace.errors import ConfigurationError, ContractFileError, SampleId, nearest

__all__ = ["Contract", "Extra", "Incomplete"]

Incomplete = Literal["refuse", "skip", "replace"]
Extra = Literal["refuse", "ignore"]

FORMAT = 1
"""Version of the file format. A key is only ever added; a change of meaning raises it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a loader must deliver.

    Raises:
        ConfigurationError: two parts of the declaration contradict each other, or a word is unknown.

    >>> contract = Contract(fields=(Field(name="label", kind="number", role="target", num_classes=10),))
    >>> print(contract.check_sample({"label": 10}, "3/0001.png")[0].message)
    sample 3/0001.png, field label: expected values in 0..9 (10 classes), found 10
    """

    fields: tuple[Field, ...] = ()
    """What each part of a sample must be, in the order of the sample."""
    num_samples: int | None = None
    """Number of samples in the data set; None = not fixed."""
    may_filter: bool = False
    """True if transforms may drop a sample. Otherwise a dropped one is a breach, however well the rest trains."""
    may_reshape: bool = False
    """True if transforms may change the shape of a field on its way. What is delivered must have its field's shape."""
    incomplete: Incomplete = "refuse"
    """What to do with a sample in which something is missing; a breach says so in `is_incomplete`."""
    extra_fields: Extra = "refuse"
    """What to do with fields of a sample that are not declared."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        for field in self.fields:
            if not isinstance(field, Field):
                raise ConfigurationError(f"fields of a contract are Field records, not {type(field).__name__}")
        _refuse_odd_options(self)
        if self.num_samples is not None:
            object.__setattr__(self, "num_samples", int(self.num_samples))
        _refuse_clashing_fields(self.fields)

    # Made from data, kept as a file.

    @classmethod
    def infer(cls, data: Any, *, max_samples: int = DEFAULT_SAMPLES) -> Contract:
        """Returns what the samples of a data set have in common.

        Args:
            data: A map-style data set, a plan, or a list of samples: anything with a length and an index.
            max_samples: Samples to look at: the first and last two, and one drawn from each of as many equal parts as
                are left. All of them if there are no more.

        Raises:
            ConfigurationError: `data` cannot be indexed.
            SourceError: there is nothing to look at.
            Exception: what the data set itself raised, with a note that names the sample.

        Same data, same contract: the draw is keyed. See `headrace.contract.infer` for what is fixed and what is not.
        Cost: preparing `max_samples` samples.
        """
        return cls(**infer(data, max_samples=max_samples))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Contract:
        """Reads a contract file.

        Raises:
            ContractFileError: it cannot be read as a contract; names the line or the key.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ContractFileError(f"{os.fspath(path)} cannot be read: {error}") from error
        return cls.from_toml(text, origin=os.fspath(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the contract as a commented TOML file; `load` returns an equal contract."""
        Path(path).write_text(self.to_toml(), encoding="utf-8", newline="\n")

    @classmethod
    def from_toml(cls, text: str, *, origin: str = "contract") -> Contract:
        """Reads a contract from text; `origin` names it in messages. Raises as `load` does."""
        options = toml.take(toml.parse(text, origin), toml.CONTRACT_KEYS, origin)
        version = options.pop("format", None)
        if version != FORMAT:
            found = "has no format" if version is None else f"has format {version}"
            raise ContractFileError(f"{origin} {found}; this headrace reads format {FORMAT}", do=f"format = {FORMAT}")
        try:
            fields = []
            for name, table in options.pop("fields", {}).items():
                if not isinstance(table, dict):
                    raise ContractFileError(
                        f"{origin}: fields.{name} must be a table, not {table!r}", do=f"[fields.{name}]"
                    )
                fields.append(Field(name=name, **toml.take(table, toml.FIELD_KEYS, f"{origin}, field {name}")))
            return cls(fields=tuple(fields), **options)
        except ConfigurationError as error:
            raise ContractFileError(f"{origin}: {error.what}", why=error.why, do=error.do) from error

    def to_toml(self) -> str:
        """Returns the contract as commented TOML; the same text for the same contract."""
        return toml.HEADER + self._body()

    def _body(self) -> str:
        options = {"format": FORMAT, **{key: value for key, value in self._options().items() if value is not None}}
        return toml.write(options, {field.name: _stated(field) for field in self.fields})

    def _options(self) -> dict[str, Any]:
        return {key.name: getattr(self, key.name) for key in dataclasses.fields(self) if key.name != "fields"}

    def digest(self) -> str:
        """Returns 32 hex digits that are the same for equal contracts, on every machine and in every version of Python."""
        return hashlib.blake2b(self._body().encode(), digest_size=16, person=b"headrace-contrac").hexdigest()

    def diff(self, other: Contract) -> ContractDiff:
        """Returns what changes from this contract to the other."""
        settings = compare(
            self._options(), other._options(), spell=lambda value: "not fixed" if value is None else str(value)
        )
        mine, theirs = ({field.name: field for field in contract.fields} for contract in (self, other))
        return ContractDiff(settings.changes + compare(mine, theirs, spell=Field.describe).changes)

    # Looking at it.

    def field(self, name: str) -> Field:
        """Returns the field of that name; KeyError with the nearest known name."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"no field {name!r} in this contract{nearest(name, [field.name for field in self.fields])}")

    def names(self, role: Role) -> tuple[str, ...]:
        """Returns the names of the fields with that role, in order."""
        return tuple(field.name for field in self.fields if field.role == role)

    def __str__(self) -> str:
        size = "any number of" if self.num_samples is None else f"{self.num_samples:,}"
        return "\n".join([f"{size} samples", *(f"  {field}" for field in self.fields)])

    # Holding data against it.

    def check_sample(self, sample: Any, sample_id: SampleId) -> list[Breach]:
        """Returns what is not as agreed in one sample; an empty list for a sound one. The sample is not changed."""
        allow_extra = self.extra_fields == "ignore"
        return check_sample(self.fields, sample, sample_id, allow_extra=allow_extra, allow_none=self.may_filter)

    def check_batch(self, batch: Any, sample_ids: Sequence[SampleId]) -> list[Breach]:
        """Returns what is not as agreed in one batch; wrong values are traced back to their samples.

        Args:
            batch: What collate returned, with the structure of a sample.
            sample_ids: (B,) identities of the rows.
        """
        return check_batch(self.fields, batch, sample_ids)

    def check_stage(self, before: Any, after: Any, sample_id: SampleId, *, stage: str) -> list[Breach]:
        """Returns what a stage did without being allowed to: dropped the sample, or changed the shape of a field."""
        return check_stage(before, after, sample_id, stage, may_filter=self.may_filter, may_reshape=self.may_reshape)

    def check_size(self, num_samples: int) -> list[Breach]:
        """Returns a breach if the data set has another number of samples than agreed; fewer is fine if `may_filter`."""
        agreed = self.num_samples
        if agreed is None or num_samples == agreed or (self.may_filter and num_samples < agreed):
            return []
        expected = f"{agreed:,} samples"
        return [Breach(sample_id=None, field=None, expected=expected, found=f"{num_samples:,}", subject="the data set")]

    def require_sample(self, sample: Any, sample_id: SampleId) -> None:
        """Raises ContractViolation, which names sample, field and both values, unless the sample is sound."""
        require_none(self.check_sample(sample, sample_id))

    def require_batch(self, batch: Any, sample_ids: Sequence[SampleId]) -> None:
        """Raises ContractViolation, which names sample, field and both values, unless the batch is sound."""
        require_none(self.check_batch(batch, sample_ids))


def _stated(field: Field) -> dict[str, Any]:
    """Returns what a field fixes beyond the defaults."""
    values = {
        key.name: (getattr(field, key.name), key.default) for key in dataclasses.fields(field) if key.name != "name"
    }
    return {name: value for name, (value, default) in values.items() if value != default}


def _refuse_odd_options(contract: Contract) -> None:
    """Raises if a setting is of no known kind."""
    if contract.num_samples is not None and not is_count(contract.num_samples):
        raise ConfigurationError(f"num_samples is a count, not {contract.num_samples!r}")
    for key in ("may_filter", "may_reshape"):
        if not isinstance(getattr(contract, key), bool):
            raise ConfigurationError(f"{key} is True or False, not {getattr(contract, key)!r}")
    for key, value, known in (
        ("incomplete", contract.incomplete, get_args(Incomplete)),
        ("extra_fields", contract.extra_fields, get_args(Extra)),
    ):
        if value not in known:
            raise ConfigurationError(f"{key} is one of {', '.join(known)}, not {value!r}{nearest(str(value), known)}")


def _refuse_clashing_fields(fields: Sequence[Field]) -> None:
    """Raises if two fields have one name, or do not agree on the mask that they share."""
    seen: set[str] = set()
    owners: dict[str, Field] = {}
    for field in fields:
        if field.name in seen:
            raise ConfigurationError(f"two fields are named {field.name!r}", do="give each field its own name")
        seen.add(field.name)
        if field.padding_value is None or field.mask is None:
            continue
        if field.mask == field.name:
            raise ConfigurationError(f"field {field.name} cannot be its own mask")
        mask = next((other for other in fields if other.name == field.mask), None)
        if mask is not None and mask.shape is not None and mask.shape != field.variable_dims:
            raise ConfigurationError(
                f"field {mask.name}, the mask of {field.name}, has shape {shape_text(mask.shape)} and should have "
                f"{shape_text(field.variable_dims)}: the dims that are padded"
            )
        owner = owners.setdefault(field.mask, field)
        if owner.variable_dims != field.variable_dims:
            raise ConfigurationError(
                f"fields {owner.name} and {field.name} share mask {field.mask}, but not the dims that are padded: "
                f"{shape_text(owner.variable_dims)} and {shape_text(field.variable_dims)}",
                do="a mask of its own for each, or the same named dims",
            )
