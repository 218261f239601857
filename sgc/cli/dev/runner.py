"""Runs versions, one at a time, each by `sgc run` as a process of its own.

All versions have the same seed and share a result cache, so a request equal to one of an earlier
version is a cache hit: only changed requests are sent. A new version ends the run before it.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgc.cli.dev.versions import MAX_CHARS, Version, Versions

_GRACE_S = 2.0
_MAX_RESULT = 64 << 20  # bytes of a run's JSON


@dataclass(frozen=True, slots=True)
class Asked:
    """target: PROG.py[:FUNCTION]; options: of `sgc run`, the same for every version."""

    target: str
    options: tuple[str, ...]
    seed: int


class Runner:
    def __init__(self, asked: Asked, versions: Versions) -> None:
        self._asked = asked
        self._versions = versions
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()  # an edit and a click may come together
        self._version: Version | None = None

    async def start(self, arguments: Mapping[str, Any]) -> Version:
        """Begins a version; ends the one before it if that still runs."""
        async with self._starting:
            await self.stop()
            self._version = version = self._versions.begin(arguments)
            self._task = asyncio.create_task(self._run(version))
            return version

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._version is not None and self._version.state == "running":
            self._version.state = "stopped"
            self._versions.change()

    async def wait(self) -> None:
        """Waits until the running version has ended."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, version: Version) -> None:
        begin_s = time.monotonic()
        try:
            code, out = await self._program(version)
            self._take(version, code, out)
            version.took_s = time.monotonic() - begin_s
            self._versions.change()
            version.has_page = await self._draw(version)
        except (OSError, ValueError) as error:
            version.state, version.error = "failed", str(error)
        finally:
            self._versions.change()

    async def _program(self, version: Version) -> tuple[int, bytes]:
        folder = self._versions.folder
        arguments = self._versions.arguments(version.number)
        arguments.write_text(json.dumps(version.arguments), encoding="utf-8")
        command = [
            "run", self._asked.target, "--args", f"@{arguments}",
            "--seed", str(self._asked.seed), "--cache-dir", str(folder / "cache"),
            "--log", str(self._versions.log(version.number)), "--json", "--stream", "-q",
            *self._asked.options,
        ]  # fmt: skip
        async with process(command) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            out, _ = await asyncio.gather(_bounded(child.stdout), self._show(version, child.stderr))
            return await child.wait(), out

    async def _show(self, version: Version, stream: asyncio.StreamReader) -> None:
        """Adds what the run prints to the version's text: generated text, or its error."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := await stream.read(1 << 16):
            version.text = (version.text + decoder.decode(data))[-MAX_CHARS:]
            self._versions.change()

    async def _draw(self, version: Version) -> bool:
        """Writes the version's page, with the program if it compiles; False if it cannot."""
        log, page = self._versions.log(version.number), self._versions.page(version.number)
        for things in ([str(log), self._asked.target], [str(log)], [self._asked.target]):
            async with process(["view", *things, "-o", str(page)]) as child:
                await child.communicate()
                if child.returncode == 0:
                    return True
        return False

    def _take(self, version: Version, code: int, out: bytes) -> None:
        if code:
            version.state = "failed"
            _, _, version.error = version.text.rpartition("sgc: error: ")
            return
        result = json.loads(out)
        version.state, version.text = "done", result["text"]
        version.returned = result["return"]
        for request in result["stats"]["by_request"]:
            if request["kind"] != "commit":
                is_kept = request["from_cache"] or request["from_shared"] or request["from_ahead"]
                name = request["name"] or request["kind"]
                (version.kept if is_kept else version.asked).append(name)


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    """Reads a stream to its end; raises ValueError for more than a page can use."""
    parts, left = [], _MAX_RESULT
    while data := await stream.read(1 << 16):
        parts.append(data)
        left -= len(data)
        if left < 0:
            raise ValueError(f"the result has more than {_MAX_RESULT >> 20} MB")
    return b"".join(parts)


@contextlib.asynccontextmanager
async def process(arguments: Sequence[str], module: str = "sgc") -> Any:
    """Runs a module of sgc as a process; the block's end ends it and all processes it started."""
    making = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the working folder is the user's
            "-m",
            module,
            *arguments,
            env={**os.environ, "NO_COLOR": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        child = await asyncio.shield(making)
    except asyncio.CancelledError:  # cancelling `making` may wait for ever
        await _end(await making)
        raise
    try:
        yield child
    finally:
        await _end(child)


async def _end(child: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await child.wait()
