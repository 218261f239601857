"""Endpoints that keep replies, in a cache on disk or in a recording."""

from __future__ import annotations

import os

from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.keep.recording import Recorder, Replayer
from sgc.runtime.executor.keep.result_cache import ResultCache


class KeepingEndpoint(Endpoint):
    """An endpoint around another one; `shutdown` shuts both down."""

    def __init__(self, backend: ResultCache | Recorder, inner: Endpoint) -> None:
        super().__init__(backend)
        self._inner = inner

    def shutdown(self) -> None:
        try:
            super().shutdown()
        finally:
            self._inner.shutdown()


def cached(
    endpoint: Endpoint, folder: str | os.PathLike[str], max_bytes: int = 1024**3
) -> Endpoint:
    """The endpoint with a cache in a folder, only for replies to deterministic requests: greedy
    generations, generations with a given seed, and choices.

    Several processes may use one folder. Raises CacheError if it cannot be used.
    """
    from sgc.runtime.executor.keep.result_store import ResultStore  # SQLite

    return KeepingEndpoint(ResultCache(endpoint.backend, ResultStore(folder, max_bytes)), endpoint)


def record(endpoint: Endpoint, path: str | os.PathLike[str]) -> Endpoint:
    """The endpoint with its replies written to a new file as they come, for `replay`."""
    return KeepingEndpoint(Recorder(endpoint.backend, Recorder.begin(path)), endpoint)


def replay(path: str | os.PathLike[str]) -> Endpoint:
    """An endpoint that answers from a recording: no engine, no key, no network.

    Requests that are not recorded raise NotRecorded. Run with the seed of the recorded runs.
    """
    return Endpoint(Replayer(path))
