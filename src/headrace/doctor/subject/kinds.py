"""Which kind a target is. The order matters: a library's own kind before the general one that it also is."""

from __future__ import annotations

from typing import Any

from headrace.doctor.subject.grain import GrainDataset, GrainLoader
from headrace.doctor.subject.headrace_loader import HeadraceLoader
from headrace.doctor.subject.hugging_face import HuggingFaceStream
from headrace.doctor.subject.iterables import BatchSequence, Reiterable
from headrace.doctor.subject.kind import Kind
from headrace.doctor.subject.litdata import LitDataLoader
from headrace.doctor.subject.looking import descends_from
from headrace.doctor.subject.map_style import MapStyle
from headrace.doctor.subject.mosaic import MosaicStream
from headrace.doctor.subject.tensorflow import TensorFlowDataset
from headrace.doctor.subject.torch_loader import TorchLoader, TorchStream
from headrace.doctor.subject.torchdata import TorchdataNodes
from headrace.doctor.subject.webdataset import WebPipeline
from headrace.doctor.subject.wrappers import loader_within

__all__ = ["ACCEPTED", "find_kind", "is_known_loader"]

ACCEPTED = (
    "a loader or data set: of torch, headrace, torchdata, WebDataset, Hugging Face datasets, tf.data, Grain, Keras, or "
    "anything with __len__ and __getitem__, or with an __iter__ that begins anew"
)

_LIBRARIES: tuple[type[Kind], ...] = (
    WebPipeline,
    HuggingFaceStream,
    MosaicStream,
    TorchdataNodes,
    GrainLoader,
    GrainDataset,
    TensorFlowDataset,
    BatchSequence,
    TorchStream,
)
_LOADERS: tuple[type[TorchLoader], ...] = (HeadraceLoader, LitDataLoader, TorchLoader)


def find_kind(target: Any) -> Kind | None:
    """Returns the kind that holds a target; None if none does."""
    target = loader_within(target)
    for loader in _LOADERS:
        if loader.holds(target):
            return loader(target, _find_stream(target.dataset, any_iterable=loader is HeadraceLoader))
    others: tuple[type[Kind], ...] = (*_LIBRARIES, MapStyle, Reiterable)
    return next((kind(target) for kind in others if kind.holds(target)), None)


def _find_stream(dataset: Any, *, any_iterable: bool) -> Kind | None:
    """The stream that a loader draws from; None: it has row numbers. Torch takes its own IterableDataset only."""
    if TorchStream.holds(dataset):
        return next(kind(dataset) for kind in _LIBRARIES if kind.holds(dataset))
    if any_iterable and not hasattr(dataset, "__getitem__") and Reiterable.holds(dataset):
        return find_kind(dataset)
    return None


def is_known_loader(value: Any) -> bool:
    """True for what only a loader or data set is, as opposed to a sample, which may be indexable too."""
    value = loader_within(value)
    if any(kind.holds(value) for kind in (*_LOADERS, *_LIBRARIES)):
        return True
    # Map-style data sets: by where their classes come from.
    return descends_from(value, "datasets", "Dataset") or any(
        base.__module__.startswith(("torch.utils.data", "headrace.engine")) for base in type(value).__mro__
    )
