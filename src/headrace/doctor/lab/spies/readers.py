"""Libraries that read arrays, tables and sound: what they open, what they refuse, what they have read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.sightings import Picture
from headrace.doctor.lab.spies.calls import replace, spied_reader, text_path, undisturbed
from headrace.doctor.lab.spies.opencv import note_array_image

__all__ = ["SPIES"]


def _spy_on_numpy(bench: Bench, module: ModuleType) -> None:
    note = functools.partial(_note_array, bench)
    replace(module, "load", functools.partial(spied_reader, bench, keyword="file", note=note))
    for name, keyword in (("fromfile", "file"), ("loadtxt", "fname"), ("genfromtxt", "fname")):
        replace(module, name, functools.partial(spied_reader, bench, keyword=keyword))


def _note_array(bench: Bench, array: Any, path: str | None, *_: Any) -> None:
    """An array file with two dimensions may be a mask; an archive gives its members later."""
    bench.seen.note_read(path)
    if path is not None and getattr(array, "ndim", 0) == 2 and array.dtype.kind in "iub":
        bench.seen.add(Picture(reader="NumPy", source=path, path=path), array)


def _spy_on_npz(bench: Bench, module: ModuleType) -> None:
    member = getattr(module, "NpzFile", None)
    if member is not None:
        replace(
            member, "__getitem__", functools.partial(_part, bench, find=lambda npz: getattr(npz.zip, "filename", None))
        )


def _spy_on_h5py(bench: Bench, module: ModuleType) -> None:
    replace(module.File, "__init__", functools.partial(spied_reader, bench, place=1, keyword="name", is_open=True))
    replace(module.Dataset, "__getitem__", functools.partial(_part, bench, find=lambda data: data.file.filename))


def _part(bench: Bench, original: Callable[..., Any], find: Callable[[Any], Any]) -> Callable[..., Any]:
    """Around taking a part of a file that was opened before, perhaps before this sample."""

    @functools.wraps(original)
    def take(self: Any, *arguments: Any, **options: Any) -> Any:
        if not bench.is_listening:
            return undisturbed(original, self, *arguments, **options)
        try:
            path = text_path(find(self))
        except Exception:  # closed: the library says so in its own words
            path = None
        with bench.inside("decode"):
            if path is not None and path not in bench.opened:
                bench.note_opened(path)
            try:
                part = original(self, *arguments, **options)
            except KeyError:  # a member that is not there: a question as often as a fault
                raise
            except Exception as error:
                bench.seen.note_refusal(path, error)
                raise
        bench.seen.note_read(path)
        return part

    return take


def _spy_on_soundfile(bench: Bench, module: ModuleType) -> None:
    replace(module.SoundFile, "__init__", functools.partial(spied_reader, bench, place=1, keyword="file", is_open=True))
    replace(module, "read", functools.partial(spied_reader, bench, keyword="file"))


def _spy_on_torch(bench: Bench, module: ModuleType) -> None:
    replace(module, "load", functools.partial(spied_reader, bench, keyword="f"))


def _spy_on_torchaudio(bench: Bench, module: ModuleType) -> None:
    replace(module, "load", functools.partial(spied_reader, bench, keyword="uri", is_open=True))


def _spy_on_image_reader(bench: Bench, module: ModuleType, *, reader: str, names: tuple[str, ...]) -> None:
    def note(image: Any, path: str | None, *_: Any) -> None:
        # Torch's images have their channels first; its own arrays of more dimensions are left alone.
        array = image.numpy().transpose(1, 2, 0) if reader == "torchvision" and image.ndim == 3 else image
        if getattr(array, "ndim", 0) in {2, 3} and path is not None:
            if array.ndim == 3 and array.shape[-1] == 1:
                array = array[..., 0]
            note_array_image(bench, array, reader=reader, path=path, source=path)
        else:
            bench.seen.note_read(path)

    for name in names:
        # Pillow may work inside imageio: then it is seen there, with more to tell.
        wrap = _outside_pillow if reader == "imageio" else spied_reader
        replace(module, name, functools.partial(wrap, bench, note=note, is_open=True))


def _outside_pillow(
    bench: Bench, original: Callable[..., Any], *, note: Callable[..., None], is_open: bool
) -> Callable[..., Any]:
    def note_if_unseen(image: Any, path: str | None, *rest: Any) -> None:
        if any(picture.path == path for picture in bench.seen.pictures):
            bench.seen.note_read(path)
        else:
            note(image, path, *rest)

    return spied_reader(bench, original, note=note_if_unseen, is_open=is_open)


SPIES: Mapping[str, Callable[[Bench, ModuleType], None]] = {
    "numpy": _spy_on_numpy,
    "numpy.lib.npyio": _spy_on_npz,
    "h5py": _spy_on_h5py,
    "soundfile": _spy_on_soundfile,
    "torch": _spy_on_torch,
    "torchaudio": _spy_on_torchaudio,
    "tifffile": functools.partial(_spy_on_image_reader, reader="tifffile", names=("imread",)),
    "imageio.v2": functools.partial(_spy_on_image_reader, reader="imageio", names=("imread",)),
    "imageio.v3": functools.partial(_spy_on_image_reader, reader="imageio", names=("imread",)),
    "torchvision.io": functools.partial(_spy_on_image_reader, reader="torchvision", names=("read_image",)),
}
