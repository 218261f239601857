"""Compiled programs that a server runs for its clients, beside the engine.

A client asks for a whole program in one message, so a program of many dependent requests pays the
network's delay once. The engine never sees a program: the program's requests come over a private
socket of the server, with the client's token.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from sgc.errors import (
    ArgumentError,
    DeadlineExceeded,
    EngineUnavailable,
    LoadError,
    Overloaded,
    UsageError,
)
from sgc.ir.graph import Node
from sgc.ir.types import Kind
from sgc.programs.program import Program, load
from sgc.runtime.engine.server.pace import Pace
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.interface.media import load_media
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult

MAX_RUNS = 256
MAX_TOLD = 20  # names in an error
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


@dataclass(frozen=True, slots=True)
class Text:
    """Text that was appended to a stream. stream: its place in the run."""

    stream: str
    text: str
    is_generated: bool


Shows = Callable[[Node, str], bool]  # (node, path) -> whether its texts are shown


def shows_all(node: Node, path: str) -> bool:
    return True


class Full(Overloaded):
    """The most programs that may run are running; this one has not begun."""


class Leaving(EngineUnavailable):
    """The server is about to stop; the program has not begun."""


NOT_BEGUN = (Full, Leaving)


def no_program(name: str, known: Iterable[str]) -> str:
    """The error for a name that no program has; it lists the programs, the most similar first."""
    given = name[:200]
    ranked = sorted(known, key=lambda each: -SequenceMatcher(None, given, each).ratio())
    more = f" and {len(ranked) - MAX_TOLD} more" if len(ranked) > MAX_TOLD else ""
    return f"there is no program {given!r}; this server has {', '.join(ranked[:MAX_TOLD])}{more}"


class Texts:
    """Texts of a run on their way to a client: from the thread that runs it to the event loop.

    Unread texts are merged into one for each stretch of a stream, so a slow client needs no more
    memory than the texts themselves.
    """

    def __init__(self, shows: Shows = shows_all) -> None:
        self._shows = shows
        self._loop, self._there = asyncio.get_running_loop(), asyncio.Event()
        self._lock, self._unread = threading.Lock(), list[Text]()

    def add(self, node: Node, path: str, text: str) -> None:
        """Called by the run."""
        if not text or not self._shows(node, path):
            return
        is_generated = node.op in ("gen", "gen_n", "select", "share")
        with self._lock:
            is_first = not self._unread
            last = self._unread[-1] if self._unread else None
            if last is not None and (last.stream, last.is_generated) == (path, is_generated):
                self._unread[-1] = Text(path, last.text + text, is_generated)
            else:
                self._unread.append(Text(path, text, is_generated))
        if is_first:
            self._loop.call_soon_threadsafe(self._there.set)

    async def take(self) -> list[Text]:
        """Waits for texts; returns the unread ones."""
        await self._there.wait()
        return self.unread()

    def unread(self) -> list[Text]:
        with self._lock:
            unread, self._unread = self._unread, []
            self._there.clear()
        return unread


@dataclass(slots=True)
class Programs:
    """targets: `[NAME=]FILE.sgir`; tools: that they may call. Opened before it runs anything.

    max_runs: the most runs at once; further clients are told to try again. programs: by the name
    that clients use.
    """

    targets: Sequence[str]
    tools: Sequence[Any] = ()
    max_runs: int = MAX_RUNS
    programs: Mapping[str, Program] = field(init=False)
    _uri: str = ""
    _has_tokens: bool = False
    max_run_s: float = math.inf
    _backends: dict[str, Backend] = field(default_factory=dict)  # by the clients' tokens
    n_running: int = 0
    _pace: Pace = field(default_factory=Pace)
    is_leaving: bool = False

    def __post_init__(self) -> None:
        self.programs = load_programs(self.targets, self.tools)

    def open(self, uri: str, has_tokens: bool, max_run_s: float = math.inf) -> None:
        """has_tokens: whether clients have tokens, which were checked; else all count as one
        client. max_run_s: how long a run may take."""
        self._uri, self._has_tokens, self.max_run_s = uri, has_tokens, max_run_s

    async def close(self) -> None:
        backends, self._backends = self._backends, {}
        for backend in backends.values():
            closing = asyncio.run_coroutine_threadsafe(backend.close(), shared.loop)
            await asyncio.wrap_future(closing)

    async def run(
        self,
        name: str,
        arguments: Mapping[str, Any],
        options: RunOptions,
        token: str,
        on_text: Callable[[Node, str, str], None] | None = None,
        deadline: float = math.inf,
    ) -> RunResult:
        """One run, with a client's token; cancelling it cancels its requests. deadline: when the
        run is ended, on the monotonic clock."""
        program = self.programs[name]
        values = checked_arguments(program, arguments)
        if self.is_leaving:
            raise Leaving("the server is stopping; ask another, or try again later")
        if self.n_running >= self.max_runs:
            full = Full(f"{self.max_runs} programs are running already; try again later")
            full.retry_after_s = self._pace.next_place_s()
            raise full
        backend = program.sharing(self._backend(token))
        work = program.start(backend, values, options, on_text)
        self.n_running += 1
        left_s = min(self.max_run_s, deadline - time.monotonic())
        try:
            async with asyncio.timeout(None if left_s == math.inf else left_s):
                running = asyncio.run_coroutine_threadsafe(work, shared.loop)
                return await asyncio.wrap_future(running)
        except TimeoutError as error:
            raise DeadlineExceeded("the run took longer than it may, and was ended") from error
        finally:
            self.n_running -= 1
            self._pace.ended()

    async def stream(
        self,
        name: str,
        arguments: Mapping[str, Any],
        options: RunOptions,
        token: str,
        deadline: float = math.inf,
        shows: Shows = shows_all,
    ) -> AsyncGenerator[Text | RunResult]:
        """Yields the texts of a run as they are generated, and then its result; closing the
        iterator ends the run. shows: which texts."""
        texts = Texts(shows)
        running = asyncio.ensure_future(
            self.run(name, arguments, options, token, texts.add, deadline)
        )
        try:
            while not running.done():
                taking = asyncio.ensure_future(texts.take())
                await asyncio.wait({running, taking}, return_when=asyncio.FIRST_COMPLETED)
                taking.cancel()
                for each in taking.result() if taking.done() else texts.unread():
                    yield each
            for each in texts.unread():
                yield each
            yield running.result()
        finally:
            running.cancel()

    def _backend(self, token: str) -> Backend:
        token = token if self._has_tokens else ""
        if token not in self._backends:
            self._backends[token] = EngineBackend(self._uri, token)
        return self._backends[token]


def checked_arguments(program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """A client's arguments. An image is a data URI: a path would be one of the server's files.

    Raises ArgumentError, which lists what is wrong with them.
    """
    found = dict(given)
    for param in program.graph.params:
        name = param.value.name
        if param.value.type.kind is Kind.MEDIA and name in found:
            value = found[name]
            if not isinstance(value, str) or not value.startswith("data:"):
                raise ArgumentError(f"argument {name!r} must be an image as a data: URI")
            found[name] = load_media(value)
    bind_arguments(program.graph, found)
    return found


def load_programs(targets: Iterable[str], tools: Sequence[Any]) -> dict[str, Program]:
    """Loads programs of `[NAME=]FILE.sgir`, and checks each as far as possible before it runs."""
    programs: dict[str, Program] = {}
    for target in targets:
        name, equals, path = target.partition("=")
        file = Path(path if equals else target).expanduser()
        name = name if equals else file.stem
        if not name or not set(name) <= _NAME_CHARS:
            raise UsageError(
                f"--program {target}: {name!r} is no name for a program",
                hint="letters, digits, '_', '-' and '.': --program NAME=FILE.sgir",
            )
        if name in programs:
            raise UsageError(
                f"--program {target}: there are two programs named {name!r}",
                hint="--program NAME=FILE.sgir gives it another",
            )
        program = load(file, allow_tools=tools)
        program.check_tools(RunOptions())  # the tools that it was loaded with
        if program.graph.params and any(p.value.type.is_stream for p in program.graph.params):
            raise LoadError(f"{file}: a program that takes a stream runs only inside another")
        programs[name] = program
    return programs
