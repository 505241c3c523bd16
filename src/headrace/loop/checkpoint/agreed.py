"""What the loader is to deliver, as its contract says: kept with each checkpoint, and compared when a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.contract import Contract, Field
from headrace.contract.field import shape_text

__all__ = ["contract_differences", "contract_of"]

NEVER_OPEN = ("padding_value", "mask")
"""Left out of a contract, these mean that nothing is padded; a kind, a dtype or a shape that is left out may be any."""


def contract_of(loader: Any) -> dict[str, Any] | None:
    """Returns the digest of a loader's contract, and the form of its fields as text; None: it has none, as torch's have none."""
    contract = getattr(loader, "contract", None)
    if not isinstance(contract, Contract):
        return None
    return {
        "digest": contract.digest(),
        "extra_fields": contract.extra_fields,
        "fields": {field.name: _form(field) for field in contract.fields},
    }


def contract_differences(saved: Mapping[str, Any] | None, here: Mapping[str, Any] | None) -> list[str]:
    """Returns in words each field of which another form was agreed on; what only one side states is passed over.

    Ranges, classes and the like may differ: they say what is refused, and what is delivered looks the same.
    """
    if saved is None or here is None or saved["digest"] == here["digest"]:
        return []
    found = []
    for name in {**saved["fields"], **here["fields"]}:
        before, now = saved["fields"].get(name), here["fields"].get(name)
        if before is None or now is None:
            if (saved if before is None else here)["extra_fields"] != "ignore":
                found.append(f"field {name}: {_words(before)} when saved, {_words(now)} here")
            continue
        keys = [
            key
            for key in {**before, **now}
            if before.get(key) != now.get(key) and (key in NEVER_OPEN or (key in before and key in now))
        ]
        if keys:
            found.append(f"field {name}: {_words(before, keys)} when saved, {_words(now, keys)} here")
    return found


def _form(field: Field) -> dict[str, str]:
    """What a field fixes of what is delivered; as text, because a padding value may be infinite, for which JSON has no word."""
    form = {
        "kind": field.kind,
        "dtype": field.dtype,
        "shape": None if field.shape is None else shape_text(field.shape),
        "padding_value": field.padding_value,
        "mask": field.mask if field.padding_value is not None else None,
    }
    return {key: str(value) for key, value in form.items() if value is not None}


def _words(form: Mapping[str, str] | None, keys: list[str] | None = None) -> str:
    """A form as it is told: dtype and shape always, the rest where it differs."""
    if form is None:
        return "none"
    shown = ["kind"] if "kind" in (keys or ()) else []
    parts = [" ".join(form[key] for key in [*shown, "dtype", "shape"] if key in form) or form.get("kind", "anything")]
    if "padding_value" in (keys or ()):
        parts.append(f"padded with {form['padding_value']}" if "padding_value" in form else "not padded")
    if "mask" in (keys or ()):
        parts.append(f"mask {form['mask']}" if "mask" in form else "no mask")
    return ", ".join(parts)
