"""Endpoints that keep replies, on disk for runs to come or in a recording."""

from __future__ import annotations

import os

from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.keep.recording import Recorder, Replayer
from sgc.runtime.executor.keep.result_cache import ResultCache


class KeepingEndpoint(Endpoint):
    """An endpoint before another one; `shutdown` is that of both."""

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
    """The endpoint, but for deterministic requests whose replies are kept in a folder: greedy
    generations, those with a seed that was given, and choices. Other replies are never kept.

    Several processes may use one folder. Raises CacheError where it cannot be used.
    """
    from sgc.runtime.executor.keep.result_store import ResultStore  # SQLite

    return KeepingEndpoint(ResultCache(endpoint.backend, ResultStore(folder, max_bytes)), endpoint)


def record(endpoint: Endpoint, path: str | os.PathLike[str]) -> Endpoint:
    """The endpoint, whose replies are written to a new file as they come, for `replay`."""
    return KeepingEndpoint(Recorder(endpoint.backend, Recorder.begin(path)), endpoint)


def replay(path: str | os.PathLike[str]) -> Endpoint:
    """The replies of a recording in place of a model: no engine, no key, no network.

    What it does not have raises NotRecorded. Give runs the seed that the recorded ones had.
    """
    return Endpoint(Replayer(path))
