"""The content of a chunk's file: safetensors with the bytes of its pages, its key and a checksum.

All files of a model begin with the same header. So the header is made once and never parsed: a file
has exactly the expected bytes, or it is `Damaged`.
"""

from __future__ import annotations

import hashlib

import numpy as np
from safetensors.numpy import save

from sgc.runtime.engine.disk.folder import Damaged
from sgc.runtime.engine.ints import Bytes

_FORMAT = {"format": "sgc kv 1"}
_N_HASH = hashlib.sha256().digest_size


class ChunkFile:
    """Writes and reads files of chunks whose pages have `n_bytes`. n_file_bytes: a file's size."""

    def __init__(self, n_bytes: int) -> None:
        # The library's order: by name, as all tensors are of bytes.
        marks = {name: np.zeros(_N_HASH, np.uint8) for name in ("checksum", "key")}
        whole = save({**marks, "pages": np.zeros(n_bytes, np.uint8)}, _FORMAT)
        self._header = whole[: len(whole) - n_bytes - 2 * _N_HASH]
        self.n_file_bytes = len(whole)

    def parts(self, key: bytes, data: Bytes) -> list[memoryview]:
        """A file's content, in pieces."""
        checksum = _checksum(key, data)
        return [memoryview(part) for part in (self._header, checksum, key)] + [data.data]

    def read(self, key: bytes, content: bytes) -> Bytes:
        """The bytes of the pages; raises `Damaged`."""
        at = len(self._header)
        checksum, found, data = at, at + _N_HASH, at + 2 * _N_HASH
        if len(content) != self.n_file_bytes or not content.startswith(self._header):
            raise Damaged("it holds something else")
        if content[found:data] != key:
            raise Damaged("it is another chunk's")
        pages = np.frombuffer(content, np.uint8, offset=data)
        if content[checksum:found] != _checksum(key, pages):
            raise Damaged("its checksum is wrong")
        return pages


def _checksum(key: bytes, data: Bytes) -> bytes:
    found = hashlib.sha256(key)
    found.update(data.data)
    return found.digest()
