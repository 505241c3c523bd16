"""Containers whose rows can be gathered, and batches compared byte for byte."""

import numpy as np
import torch
from torch.utils.data import Subset, TensorDataset, default_collate

import headrace as hr
from headrace.engine.plan import tokens

NUMPY_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
TORCH_DTYPES = tuple(
    getattr(torch, name)
    for name in "bool uint8 int16 int64 float16 bfloat16 float32 float64 complex64 float8_e5m2".split()
    if hasattr(torch, name)
)


def plain_collate(samples):
    """Somebody's own collate function, as far as headrace knows: nothing is gathered."""
    return default_collate(samples)


def array(rng, dtype, num_rows, shape):
    """Rows of all kinds of values, the largest and smallest and (quiet) NaN among them."""
    dtype = np.dtype(dtype)
    full = (num_rows, *shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, full).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, full, dtype=dtype, endpoint=True)
        values.reshape(-1)[:2] = (info.min, info.max)[: values.size]
        return values
    values = rng.normal(size=full).astype(dtype)
    values.reshape(-1)[:3] = (np.nan, -0.0, np.inf)[: values.size]
    return values


def tensor(rng, dtype, num_rows, shape):
    """The same as a tensor, also of types that numpy lacks."""
    if dtype.is_floating_point:
        return torch.from_numpy(array(rng, "float32", num_rows, shape)).to(dtype)
    name = str(dtype).removeprefix("torch.")
    return torch.from_numpy(array(rng, name, num_rows, shape))


def text(num_rows):
    return [f"n{row}ä" for row in range(num_rows)]


def mapped(folder, values):
    np.save(folder / "rows.npy", values)
    return np.load(folder / "rows.npy", mmap_mode="r")


def container(kind, *, rng, numpy_dtype, torch_dtype, num_rows, shape, folder):
    """Returns a data set, or a plan, of that kind."""
    values = array(rng, numpy_dtype, num_rows, shape)
    rows = tensor(rng, torch_dtype, num_rows, shape)
    labels = np.arange(num_rows)
    match kind:
        case "arrays: row":
            return hr.arrays(values)
        case "arrays: tensor row":
            return hr.arrays(rows)
        case "arrays: text row":
            return hr.arrays(text(num_rows))
        case "arrays: tuple":
            return hr.arrays(values, rows, text(num_rows), labels, ids=[f"id-{row}" for row in range(num_rows)])
        case "arrays: dict":
            return hr.arrays(x=values, rows=rows, name=text(num_rows), raw=[b"a"] * num_rows, label=labels.tolist())
        case "arrays: mapped":
            return hr.arrays(x=mapped(folder, values), label=labels, ids=labels[::-1] * 3)
        case "arrays: strided":
            return hr.arrays(x=np.repeat(values, 2, axis=0)[::2], y=np.asfortranarray(values))
        case "numpy array":
            return values
        case "memory map":
            return mapped(folder, values)
        case "tensor":
            return rows
        case "TensorDataset":
            return TensorDataset(rows, torch.from_numpy(labels))
        case "Subset":
            return Subset(TensorDataset(rows, torch.from_numpy(labels)), rng.permutation(num_rows).tolist())
        case "Subset of Subset":
            inner = Subset(values, rng.permutation(num_rows))
            return Subset(inner, rng.integers(0, num_rows, num_rows).tolist())
        case "tokens":
            return tokens(rng.integers(0, 2**16, num_rows * 3 + 5, dtype=np.uint16), window=5, stride=3)
        case "token file":
            rng.integers(0, 2**32, num_rows * 4, dtype=np.uint32).tofile(folder / "tokens.bin")
            return tokens(folder / "tokens.bin", window=4, dtype="uint32")
    raise AssertionError(kind)


KINDS = (
    *("arrays: row", "arrays: tensor row", "arrays: text row", "arrays: tuple", "arrays: dict", "arrays: mapped"),
    *("arrays: strided", "numpy array", "memory map", "tensor", "TensorDataset", "Subset", "Subset of Subset"),
    *("tokens", "token file"),
)


def image(batch):
    """Everything about a batch that a training loop could see, as plain values that compare with `==`."""
    if isinstance(batch, dict):
        return type(batch).__name__, [(name, image(part)) for name, part in batch.items()]
    if isinstance(batch, (list, tuple)):
        return type(batch).__name__, [image(part) for part in batch]
    if isinstance(batch, torch.Tensor):
        raw = batch.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return type(batch), batch.dtype, tuple(batch.shape), batch.stride(), batch.requires_grad, raw
    return type(batch), batch


def books(loader):
    """The images of all batches of two epochs, with who is in them and what the books say."""
    seen = []
    for _ in range(2):
        for batch in loader:
            last = loader.last
            flags = last.is_pad.tolist(), last.is_replaced.tolist()
            seen.append((image(batch), last.sample_ids, last.positions.tolist(), flags, last.cursor.state_dict()))
        seen.append(loader.ledger.as_dict())
    return seen


def stages(loader):
    """Names of the stages that were timed: a gathered batch is read and never collated."""
    return [time.stage for time in loader.stats().stages]
