"""Splits a TARGET that is several loaders, such as (train, val), into single ones with names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.doctor.subject.iterables import Reiterable
from headrace.doctor.subject.kinds import ACCEPTED, find_kind, is_known_loader
from headrace.doctor.subject.looking import CLASSES, attribute, class_name, descends_from
from headrace.errors import TargetError

__all__ = ["is_group", "loaders_in", "split_up"]

ORDER = ("train", "val", "test")
"""What the loaders of a tuple are by custom."""
_SYNONYMS = {"training": "train", "validation": "val", "valid": "val", "dev": "val", "eval": "val", "testing": "test"}

_MOST = 64
"""Loaders in one target; what has more parts is a data set of samples."""
_LIGHTNING = ("lightning", "pytorch_lightning")

_Named = dict[str, Any]


def is_group(target: Any) -> bool:
    """True for what `split_up` makes several loaders of, or one loader beside other things. Runs no user's code."""
    return _is_data_module(target) or _is_trainer(target) or bool(loaders_in(target))


def split_up(target: Any) -> dict[str, Any]:
    """Returns the loaders of a TARGET by name: `{"": loader}` for a single one, else `train`, `val`, `test` in this order.

    A tuple or list is taken for (train, val, test); a dict names its loaders itself; what is no loader beside them
    is left out. A Lightning data module is prepared and set up for fitting, and a `Trainer` of Hugging Face
    transformers asked for its loaders: that runs the user's code.

    Raises:
        TargetError: there is no loader in it, or the user's code failed; then its exception is the cause.
    """
    if _is_data_module(target):
        named = _of_data_module(target)
    elif _is_trainer(target):
        named = _of_trainer(target)
    else:
        named = loaders_in(target)
        if not named:
            _refuse_nonsense(target)
            return {"": target}
        if len(named) == 1 and not isinstance(target, Mapping):
            return {"": next(iter(named.values()))}
    if not named:
        raise TargetError(f"the {class_name(target)} has no loader to examine: all of its loaders are None")
    order = {name: place for place, name in enumerate(ORDER)}
    return dict(sorted(named.items(), key=lambda item: order.get(item[0].partition(" ")[0], len(ORDER))))


def _refuse_nonsense(target: Any) -> None:
    if isinstance(target, Mapping) or find_kind(target) is None:
        what = (
            f"of {', '.join(map(repr, list(target)[:6]))}, none of which is a loader"
            if isinstance(target, Mapping)
            else ""
        )
        raise TargetError(
            f"there is nothing to examine in a {class_name(target)} {what}".rstrip(),
            why=_half_way(target),
            do=f"return {ACCEPTED}; several as (train, val)",
        )


def _half_way(target: Any) -> str | None:
    """What is missing in a class that has half of what a data set needs."""
    kind = type(target)
    if hasattr(kind, "__getitem__") and not hasattr(kind, "__len__"):
        return f"{kind.__name__} has __getitem__, but no __len__: how many samples there are is not known"
    return None


def loaders_in(target: Any) -> _Named:
    """Returns the loaders in a tuple, list or dict by name; empty if it is one data set, or none."""
    if isinstance(target, (Mapping, list, tuple)) and len(target) > _MOST:
        return {}
    if isinstance(target, Mapping):
        named = {str(name): part for name, part in target.items() if _is_loader(part)}
        return {_SYNONYMS.get(name.lower(), name): part for name, part in named.items()}
    if isinstance(target, tuple) and hasattr(target, "_fields"):
        return loaders_in(dict(zip(target._fields, target, strict=True)))
    if isinstance(target, (list, tuple)):
        # In a list, an object that can be walked is rather a sample: a graph, a sentence.
        is_loader = _is_loader if isinstance(target, tuple) else is_known_loader
        # (train, None, test) has no val; (train, 10) has a loader and a number.
        places = [part for part in target if part is None or is_loader(part)]
        if isinstance(target, list) and len(places) < len(target):
            return {}
        names = [*ORDER, *(f"loader {i + 1}" for i in range(len(ORDER), len(places)))]
        return {name: part for name, part in zip(names, places, strict=False) if part is not None}
    return {}


