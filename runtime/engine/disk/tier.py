"""The disk tier of the prefix cache: evicted prefixes are written, and loaded when a request needs
them. The step process has one if `--kv-dir` is set.

A prefix is kept in chunks of 64 tokens, from its beginning. Threads write (`writer.py`) and read
(`reader.py`); the step loop only copies pages. Losing data on disk only costs time, so every error
of the disk is a cache miss.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from sgc.runtime.engine.cache.radix import EVICT_FIRST, Node, RadixTree
from sgc.runtime.engine.disk.chunk_file import ChunkFile
from sgc.runtime.engine.disk.costs import Costs
from sgc.runtime.engine.disk.folder import KEPT_SHARE, KVFolder
from sgc.runtime.engine.disk.keys import CHUNK_TOKENS, chunk_keys, root_key
from sgc.runtime.engine.disk.pages import PageBytes
from sgc.runtime.engine.disk.reader import Load, Reader
from sgc.runtime.engine.disk.stats import DiskStats
from sgc.runtime.engine.disk.writer import Writer
from sgc.runtime.engine.ints import Bytes, Ints
from sgc.runtime.engine.names import KV_CLOSING_S


class DiskTier:
    """model: the model's fingerprint (`keys.py`). pages: the model's pages."""

    def __init__(self, folder: KVFolder, model: bytes, pages: PageBytes, costs: Costs) -> None:
        self.costs, self.pages = costs, pages
        self.chunk_bytes = CHUNK_TOKENS * pages.token_bytes
        self._folder, self._model = folder, model
        self._file = ChunkFile(self.chunk_bytes)
        self._writer = Writer(folder, self._file)
        self._reader = Reader(folder, self._writer, self._file)
        self._n_loads = self._n_loaded_tokens = self._n_dropped = 0

    # Writing.

    def save(self, tree: RadixTree, node: Node, n: int) -> None:
        """Queues copies of the chunks that end when the last `n` tokens of a node are evicted."""
        if node.stamp == EVICT_FIRST or not self._writer.is_on:
            return  # the compiler says that no request needs it again
        end = tree.length(node)
        first = (end - n) // CHUNK_TOKENS
        if first == end // CHUNK_TOKENS:
            return
        path = tree.path(node)
        keys = list(self._keys(path.tokens, path.namespace))[first:]
        batch: list[tuple[bytes, Bytes]] = []
        for chunk, key in enumerate(keys, first):
            if self._has(key):
                continue
            room = self._writer.has_room((len(batch) + 1) * self.chunk_bytes)
            data = self._copied(path.pages, chunk) if room else None
            if data is None:
                self._n_dropped += 1
            else:
                batch.append((key, data))
        if batch:
            self._writer.put(batch)

    def close(self, tree: RadixTree, limit_s: float = KV_CLOSING_S) -> None:
        """Writes the tree's prefixes, latest used first, and the chunks that wait to be written."""
        until = time.monotonic() + limit_s
        kept: dict[bytes, None] = {}
        nodes = (node for node in tree.nodes() if node.parent is not None)
        for node in sorted(nodes, key=lambda node: -node.stamp):
            if node.stamp == EVICT_FIRST or not self._write_node(tree, node, kept, until):
                break
        self._writer.finish(until)
        self._folder.touch(list(kept))

    def _write_node(
        self, tree: RadixTree, node: Node, kept: dict[bytes, None], until: float
    ) -> bool:
        """Queues the chunks that end in a node; returns False if time is over, or if chunks used
        later fill the folder. kept: the keys so far."""
        path = tree.path(node)
        first = (len(path.tokens) - len(node)) // CHUNK_TOKENS
        for chunk, key in enumerate(self._keys(path.tokens, path.namespace)):
            if chunk < first or key in kept:
                continue
            if (len(kept) + 1) * self._file.n_file_bytes > KEPT_SHARE * self._folder.max_bytes:
                return False
            kept[key] = None
            if self._has(key):
                self._folder.touch([key])  # before other chunks can displace it
                continue
            is_time = self._writer.wait(self.chunk_bytes, until)
            data = self._copied(path.pages, chunk) if is_time else None
            if data is None:
                return False
            self._writer.put([(key, data)])
        return True

    # Loading.

    def following(self, tokens: Ints, namespace: bytes, n_matched: int) -> list[bytes]:
        """The keys of consecutive chunks that are on disk, from the chunk in which a match of
        `n_matched` tokens ends. Reads nothing."""
        keys = itertools.islice(self._keys(tokens, namespace), n_matched // CHUNK_TOKENS, None)
        return list(itertools.takewhile(self._has, keys))

    @property
    def is_behind(self) -> bool:
        """Whether the disk is still busy with a load that is no longer wanted."""
        return self._reader.is_behind

    def begin(self, keys: list[bytes]) -> Load:
        load = Load(keys)
        self._reader.begin(load)
        return load

    def take(self, load: Load) -> Bytes | None:
        """The pages of the load's next chunk, if they were read."""
        return self._reader.take(load)

    def end(self, load: Load, n_tokens: int) -> None:
        """Ends a load. n_tokens: how many of its tokens are cached now."""
        self._reader.drop(load)
        if n_tokens:
            self._n_loads, self._n_loaded_tokens = (
                self._n_loads + 1,
                self._n_loaded_tokens + n_tokens,
            )

    def stats(self) -> DiskStats:
        return DiskStats(
            disk_loads=self._n_loads,
            disk_loaded_tokens=self._n_loaded_tokens,
            disk_written_bytes=self._writer.n_bytes,
            disk_damaged_files=self._reader.n_damaged,
            disk_dropped_chunks=self._n_dropped + self._writer.n_dropped,
            disk_bytes=self._folder.n_bytes,
        )

    def _keys(self, tokens: Ints, namespace: bytes) -> Iterator[bytes]:
        return chunk_keys(root_key(self._model, namespace), tokens)

    def _has(self, key: bytes) -> bool:
        return key in self._folder or self._writer.pending(key) is not None

    def _copied(self, pages: Ints, chunk: int) -> Bytes | None:
        """A copy of a chunk's pages; None if there is no memory for it."""
        try:
            return self.pages.read(pages[chunk * CHUNK_TOKENS : (chunk + 1) * CHUNK_TOKENS])
        except MemoryError:
            return None
