"""The files of one checkpoint: parts as JSON and safetensors, checked byte for byte when they are read.

step-000000120/
    manifest.json            what it is; sizes and checksums of the others; written last
    manifest.sha256          its own checksum, as `sha256sum -c manifest.sha256` takes it
    state.json               every part as plain values, with references to tensors
    model.safetensors        the tensors of a part, under the names that the model gives them
    optimizer.safetensors    ...
    rank-0.json, rank-0.safetensors     what differs between ranks: random state, ...

Tensors that ranks hold in pieces lie, with the other ones of their part, in a folder in place of its file: as
`torch.distributed.checkpoint` lays out safetensors, so that its HuggingFaceStorageReader loads them.
    model/rank-0.safetensors            the pieces of rank 0, and what is in no pieces
    model/rank-1.safetensors            ...
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

from headrace.errors import CheckpointError, DamagedCheckpoint
from headrace.loop.checkpoint import shards, tree
from headrace.loop.checkpoint.manifest import NAME, FileRecord, Manifest, decode, encode
from headrace.loop.durable import sync_folder

__all__ = ["check", "read", "read_manifest", "write", "write_manifest", "write_pieces", "write_split"]

SUM = "manifest.sha256"


def write(folder: pathlib.Path, stem: str, parts: Mapping[str, Any]) -> tuple[FileRecord, ...]:
    """Writes parts as `write_split` does.

    Raises:
        CheckpointError: a value is no data.
        OSError: the disk is full, ...
    """
    return write_split(folder, stem, {name: tree.split(value, name) for name, value in parts.items()})


def write_split(folder: pathlib.Path, stem: str, parts: Mapping[str, tree.Split]) -> tuple[FileRecord, ...]:
    """Writes parts as `<stem>.json` and, for each part with tensors, `<part>.safetensors`; syncs each file to the disk.

    Args:
        folder: Where to; it exists.
        stem: "state", or "rank-0": then the tensors of all parts are one file, `rank-0.safetensors`.
        parts: Name of a part to its value, as `tree.split` takes it apart.

    Raises:
        OSError: the disk is full, ...; what was written by then lies in the folder.
    """
    skeletons: dict[str, Any] = {}
    together: dict[str, Any] = {}
    records = []
    for name, (skeleton, tensors) in parts.items():
        skeletons[name] = skeleton
        if stem != "state":
            together.update({key: one for key, one in tensors.items() if not isinstance(one, shards.Piece)})
        elif tensors and not _is_in_pieces(tensors):
            records.append(_write_tensors(folder / f"{name}.safetensors", tensors))
    if together:
        records.append(_write_tensors(folder / f"{stem}.safetensors", together))
    records.append(_write_text(folder / f"{stem}.json", json.dumps(skeletons, allow_nan=False).encode()))
    return tuple(records)


def write_pieces(
    folder: pathlib.Path, rank: int, parts: Mapping[str, tree.Split], *, with_whole: Collection[str] = ()
) -> tuple[FileRecord, ...]:
    """Writes what this rank holds of tensors in pieces, for each part that has some; syncs files and folders to the disk.

    Args:
        folder: Where to; it exists.
        rank: The rank.
        parts: Name of a part to its value, as `tree.split` takes it apart.
        with_whole: Parts whose other tensors belong into the same file.

    Raises:
        OSError: the disk is full, ...; what was written by then lies in the folder.
    """
    records = []
    for name, (_, tensors) in parts.items():
        mine = {
            key: one
            for key, one in tensors.items()
            if (one.is_written if isinstance(one, shards.Piece) else name in with_whole)
        }
        if mine and _is_in_pieces(tensors):
            place = folder / name
            place.mkdir(exist_ok=True)
            records.append(_write_tensors(place / f"rank-{rank}.safetensors", mine, prefix=f"{name}."))
            sync_folder(place)
    return tuple(records)


def write_manifest(folder: pathlib.Path, manifest: Manifest) -> None:
    """Writes the manifest, which makes the folder a checkpoint, and syncs the folder."""
    record = _write_text(folder / NAME, encode(manifest))
    _write_text(folder / SUM, f"{record.sha256}  {NAME}\n".encode())
    sync_folder(folder)


def read_manifest(folder: pathlib.Path) -> Manifest:
    """Returns the manifest of a checkpoint.

    Raises:
        DamagedCheckpoint: there is none, or it is not as it was written.
        CheckpointError: it cannot be read.
    """
    try:
        text = (folder / NAME).read_bytes()
    except FileNotFoundError:
        raise DamagedCheckpoint(
            f"{folder} has no {NAME}", why="it was not written to its end, or is no checkpoint"
        ) from None
    expected = f"{hashlib.sha256(text).hexdigest()}  {NAME}\n".encode()
    if not (folder / SUM).exists() or (folder / SUM).read_bytes() != expected:
        raise DamagedCheckpoint(f"{folder / NAME} is not what was written: {SUM} says otherwise, or is missing")
    return decode(text, str(folder / NAME))


def check(folder: pathlib.Path, manifest: Manifest) -> None:
    """Passes if every file is as it was written; reads all of them.

    Raises:
        DamagedCheckpoint: names the first file that is not, and how it differs.
    """
    for record in manifest.files:
        path = folder / record.name
        steps = pathlib.PurePosixPath(record.name).parts  # the file of a part, or within the folder of one
        if len(steps) > 2 or steps[0] in {"/", ".."} or ".." in steps:
            raise DamagedCheckpoint(f"{folder / NAME} names a file outside its folder: {record.name!r}")
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DamagedCheckpoint(f"{path} is missing") from None
        if size != record.bytes:
            raise DamagedCheckpoint(f"{path} has {size:,} bytes; {record.bytes:,} were written")
        if _sha256(path) != record.sha256:
            raise DamagedCheckpoint(f"{path} is not what was written: its checksum differs")


def read(folder: pathlib.Path, stem: str, *, lazily: bool = False) -> dict[str, Any]:
    """Returns what `write` was given, its tensors in memory of their own, on the CPU. Runs no code from the files.

    Tensors in pieces come as `shards.Stored`, of which each rank reads what it needs.

    Args:
        folder: The checkpoint.
        stem: "state", or "rank-0".
        lazily: Tensors of shared parts that were saved whole come as `shards.Stored` too.

    Raises:
        CheckpointError: a file cannot be read as what it should be.
    """
    from safetensors import SafetensorError

    try:
        skeletons = json.loads((folder / f"{stem}.json").read_bytes())
        found = {}
        for name, skeleton in skeletons.items():
            path = folder / f"{name if stem == 'state' else stem}.safetensors"
            tensors = _tensors(path, f"{name}." if stem == "state" else "", lazily=lazily and stem == "state")
            pieces = shards.stored(sorted((folder / name).glob("rank-*.safetensors")))
            tensors |= {f"{name}.{key}": one for key, one in pieces.items()}
            found[name] = tree.join(skeleton, tensors)
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{folder} cannot be read: {error}") from error
    return found


def _is_in_pieces(tensors: Mapping[str, Any]) -> bool:
    return any(isinstance(one, shards.Piece) for one in tensors.values())


def _tensors(path: pathlib.Path, prefix: str, *, lazily: bool) -> dict[str, Any]:
    """Tensors of a file; in the file of a part the names are as short as the model's own."""
    from safetensors.torch import load_file

    if lazily:
        return {prefix + name: one for name, one in shards.stored([path], lazily=True).items()} if path.exists() else {}
    # Cloned, because they would be windows on the file, and that is deleted when newer checkpoints are there.
    return {prefix + name: tensor.clone() for name, tensor in load_file(path).items()} if path.exists() else {}