def _is_loader(value: Any) -> bool:
    """True for a loader or data set, and for an object of a user's own class that can only be walked."""
    if is_known_loader(value):
        return True
    module = type(value).__module__.partition(".")[0]
    is_plain = module in {"builtins", "collections", "numpy", "torch", "array", "pandas", "PIL", "jax", "jaxlib"}
    return not is_plain and not hasattr(type(value), "__getitem__") and Reiterable.holds(value)


# Lightning.


def _is_data_module(target: Any) -> bool:
    return any(descends_from(target, package, "LightningDataModule") for package in _LIGHTNING)


def _of_data_module(module: Any) -> _Named:
    with _blaming(module, "prepare_data()"):
        module.prepare_data()
    with _blaming(module, 'setup("fit")'):
        module.setup("fit")
    named: _Named = {}
    for name in ("train", "val"):
        with _blaming(module, f"{name}_dataloader()"):
            named |= _flat(name, _ask(module, f"{name}_dataloader"))
    # A module may have no test data, or need them prepared in a way that fit does not: then there are none to examine.
    with contextlib.suppress(Exception):
        module.setup("test")
        named |= _flat("test", _ask(module, "test_dataloader"))
    return named


def _ask(module: Any, method: str) -> Any:
    """What a hook returns; None if the user has not written it: Lightning's own raises, or returns None."""
    own = attribute(type(module), method)
    if own is None or getattr(own, "__module__", "").startswith(("lightning.", "pytorch_lightning.")):
        return None
    return getattr(module, method)()


# Hugging Face transformers.


def _is_trainer(target: Any) -> bool:
    return descends_from(target, "transformers", "Trainer")


def _of_trainer(trainer: Any) -> _Named:
    named: _Named = {}
    if (given := attribute(trainer, "train_loader")) is not None:  # headrace's ExactTrainer
        named |= _flat("train", given)
    elif attribute(trainer, "train_dataset") is not None:
        with _blaming(trainer, "get_train_dataloader()"):
            named |= _flat("train", trainer.get_train_dataloader())
    held = attribute(trainer, "eval_dataset")
    if isinstance(held, Mapping):
        for name in held:
            with _blaming(trainer, f"get_eval_dataloader({name!r})"):
                named[f"val {name}"] = trainer.get_eval_dataloader(name)
    elif held is not None:
        with _blaming(trainer, "get_eval_dataloader()"):
            named |= _flat("val", trainer.get_eval_dataloader())
    classes = _classes_of(attribute(trainer, "model"))
    for loader in named.values() if classes is not None else ():
        with contextlib.suppress(AttributeError, TypeError):  # a loader that takes no attributes
            setattr(loader, CLASSES, classes)
    return named


def _classes_of(model: Any) -> tuple[int, str] | None:
    """The classes that a model of Hugging Face tells apart. Every config has two labels, so the model's name counts."""
    config = attribute(model, "config")
    number = attribute(config, "num_labels")
    if not type(model).__name__.endswith("Classification") or not isinstance(number, int) or number < 2:
        return None
    if attribute(config, "problem_type") not in {None, "single_label_classification"}:
        return None
    return number, f"{type(model).__name__}.config.num_labels"


def _flat(name: str, value: Any) -> _Named:
    """One loader, or what stands for several: a list, a dict, Lightning's CombinedLoader."""
    if value is None:
        return {}
    if any(descends_from(value, package, "CombinedLoader") for package in _LIGHTNING):
        return _flat(name, value.iterables)
    if isinstance(value, Mapping):
        return {f"{name} {key}": part for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return {name if i == 0 else f"{name} {i + 1}": part for i, part in enumerate(value)}
    return {name: value}


@contextlib.contextmanager
def _blaming(owner: Any, call: str) -> Iterator[None]:
    """Turns what the user's code raises into a TargetError that names the call."""
    try:
        yield
    except Exception as error:
        text = str(error).partition("\n")[0]
        raise TargetError(
            f"{type(owner).__name__}.{call} failed: {type(error).__name__}{f': {text}' if text else ''}",
            do=f"call {call} yourself: it fails without headrace too",
        ) from error
