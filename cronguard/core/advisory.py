"""The number that PostgreSQL's advisory locks want for a name.

Signed 64 bit, the same on every host and in every version of cronguard (FR-57: others ran out of int4, or sent 2^64-1).
Two names may share a number once in 2^64: then their claims only wait for each other, since rows decide.
"""

from __future__ import annotations

import hashlib


def advisory_key(schema: str, lock: str) -> int:
    """The key of a lock name within a schema: names are compared byte for byte, like everywhere."""
    digest = hashlib.sha256(f"{schema}\0{lock}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
