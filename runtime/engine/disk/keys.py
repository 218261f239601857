"""The keys of chunks on disk. A key is a hash of all that decides the content of the chunk's pages:
the model and how it is computed, the namespace of the cache (salt, tenant), and every token from
the sequence's beginning to the chunk's end. So equal keys have equal pages, and pages can be found
only by who knows the namespace and the prompt.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from sgc.runtime.engine.ints import Ints

CHUNK_TOKENS = 64
_VERSION = b"sgc kv 1"  # changed whenever the meaning of pages, or how they are computed, changes
_READ_BYTES = 1 << 20


def files_digest(paths: Iterable[Path]) -> bytes:
    """The digest of a model's weights and configuration, which are read completely."""
    return _digest(*(part for path in sorted(paths) for part in _named_digest(path)))


def fingerprint(files: bytes, *facts: str) -> bytes:
    """A model's fingerprint. files: the digest of its files. facts: how it is computed, and the
    format of its pages."""
    return _digest(_VERSION, sys.byteorder.encode(), files, *(fact.encode() for fact in facts))


def _named_digest(path: Path) -> tuple[bytes, bytes]:
    found = hashlib.sha256()
    buffer = bytearray(_READ_BYTES)
    with path.open("rb", buffering=0) as file:
        while n := file.readinto(buffer):
            found.update(memoryview(buffer)[:n])
    return path.name.encode(), found.digest()


def root_key(model: bytes, namespace: bytes) -> bytes:
    """The root of a namespace's chain of keys. model: its fingerprint."""
    return _digest(_VERSION, model, namespace)


def chunk_keys(root: bytes, tokens: Ints) -> Iterator[bytes]:
    """The keys of a sequence's complete chunks, from its beginning."""
    key = root
    for end in range(CHUNK_TOKENS, len(tokens) + 1, CHUNK_TOKENS):
        key = hashlib.sha256(key + tokens[end - CHUNK_TOKENS : end].tobytes()).digest()
        yield key


def _digest(*parts: bytes) -> bytes:
    """A digest that differs for different parts, as it includes the length of each."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.digest()