def _write_tensors(path: pathlib.Path, tensors: Mapping[str, Any], *, prefix: str | None = None) -> FileRecord:
    """Writes a file of tensors; with `prefix` into the folder of a part, with a header that says where pieces belong."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    said = None if prefix is None else shards.header({name.removeprefix(prefix): one for name, one in tensors.items()})
    folder = path.parent.parent if prefix is not None else path.parent
    if prefix is None:
        prefix = "" if path.stem.startswith("rank-") else f"{path.stem}."
    # save_file refuses tensors that share memory (views of one another) and strided ones: those are copied.
    held: set[int] = set()
    plain = {
        name.removeprefix(prefix): _plain(one.local if isinstance(one, shards.Piece) else one, held)
        for name, one in tensors.items()
    }
    try:
        save_file(plain, path, said)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error
    return _finish(path, folder)


def _plain(tensor: Any, held: set[int]) -> Any:
    """The tensor, alone in its memory; `held` are the storages taken so far."""
    tensor = tensor.resolve_conj().resolve_neg().cpu().contiguous()
    storage = tensor.untyped_storage()
    if storage.nbytes() != tensor.numel() * tensor.element_size() or storage.data_ptr() in held:
        return tensor.clone()
    held.add(storage.data_ptr())
    return tensor


def _write_text(path: pathlib.Path, text: bytes) -> FileRecord:
    path.write_bytes(text)
    return _finish(path, path.parent)


def _finish(path: pathlib.Path, folder: pathlib.Path) -> FileRecord:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return FileRecord(name=path.relative_to(folder).as_posix(), bytes=path.stat().st_size, sha256=_sha256(path))


def _sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
