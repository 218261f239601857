"""The other processes of a model that several processes compute: started by the first, which has
the scheduler and sends them each step's batch. If one process ends, all end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, NoReturn

import numpy as np

from sgc.runtime.engine.model.device.group import Group
from sgc.runtime.engine.model.device.places import Place, find_place
from sgc.runtime.engine.model.device.runners import Sizes
from sgc.runtime.engine.model.device.way import DeviceWay
from sgc.runtime.engine.model.forward import FlatBatch
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.process import child

MAX_ITEMS = 1 << 26  # of a batch's arrays, together: 512 MiB
_FIELDS = ("token_ids", "positions", "slots", "row_starts", "pages", "page_starts", "logit_index")
_GRACE_S = 2.0  # in which this process may itself report what ended the other


@dataclass(frozen=True, slots=True)
class Asked:
    """What every process loads. device: the first process's."""

    folder: str
    dtype: str
    device: str
    attention: str
    threads: int | None
    pool_tokens: int | None
    max_context: int | None
    memory_fraction: float
    step_tokens: int
    max_rows: int

    def load(self, place: Place) -> ModelRunner:
        return load_model(
            self.folder, dtype=self.dtype, pool_tokens=self.pool_tokens,
            max_context=self.max_context, threads=self.threads, place=place,
            sizes=Sizes(None, self.memory_fraction, self.step_tokens, self.max_rows),
        )  # fmt: skip


def load_together(asked: Asked, n: int) -> ModelRunner:
    """The first process's share of a model, and `n - 1` more processes with the others."""
    group = Group(0, n)
    place = find_place(asked.device, asked.attention, group)
    ranks = Ranks(asked, n)
    group.join(place.device, ranks.folder)
    runner = asked.load(place)
    assert isinstance(runner.way, DeviceWay)
    runner.way.together = ranks.running
    return runner


class Ranks:
    """The processes but the first, which this one is."""

    def __init__(self, asked: Asked, n: int) -> None:
        # Mode 0700. The other processes remove it as they end, since this process may be killed.
        self.folder = Path(tempfile.mkdtemp(prefix="sgc-ranks-"))
        self._processes = [self._start(asked, Group(rank, n)) for rank in range(1, n)]
        for rank, process in enumerate(self._processes, 1):
            Thread(target=_end_with, args=(rank, process, self.folder), daemon=True).start()

    @contextlib.contextmanager
    def running(self, batch: FlatBatch) -> Iterator[None]:
        """Within the block, the other processes run the batch too. An error ends all processes: the
        others would wait, in the middle of the batch, for sums of another batch."""
        try:
            self._tell(batch)
            yield
        except Exception:
            traceback.print_exc()
            _end("a step failed, which ends all processes of the model's")

    def _tell(self, batch: FlatBatch) -> None:
        frame = frame_of(batch)
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(frame)
            process.stdin.flush()

    def _start(self, asked: Asked, group: Group) -> subprocess.Popen[bytes]:
        told = json.dumps({**asdict(asked), "rank": group.rank, "n": group.n})
        module = child.python_module("sgc.runtime.engine.worker.rank")
        arguments = [*module, "--folder", str(self.folder), "--config", told]
        return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _end_with(rank: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    status = process.wait()
    shutil.rmtree(folder, ignore_errors=True)  # as it may have been killed
    time.sleep(_GRACE_S)
    _end(f"process {rank} of the model's ended ({status}): so does this one")


def _end(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


def frame_of(batch: FlatBatch) -> bytes:
    arrays = [getattr(batch, name) for name in _FIELDS]
    lengths = np.array([len(array) for array in arrays], np.int64)
    return b"".join(np.ascontiguousarray(a, np.int64).tobytes() for a in (lengths, *arrays))


def batches(source: BinaryIO) -> Iterator[FlatBatch]:
    """The batches that the first process sends, until it ends."""
    while (head := _exactly(source, 8 * len(_FIELDS))) is not None:
        lengths = np.frombuffer(head, np.int64)
        n = int(lengths.sum())
        if not (lengths >= 0).all() or n > MAX_ITEMS:
            raise ValueError(f"a batch of {n} numbers; {MAX_ITEMS} are allowed")
        data = _exactly(source, 8 * n)
        if data is None:
            return
        parts = np.split(np.frombuffer(data, np.int64), np.cumsum(lengths)[:-1])
        arrays: dict[str, Any] = dict(zip(_FIELDS, parts, strict=True))
        yield FlatBatch(**arrays)


def _exactly(source: BinaryIO, n: int) -> bytearray | None:
    """None: the source ended before."""
    data = bytearray(n)
    view, at = memoryview(data), 0
    while at < n:
        with contextlib.suppress(InterruptedError):
            got = source.readinto(view[at:])  # type: ignore[attr-defined]
            if not got:
                return None
            at += got
    return data
