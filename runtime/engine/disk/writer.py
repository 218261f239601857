"""Writes chunks to the folder, on a thread of its own. Nobody waits for it: what does not fit in
its queue is not kept. Until a chunk is written, whoever asks for it gets it from here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from sgc.runtime.engine.disk.chunk_file import encode
from sgc.runtime.engine.disk.folder import KVFolder
from sgc.runtime.engine.ints import Bytes

MAX_QUEUED_BYTES = 256 << 20
_log = logging.getLogger(__name__)


class Writer:
    """n_written, n_bytes: chunks written, and the bytes of their files; n_dropped: chunks that were
    not. An error of the disk turns writing off."""

    def __init__(self, folder: KVFolder, max_queued_bytes: int = MAX_QUEUED_BYTES) -> None:
        self._folder, self._max_queued_bytes = folder, max_queued_bytes
        self._batches: deque[list[bytes]] = deque()
        self._pending: dict[bytes, Bytes] = {}
        self._queued_bytes = 0
        self._changed = threading.Condition()
        self.is_on = True
        self.n_written = self.n_bytes = self.n_dropped = 0
        threading.Thread(target=self._run, name="kv-writer", daemon=True).start()

    def has_room(self, n_bytes: int) -> bool:
        return self.is_on and self._queued_bytes + n_bytes <= self._max_queued_bytes

    def put(self, batch: Sequence[tuple[bytes, Bytes]]) -> None:
        """Takes chunks to write; the first of them is to be kept longest."""
        with self._changed:
            self._pending.update(batch)
            self._queued_bytes += sum(len(data) for _, data in batch)
            self._batches.append([key for key, _ in batch])
            self._changed.notify_all()

    def pending(self, key: bytes) -> Bytes | None:
        """A chunk that is still to be written."""
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
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._batches))
                keys = self._batches.popleft()
            for key in keys:
                self._write(key)
            self._folder.touch(keys)

    def _write(self, key: bytes) -> None:
        data = self._pending[key]
        try:
            if self.is_on:
                content = encode(key, data)
                self._folder.write(key, content)
                self.n_written, self.n_bytes = self.n_written + 1, self.n_bytes + len(content)
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
