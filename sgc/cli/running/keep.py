"""Cached and recorded replies for `sgc run`: `--cache-dir`, `--record`, `--replay`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from sgc.cli.settings.defaults import CACHE_VARIABLE
from sgc.errors import UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.keeping import KeepingEndpoint
from sgc.runtime.executor.keep.recording import Recorder, Replayer
from sgc.runtime.executor.keep.result_cache import ResultCache


@dataclass(frozen=True, slots=True)
class KeepAsked:
    """The options of what is kept."""

    cache_dir: Path | None = None
    no_cache: bool = False
    record: Path | None = None
    replay: Path | None = None

    def check(self, others: dict[str, object]) -> None:
        """Raises UsageError for conflicting options. others: options that need a model, by name."""
        if self.cache_dir is not None and self.no_cache:
            raise UsageError("--cache-dir and --no-cache exclude each other")
        if self.replay is None:
            return
        asked = {"--cache-dir": self.cache_dir, "--record": self.record, **others}
        given = [name for name, value in asked.items() if value is not None]
        if given:
            raise UsageError(f"--replay asks no model, and {given[0]} is for a run that does")


class Keeping:
    """The files of one run, opened before the first request; leaving it closes them."""

    def __init__(self, asked: KeepAsked, quiet: bool) -> None:
        self._quiet = quiet
        self._replayer = None if asked.replay is None else Replayer(asked.replay)
        self._file = None if asked.record is None else Recorder.begin(asked.record)
        self._store = None
        folder = asked.cache_dir or os.environ.get(CACHE_VARIABLE)
        if folder and not asked.no_cache and asked.replay is None:
            from sgc.runtime.executor.keep.result_store import ResultStore  # SQLite

            self._store = ResultStore(folder)

    @property
    def seed(self) -> int | None:
        """The seed of the replayed run."""
        return None if self._replayer is None else self._replayer.seed

    def endpoint(self, open_model: Callable[[], Endpoint], seed: int) -> Endpoint:
        """The endpoint of requests: a recording, or a model whose replies are kept."""
        if self._replayer is not None:
            return Endpoint(self._replayer)
        endpoint = open_model()
        if self._store is not None:
            endpoint = KeepingEndpoint(ResultCache(endpoint.backend, self._store), endpoint)
        if self._file is not None:
            recorder = Recorder(endpoint.backend, self._file)
            recorder.note_seed(seed)
            endpoint = KeepingEndpoint(recorder, endpoint)
        return endpoint

    def __enter__(self) -> Keeping:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        for file in (self._file, self._store):
            if file is not None:
                file.close()
        replayer = self._replayer
        if replayer is not None and replayer.n_unused and failed is None and not self._quiet:
            counts = f"{replayer.n_unused} of {replayer.n_replies}"
            click.echo(f"{counts} recorded replies were not asked for", err=True)
