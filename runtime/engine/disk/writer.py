"""Writes chunks to the folder, and notices chunks that other engines wrote, on a thread of its own.
The step loop never waits for it: chunks that do not fit in its queue are not kept. Until a chunk is
written, readers get it from the queue.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from sgc.runtime.engine.disk.chunk_file import ChunkFile
from sgc.runtime.engine.disk.folder import KVFolder
from sgc.runtime.engine.ints import Bytes

MAX_QUEUED_BYTES = 256 << 20
REFRESH_S = 2.0  # how often to look for chunks that other engines wrote
MAX_REFRESH_SHARE = 0.02  # the share of time this may take, if a folder is large
_log = logging.getLogger(__name__)


class Writer:
    """n_bytes: of the files written; n_dropped: chunks that were not written. An error of the disk
    turns writing off."""

    def __init__(self, folder: KVFolder, file: ChunkFile) -> None:
        self._folder, self._file = folder, file
        self._batches: deque[Sequence[bytes]] = deque()
        self._pending: dict[bytes, Bytes] = {}
        self._queued_bytes = 0
        self._changed = threading.Condition()
        self.is_on = True
        self.n_bytes = self.n_dropped = 0
        threading.Thread(target=self._run, name="kv-writer", daemon=True).start()

    def has_room(self, n_bytes: int) -> bool:
        return self.is_on and self._queued_bytes + n_bytes <= MAX_QUEUED_BYTES

    def put(self, batch: Sequence[tuple[bytes, Bytes]]) -> None:
        """Queues chunks to write; the first of them is to be kept longest."""
        with self._changed:
            self._pending.update(batch)
            self._queued_bytes += sum(len(data) for _, data in batch)
            self._batches.append([key for key, _ in batch])
            self._changed.notify_all()

    def touch(self, keys: Sequence[bytes]) -> None:
        """Queues chunks to be marked as used."""
        with self._changed:
            self._batches.append(keys)
            self._changed.notify_all()

    def pending(self, key: bytes) -> Bytes | None:
        """The chunk with this key, if it is still to be written."""
        return self._pending.get(key)

    def wait(self, n_bytes: int, until: float) -> bool:
        """Waits until there is room for so many bytes, or the clock (monotonic) says `until`."""
        with self._changed:
            left_s = until - time.monotonic()
            self._changed.wait_for(lambda: self.has_room(n_bytes) or not self.is_on, left_s)
            return self.has_room(n_bytes)

    def finish(self, until: float) -> None:
        """Waits until everything is written, or the clock says `until`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending, until - time.monotonic())

    def _run(self) -> None:
        refresh_at = time.monotonic() + REFRESH_S
        while True:
            with self._changed:
                left_s = refresh_at - time.monotonic()
                self._changed.wait_for(lambda: bool(self._batches), max(0.0, left_s))
                keys = self._batches.popleft() if self._batches else ()
            for key in keys:
                self._write(key)
            self._folder.touch(keys)
            if (begun := time.monotonic()) >= refresh_at:
                with contextlib.suppress(OSError):  # a failing disk shows nothing new
                    self._folder.refresh()
                took_s = time.monotonic() - begun
                refresh_at = begun + max(REFRESH_S, took_s / MAX_REFRESH_SHARE)

    def _write(self, key: bytes) -> None:
        data = self._pending.get(key)
        if data is None:  # it is only to be touched
            return
        try:
            if self.is_on:
                self._folder.write(key, self._file.parts(key, data))
                self.n_bytes += self._file.n_file_bytes
            else:
                self.n_dropped += 1
        except (OSError, MemoryError) as error:
            self.is_on = False
            self.n_dropped += 1
            why = getattr(error, "strerror", None) or error or "there is no memory"
            _log.warning("K and V are no longer written to %s: %s", self._folder.path, why)
        with self._changed:
            del self._pending[key]
            self._queued_bytes -= len(data)
            self._changed.notify_all()
