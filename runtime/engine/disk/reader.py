"""Reads chunks, on a thread of its own, one load after another. What was read and not yet taken is
bounded. A chunk that is not there, or is damaged, ends its load: what follows it is of no use."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from sgc.runtime.engine.disk.chunk_file import decode, encoded_bytes
from sgc.runtime.engine.disk.folder import Damaged, KVFolder
from sgc.runtime.engine.disk.writer import Writer
from sgc.runtime.engine.ints import Bytes

MAX_READ_BYTES = 128 << 20
REFRESH_S = 2.0  # how soon to see what other engines wrote
MAX_REFRESH_SHARE = 0.02  # of the time, where a folder is large


@dataclass(slots=True, eq=False)
class Load:
    """Chunks that follow one another. began: on the clock of `perf_counter`. read: those that
    nobody has taken yet; is_read: no more come. is_dropped: nobody wants them any more."""

    keys: Sequence[bytes]
    began: float = field(default_factory=time.perf_counter)
    read: deque[Bytes] = field(default_factory=deque)
    is_read: bool = False
    is_dropped: bool = False


class Reader:
    """chunk_bytes: of the pages of a chunk. n_damaged: files that were removed for it."""

    def __init__(self, folder: KVFolder, writer: Writer, chunk_bytes: int) -> None:
        self._folder, self._writer, self._chunk_bytes = folder, writer, chunk_bytes
        self._file_bytes = encoded_bytes(chunk_bytes)
        self._loads: queue.SimpleQueue[Load] = queue.SimpleQueue()
        self._room = threading.Semaphore(max(2, MAX_READ_BYTES // chunk_bytes))
        self._reading: Load | None = None
        self.n_damaged = 0
        threading.Thread(target=self._run, name="kv-reader", daemon=True).start()

    def begin(self, load: Load) -> None:
        self._loads.put(load)

    def take(self, load: Load) -> Bytes | None:
        """The next of its chunks, if it was read."""
        try:
            data = load.read.popleft()
        except IndexError:
            return None
        self._room.release()
        return data

    def drop(self, load: Load) -> None:
        """Ends a load; what was read of it is forgotten."""
        load.is_dropped = True
        while self.take(load) is not None:
            pass

    def _run(self) -> None:
        refresh_at = time.monotonic() + REFRESH_S
        while True:
            with contextlib.suppress(queue.Empty):
                self._read(self._loads.get(timeout=max(0.0, refresh_at - time.monotonic())))
            begun = time.monotonic()
            if begun >= refresh_at:
                with contextlib.suppress(OSError):  # nothing new is seen of a disk that fails
                    self._folder.refresh()
                ended = time.monotonic()
                refresh_at = ended + max(REFRESH_S, (ended - begun) / MAX_REFRESH_SHARE)

    @property
    def is_behind(self) -> bool:
        """Whether it is still with a load that nobody wants any more."""
        return self._reading is not None and self._reading.is_dropped

    def _read(self, load: Load) -> None:
        self._reading = load
        n_read = 0
        for key in load.keys:
            self._room.acquire()
            data = None if load.is_dropped else self._chunk(key)
            if data is None:
                self._room.release()
                break
            load.read.append(data)
            n_read += 1
        load.is_read = True
        if load.is_dropped:
            self.drop(load)
        self._folder.touch(list(load.keys[:n_read]))
        self._reading = None

    def _chunk(self, key: bytes) -> Bytes | None:
        data = self._writer.pending(key)
        if data is not None:
            return data
        try:
            content = self._folder.read(key, self._file_bytes)
            if content is not None:
                return decode(key, content, self._chunk_bytes)
        except (Damaged, OSError):
            self.n_damaged += 1
        except MemoryError:
            return None
        self._folder.remove(key)
        return None
