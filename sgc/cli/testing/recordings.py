"""The recordings of `sgc test`: a new one replaces the old once every row has run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sgc.errors import UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.keeping import KeepingEndpoint
from sgc.runtime.executor.keep.recording import Recorder, Replayer
from sgc.runtime.executor.log.file import LogFile

JUDGE = ".judge"  # the suffix of a separate judge's recording


class Recordings:
    """The files of one call. keeps: whether a new recording is complete, and replaces the old one.

    A separate judge has a file of its own, since a recording is of one model.
    """

    def __init__(self, record: Path | None, replay: Path | None) -> None:
        if record is not None and replay is not None:
            raise UsageError("--record asks a model, and --replay does not: give one of them")
        if record is not None and not record.parent.is_dir():
            raise UsageError(f"--record {record}: there is no folder {record.parent}")
        if record is not None and record.is_dir():
            raise UsageError(f"--record {record}: expected a file, found a folder")
        self._record, self._replay = record, replay
        self._replayer = None if replay is None else Replayer(replay)
        self._new: list[tuple[LogFile, Path, Path]] = []
        self.keeps = False

    @property
    def seed(self) -> int | None:
        return None if self._replayer is None else self._replayer.seed

    @property
    def has_judge(self) -> bool:
        """Whether the replayed replies include those of a separate judge."""
        return self._replay is not None and _of_judge(self._replay).exists()

    def endpoint(self, open_model: Callable[[], Endpoint], seed: int) -> Endpoint:
        if self._replayer is not None:
            return Endpoint(self._replayer)
        return self._recorded(open_model(), self._record, seed)

    def judge(self, open_model: Callable[[], Endpoint], seed: int) -> Endpoint:
        """The endpoint of a judge that is not the model of the tests."""
        if self._replay is not None:
            return Endpoint(Replayer(_of_judge(self._replay)))
        return self._recorded(open_model(), self._record and _of_judge(self._record), seed)

    def _recorded(self, endpoint: Endpoint, path: Path | None, seed: int) -> Endpoint:
        if path is None:
            return endpoint
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        file = Recorder.begin(unfinished)
        self._new.append((file, unfinished, path))
        recorder = Recorder(endpoint.backend, file)
        recorder.note_seed(seed)
        return KeepingEndpoint(recorder, endpoint)

    def __enter__(self) -> Recordings:
        return self

    def __exit__(self, *_: object) -> None:
        if self.keeps and self._record is not None:
            _of_judge(self._record).unlink(missing_ok=True)  # of an earlier recording
        for file, unfinished, path in self._new:
            file.close()
            if self.keeps:
                os.replace(unfinished, path)
            else:
                unfinished.unlink(missing_ok=True)


def _of_judge(path: Path) -> Path:
    return path.with_name(path.name + JUDGE)
