"""Keys are derived, never added: one function from (purpose, parts...) to 128 bits.

Adding seeds (seed + epoch, seed + worker) makes neighbouring runs share streams: seed 1 at epoch 0 equals seed 0 at
epoch 1. Hashing the parts under a purpose gives streams without relation. Everything random in headrace (orders,
augmentations, replacements, reseeding of global generators) takes its key from here.
"""

from __future__ import annotations

import hashlib

__all__ = ["derive_key"]


def derive_key(purpose: str, *parts: str | int) -> int:
    """Returns 128 bits that depend on the purpose and on every part, and on the place of each part.

    Args:
        purpose: What the key is for, e.g. `"order"`; keys for different purposes are unrelated.
        parts: Strings and integers of any size; 1 and "1" are different parts.

    Returns:
        An integer in [0, 2**128).

    Cost: about 2 microseconds. Source: BLAKE2b (RFC 7693) with a personalisation string.

    >>> derive_key("order", 0, 1) == derive_key("order", 1, 0)
    False
    """
    digest = hashlib.blake2b(purpose.encode(), digest_size=16, person=b"headrace-keys-1")
    for part in parts:
        # The type marks the part and the length ends it, so that no two lists of parts have the same bytes.
        data = part.encode() if isinstance(part, str) else str(int(part)).encode()
        digest.update(b"%c%d:" % (b"s" if isinstance(part, str) else b"i", len(data)))
        digest.update(data)
    return int.from_bytes(digest.digest(), "little")
