"""A 64-bit mixer in numpy: every bit of the input moves about half of the bits of the output.

Our own few lines instead of `numpy.random`, whose streams may change between versions of numpy. What comes out of here
is saved in states and ledgers, so it never changes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["GOLDEN", "mix64", "stir64"]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, odd: multiples of it spread evenly over 64 bits."""


def mix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mixes `values` in place, by a bijection on 64 bits, and returns them.

    Cost: about 3 ns a value in long arrays. Source: "Mix13" of David Stafford, the finaliser of SplitMix64
    (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
    """
    shifted = values >> np.uint64(30)
    values ^= shifted
    values *= np.uint64(0xBF58476D1CE4E5B9)
    return stir64(values, shifted)


def stir64(values: npt.NDArray[np.uint64], spare: npt.NDArray[np.uint64] | None = None) -> npt.NDArray[np.uint64]:
    """Applies the second half of `mix64` in place, and returns `values`: enough to make another number of a mixed one.

    Args:
        values: Changed.
        spare: An array of the same shape to work in. Default: a fresh one.
    """
    shifted = np.right_shift(values, np.uint64(27), out=spare)
    values ^= shifted
    values *= np.uint64(0x94D049BB133111EB)
    np.right_shift(values, np.uint64(31), out=shifted)
    values ^= shifted
    return values
