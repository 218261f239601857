"""What is in a chunk's file: safetensors, with the bytes of its pages, its key and a checksum. A
file may be damaged in any way: what cannot be read, or is not what its name says, is `Damaged`.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import save

from sgc.runtime.engine.disk.folder import Damaged
from sgc.runtime.engine.ints import Bytes

_FORMAT = {"format": "sgc kv 1"}
_deserialize: Any = safetensors.deserialize
_N_KEY = hashlib.sha256().digest_size


def encode(key: bytes, data: Bytes) -> bytes:
    parts = {
        "pages": data,
        "key": np.frombuffer(key, np.uint8),
        "checksum": np.frombuffer(_checksum(key, data), np.uint8),
    }
    return save(parts, _FORMAT)


def decode(key: bytes, content: bytes, n_bytes: int) -> Bytes:
    """The bytes of the pages, `n_bytes` of them; raises `Damaged`."""
    try:
        found: dict[str, Any] = dict(_deserialize(content))
    except safetensors.SafetensorError as error:
        raise Damaged(str(error)) from error
    wanted = {"pages": n_bytes, "key": _N_KEY, "checksum": _N_KEY}
    shapes = {name: (part["dtype"], part["shape"]) for name, part in found.items()}
    if shapes != {name: ("U8", [n]) for name, n in wanted.items()}:
        raise Damaged("it holds something else")
    data = np.frombuffer(found["pages"]["data"], np.uint8)
    if bytes(found["key"]["data"]) != key:
        raise Damaged("it is another chunk's")
    if bytes(found["checksum"]["data"]) != _checksum(key, data):
        raise Damaged("its checksum is wrong")
    return data


def encoded_bytes(n_bytes: int) -> int:
    """The size of a file whose pages have so many bytes."""
    return len(encode(bytes(_N_KEY), np.zeros(n_bytes, np.uint8)))


def _checksum(key: bytes, data: Bytes) -> bytes:
    found = hashlib.sha256(key)
    found.update(data.data)
    return found.digest()
