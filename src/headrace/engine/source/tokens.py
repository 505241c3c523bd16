"""TokenSource: windows over one long row of token numbers, in memory or in a mapped file."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash
from numpy.lib.stride_tricks import as_strided

from headrace.engine.source.columns import portable
from headrace.engine.source.numbered import NumberedRows
from headrace.errors import ConfigurationError, SourceError, Where

__all__ = ["TokenSource"]

Tokens = npt.NDArray[np.integer[Any]]

SAMPLED_STRETCHES, STRETCH_TOKENS = 64, 4096
"""What goes into a fingerprint: the first tokens, the last, and evenly spaced stretches between; 2 MiB at most."""


class TokenSource(NumberedRows):
    """Record i is the window of tokens [i * stride, i * stride + window), as int64; its id is its number i.

    Args:
        tokens: A file of raw token numbers (mapped, never read whole), a `.npy` file, or a 1-D array of integers.
        window: Tokens in one window.
        stride: Tokens from the beginning of one window to the next. Default: `window`, so that windows do not overlap.
        dtype: What one token is in a raw file. Files and arrays that know their own dtype keep it.

    Raises:
        SourceError: there is no such file, it is not a whole number of tokens, or too short for one window.
        ConfigurationError: the numbers do not make sense, or the tokens are no integers that fit int64, in one row.

    Tokens at the end that fill no window are left out; `repr` says how many.
    """

    runs_user_code = False
    gathers = True

    def __init__(
        self,
        tokens: str | os.PathLike[str] | npt.ArrayLike,
        *,
        window: int = 1025,
        stride: int | None = None,
        dtype: npt.DTypeLike = np.uint16,
    ) -> None:
        self.window = _positive("window", window)
        self.stride = _positive("stride", window if stride is None else stride)
        self.path: str | None = None
        if isinstance(tokens, (str, os.PathLike)):
            self.path = os.fspath(tokens)
            self.tokens = _mapped(Path(tokens), dtype)
        else:
            self.tokens = _checked(np.asanyarray(tokens), None)
        if len(self.tokens) < self.window:
            raise SourceError(
                f"{len(self.tokens):,} tokens do not fill one window of {self.window:,}",
                where=Where(path=self.path),
                do=f"window={max(1, len(self.tokens))}    or less; or look whether the file is complete",
            )

        self._windows: Tokens | None = None  # made when first used, and never pickled

    def __len__(self) -> int:
        return (len(self.tokens) - self.window) // self.stride + 1

    @property
    def num_left_out(self) -> int:
        """Tokens at the end that are in no window."""
        return max(0, len(self.tokens) - ((len(self) - 1) * self.stride + self.window))

    def read_many(self, indices: Sequence[int]) -> list[npt.NDArray[np.int64]]:
        """Returns one window per index, as int64 arrays of their own; IndexError for an index outside 0..N-1."""
        rows = [int(index) for index in indices]
        outside = next((row for row in rows if not 0 <= row < len(self)), None)
        if outside is not None:
            raise IndexError(f"window {outside:,} of {len(self):,}")
        tokens = np.asarray(self.tokens)
        return [tokens[row * self.stride : row * self.stride + self.window].astype(np.int64) for row in rows]

    def gather(self, rows: npt.NDArray[np.int64]) -> Any:
        """Returns (B, window) int64 at once, see `gathering.Gathering`. Cost: one strided gather and one widening."""
        import torch

        if self._windows is None:
            self._windows = _all_windows(np.asarray(self.tokens), self.window)
        found = self._windows[rows if self.stride == 1 else rows * self.stride]
        return torch.from_numpy(found if found.dtype == np.int64 else found.astype(np.int64))

    def locate(self, index: int) -> str | None:
        """Returns the file and the tokens of a window; None for an array."""
        first = int(index) * self.stride
        return None if self.path is None else f"{self.path} [{first}:{first + self.window}]"

    def fingerprint(self) -> str:
        """Returns a digest (XXH3-128) of window, stride, number and type of the tokens, and of 64 stretches of 4,096.

        A change elsewhere goes unseen; reading all would load a memory map from end to end.
        """
        head = f"tokens-1 {self.window} {self.stride} {len(self.tokens)} {self.tokens.dtype.str}"
        digest = xxhash.xxh3_128(head.encode())
        last = max(0, len(self.tokens) - STRETCH_TOKENS)
        for start in np.unique(np.linspace(0, last, SAMPLED_STRETCHES).astype(np.int64)).tolist():
            digest.update(self.tokens[start : start + STRETCH_TOKENS].tobytes())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tokens": portable(self.tokens), "_windows": None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenSource):
            return NotImplemented
        same = (self.window, self.stride) == (other.window, other.stride)
        return same and (self.tokens is other.tokens or np.array_equal(self.tokens, other.tokens))

    def __hash__(self) -> int:
        return hash((TokenSource, self.window, self.stride, len(self.tokens)))

    def __repr__(self) -> str:
        place = "" if self.path is None else f"{self.path}, "
        rest = f", {self.num_left_out:,} tokens left out at the end" if self.num_left_out else ""
        return (
            f"TokenSource({place}{len(self):,} windows of {self.window:,} {self.tokens.dtype} tokens, "
            f"stride {self.stride:,}{rest})"
        )


def _all_windows(tokens: Tokens, window: int) -> Tokens:
    """Returns every window there is, as a view: row s begins at token s."""
    return as_strided(tokens, (len(tokens) - window + 1, window), tokens.strides * 2, writeable=False)


def _positive(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ConfigurationError(f"{name}={value!r}: a number of tokens, 1 or more")
    return number


def _checked(tokens: Tokens, path: str | None) -> Tokens:
    """Returns the tokens if they are one row of integers that fit int64."""
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or tokens.dtype == np.uint64 or not tokens.dtype.isnative:
        raise ConfigurationError(
            f"tokens are one row of native integers up to int64; this is {tokens.dtype} of shape {tokens.shape}",
            where=Where(path=path),
            do="tokens(array.reshape(-1))    # or .astype('int64')" if tokens.dtype.kind in "iu" else None,
        )
    return tokens


def _mapped(path: Path, dtype: npt.DTypeLike) -> Tokens:
    """Maps a file of tokens, read-only."""
    where = Where(path=str(path))
    if not path.is_file():
        raise SourceError(f"there is no such file of tokens: {path}", where=where)
    if path.suffix == ".npy":
        try:
            return _checked(np.load(path, mmap_mode="r", allow_pickle=False), str(path))
        except (ValueError, EOFError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise SourceError(f"this is no complete .npy file: {error}", where=where) from error
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ConfigurationError(
            f"dtype={dtype!r} is no type of integers", do="dtype='uint16'    or 'uint32'"
        ) from None
    size = path.stat().st_size
    if size == 0 or size % kind.itemsize:
        raise SourceError(
            f"{size:,} bytes are not a whole number of {kind} tokens of {kind.itemsize} bytes",
            where=where,
            why="the file is empty" if size == 0 else "probably another dtype, or a copy that broke off",
            do=None if size == 0 else "dtype='uint16'    # or what the file was written with",
        )
    return _checked(np.memmap(path, dtype=kind, mode="r"), str(path))
