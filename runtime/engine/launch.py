"""Starts an engine as a child process, on a private Unix socket by default, and stops it.

    with EmbeddedEngine("fake") as engine:
        backend = EngineBackend(engine.uri)

The child's stdin is a pipe from this process: when this process ends, the child ends too, and
removes its socket and folder. Imports no gRPC.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType

from sgc.errors import EngineUnavailable
from sgc.kernels.cpu.build import COMPILING, NO_KERNELS
from sgc.runtime.engine.names import IN_EIGHT_BITS
from sgc.runtime.engine.process import child

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 5.0
READY_LINE, HTTP_LINE = b"listening on ", b"HTTP on "
TAIL_LINES = 30
_PASSED_ON = (COMPILING, NO_KERNELS, IN_EIGHT_BITS)  # in lines to show to the user


class EmbeddedEngine:
    """A server of this process's own; a context manager, plain or async.

    model: as for `serve --model`; arguments: further arguments of `serve`. listen: HOST:PORT in
    place of a private socket, port 0 for any free one. `uri` is set by `start`, and `http_url` if
    the arguments ask for HTTP. Startup failures raise `EngineUnavailable` with the end of the
    child's stderr.
    """

    def __init__(
        self,
        model: str | None = None,
        arguments: Sequence[str] = (),
        start_timeout_s: float = START_TIMEOUT_S,
        listen: str | None = None,
    ) -> None:
        self._model = model
        self._listen = listen
        self._arguments = list(arguments)
        self._timeout_s = start_timeout_s
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.uri = self.http_url = ""

    def start(self, meanwhile: Callable[[], object] | None = None) -> EmbeddedEngine:
        """Starts the child and waits until it serves. meanwhile: called while the child starts."""
        try:
            listen = self._listen or self._private_socket()
            model = [] if self._model is None else ["--model", self._model]
            options = [*model, "--listen", listen, "--exit-with-parent", *self._arguments]
            self._process = subprocess.Popen(
                [*child.python_module("sgc.runtime.engine.serve"), *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=_environment(),
                start_new_session=True,
            )
            if meanwhile is not None:
                meanwhile()
            self._wait_ready(self._process)
        except BaseException:
            if self._process is not None:
                self._process.kill()  # no orderly stop is needed; its step process ends with it
            self.stop()
            raise
        self.uri = listen if self._listen is None else f"grpc://{self._told(READY_LINE)}"
        self.http_url = self._told(HTTP_LINE)
        return self

    def wait(self) -> int:
        """Waits until the child has ended; returns its exit status."""
        assert self._process is not None
        return self._process.wait()

    def drain(self, timeout_s: float) -> None:
        """Tells the child to end once its requests have ended; waits up to `timeout_s` seconds."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)

    def stop(self) -> None:
        """Ends the child and removes its folder; may be called again."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self.uri, self.http_url = None, "", ""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def stderr_tail(self) -> str:
        """The last lines the child wrote to stderr."""
        return "\n".join(self._tail)

    def __enter__(self) -> EmbeddedEngine:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> EmbeddedEngine:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if self._process is not None:
                self._process.kill()  # the thread then ends by itself
            with contextlib.suppress(Exception):
                await starting
            self.stop()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _private_socket(self) -> str:
        self._folder = Path(tempfile.mkdtemp(prefix="sgc-"))  # mode 0700
        return f"unix:{self._folder / 'engine.sock'}"

    def _told(self, beginning: bytes) -> str:
        """The rest of the child's line with this beginning; "" if it wrote no such line."""
        beginnings = beginning.decode()
        for line in self._tail:
            if line.startswith(beginnings):
                return line.removeprefix(beginnings).strip()
        return ""

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Reads stderr up to READY_LINE; after that a thread keeps reading."""
        assert process.stderr is not None
        deadline = time.monotonic() + self._timeout_s
        descriptor = process.stderr.fileno()
        data, n_told = b"", 0
        while b"\n" not in data[data.find(READY_LINE) :] or READY_LINE not in data:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
                self._keep(data)
                raise self._failure(f"did not start within {self._timeout_s:g} s")
            chunk = os.read(descriptor, 65536)
            if not chunk:
                self._keep(data)
                raise self._failure(f"ended while starting (exit status {process.wait()})")
            data += chunk
            whole, n_told = data[n_told : data.rfind(b"\n") + 1], data.rfind(b"\n") + 1
            for line in whole.decode(errors="replace").splitlines():
                if any(mark in line for mark in _PASSED_ON):
                    print(f"sgc: {line.strip()}", file=sys.stderr)
        self._keep(data)
        Thread(target=self._read_rest, args=(process,), daemon=True).start()

    def _read_rest(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            for line in process.stderr:
                self._keep(line)

    def _keep(self, data: bytes) -> None:
        self._tail.extend(data.decode("utf-8", "replace").splitlines())

    def _failure(self, what: str) -> EngineUnavailable:
        name = self._model or "default"
        tail = self.stderr_tail.strip()
        said = f"; it said:\n{tail}" if tail else ""
        return EngineUnavailable(f"the engine for model {name!r} {what}{said}")


def _environment() -> dict[str, str]:
    """The child's environment, without a token: its socket is private."""
    environment = dict(os.environ)
    environment.pop("SGC_TOKEN", None)
    return environment


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    for stop in (process.terminate, process.kill):
        if process.poll() is None:
            stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
            break
    if process.stderr is not None:
        with contextlib.suppress(OSError):
            process.stderr.close()
