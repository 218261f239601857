"""Reads chunks on a thread of its own, one load after another. The memory of chunks that were read
and not yet taken is bounded. A missing or damaged chunk ends its load, since later chunks are
useless without it."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from sgc.runtime.engine.disk.chunk_file import ChunkFile
from sgc.runtime.engine.disk.folder import Damaged, KVFolder
from sgc.runtime.engine.disk.writer import Writer
from sgc.runtime.engine.ints import Bytes

MAX_READ_BYTES = 128 << 20


@dataclass(slots=True, eq=False)
class Load:
    """Consecutive chunks. began: on the clock of `perf_counter`. read: chunks that were read and
    not yet taken; is_read: no more chunks come. is_dropped: the load is no longer wanted."""

    keys: Sequence[bytes]
    began: float = field(default_factory=time.perf_counter)
    read: deque[Bytes] = field(default_factory=deque)
    is_read: bool = False
    is_dropped: bool = False


class Reader:
    """n_damaged: damaged files that were removed."""

    def __init__(self, folder: KVFolder, writer: Writer, file: ChunkFile) -> None:
        self._folder, self._writer, self._file = folder, writer, file
        self._loads: queue.SimpleQueue[Load] = queue.SimpleQueue()
        self._room = threading.Semaphore(max(2, MAX_READ_BYTES // file.n_file_bytes))
        self._reading: Load | None = None
        self.n_damaged = 0
        threading.Thread(target=self._run, name="kv-reader", daemon=True).start()

    def begin(self, load: Load) -> None:
        self._loads.put(load)

    def take(self, load: Load) -> Bytes | None:
        """The load's next chunk, if it was read."""
        try:
            data = load.read.popleft()
        except IndexError:
            return None
        self._room.release()
        return data

    def drop(self, load: Load) -> None:
        """Ends a load, and forgets chunks that were read."""
        load.is_dropped = True
        while self.take(load) is not None:
            pass

    def _run(self) -> None:
        while True:
            self._read(self._loads.get())

    @property
    def is_behind(self) -> bool:
        """Whether the thread is still reading a load that is no longer wanted."""
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
        self._writer.touch(load.keys[:n_read])
        self._reading = None

    def _chunk(self, key: bytes) -> Bytes | None:
        data = self._writer.pending(key)
        if data is not None:
            return data
        try:
            content = self._folder.read(key, self._file.n_file_bytes)
            if content is not None:
                return self._file.read(key, content)
        except (Damaged, OSError):
            self.n_damaged += 1
        except MemoryError:
            return None
        self._folder.remove(key)
        return None
