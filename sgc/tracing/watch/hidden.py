"""The state of Python's own objects that have no attributes: iterators, buffers, generators of
random numbers, locks, queues and the like."""

from __future__ import annotations

import contextlib
import hashlib
import io
import random
import types
import warnings
from contextvars import ContextVar
from decimal import Context
from functools import lru_cache
from queue import SimpleQueue
from threading import Lock, RLock
from typing import Any

_HEAP_TYPE = 1 << 9


class Hidden:
    """The state of an object without attributes, as `read` returns it."""

    def __init__(self, name: str, value: Any, read: Any) -> None:
        self.name, self._value, self._read = name, value, read
        self._before = read(value)

    @property
    def is_changed(self) -> bool:
        return bool(self._read(self._value) != self._before)

    def put_back(self, written: frozenset[str] | None) -> None:
        """Restores the state where possible: not an iterator's position, nor a queue's items."""
        for kind, restore in _RESTORES.items():
            if isinstance(self._value, kind) and self.is_changed:
                restore(self._value, self._before)


def _position(iterator: Any) -> object:
    """The position of one of Python's own iterators, and of the iterators that it reads."""
    if isinstance(iterator, types.GeneratorType):
        frame = iterator.gi_frame
        return None if frame is None else frame.f_lasti, _positions(iterator.gi_yieldfrom)
    with warnings.catch_warnings(), contextlib.suppress(TypeError):
        warnings.simplefilter("ignore")  # about iterators whose `__reduce__` is deprecated
        _, of, *state = iterator.__reduce__()
        return [_positions(each) for each in of], state
    return None


def _positions(value: Any) -> object:
    is_iterator = type(value) is types.GeneratorType or _is_iterator(value)
    return _position(value) if is_iterator else id(value)


def _is_iterator(value: Any) -> bool:
    kind = type(value)
    return not kind.__flags__ & _HEAP_TYPE and hasattr(kind, "__next__")


_MAX_COPIED = 1_000_000  # bytes of a buffer that is kept; of a larger one, only a digest is


def is_large(value: Any) -> bool:
    """Whether an object has so much data that not every run of a trace can afford to read it."""
    if hidden_state(value) is not _content:
        return False
    with memoryview(value) as view:
        return view.nbytes > _MAX_COPIED


def _content(buffer: Any) -> bytes | tuple[str, str]:
    """The bytes of a buffer; for a large buffer, a digest."""
    with memoryview(buffer) as view:
        if view.nbytes <= _MAX_COPIED:
            return view.tobytes()
        read = view.cast("B") if view.c_contiguous else view.tobytes()
        return "digest", hashlib.blake2b(read).hexdigest()


def _has_buffer(value: Any) -> bool:
    try:
        with memoryview(value) as view:
            return not view.readonly
    except (TypeError, ValueError, BufferError):
        return False


_UNSET = object()
# Functions that read an object's state, by its class.
_READS: dict[Any, Any] = {
    random.Random: lambda value: random.Random.getstate(value),
    SimpleQueue: lambda value: value.qsize(),
    (type(Lock()), type(RLock()), Context): repr,
    ContextVar: lambda value: id(value.get(_UNSET)),
    (type(hashlib.sha256()), type(hashlib.blake2b()), type(hashlib.blake2s())): (
        lambda value: value.digest()
    ),
    (io.StringIO, io.BytesIO): lambda value: value.closed or (value.tell(), value.getvalue()),
    types.GeneratorType: _position,
}


def _unlock(lock: Any, before: str) -> None:
    if "unlocked" in before and lock.locked():
        lock.release()


def _rewrite(file: Any, before: Any) -> None:
    if not file.closed:
        position, content = before
        file.seek(0)
        file.truncate()
        file.write(content)
        file.seek(position)


def _refill(buffer: Any, before: Any) -> None:
    if isinstance(before, bytes):
        buffer[:] = before


_RESTORES: dict[Any, Any] = {
    random.Random: random.Random.setstate,
    type(Lock()): _unlock,
    (io.StringIO, io.BytesIO): _rewrite,
    bytearray: _refill,
}


@lru_cache(maxsize=4096)
def _read_by_class(kind: type) -> Any:
    return next((read for of, read in _READS.items() if issubclass(kind, of)), None)


def hidden_state(value: Any) -> Any:
    """The function that reads the state of one of Python's own objects, or of an object with a
    buffer."""
    kind: Any = type(value)
    if issubclass(kind, (str, bytes, int, float, type, types.FunctionType, types.ModuleType)):
        return None
    if (read := _read_by_class(kind)) is not None:
        return read
    if _is_iterator(value):
        return _position
    return _content if _has_buffer(value) else None
