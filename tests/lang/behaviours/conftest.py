"""Backends that write down what they are asked, and a server that speaks SGLang's API."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from sglang_server import ScriptedServer
from waiting import BOUND_S

from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import RuntimeEndpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import Usage


def text_of(prompt: Any) -> str:
    return "".join(segment.text for segment in prompt)


class Asked(NamedTuple):
    text: str
    sampling: Any
    prompt: Any


class RecordingBackend(ScriptedBackend):
    """Replies with a text or `reply(text, sampling)`, and keeps what it was asked.

    chunk: code points a streamed delta has; gate: replies come once it is set.
    """

    def __init__(
        self,
        reply: Any,
        prefer: Any,
        chunk: int | None,
        gate: threading.Event | None,
        capabilities: dict[str, Any],
    ) -> None:
        def made(prompt: Any, sampling: Any) -> str:
            return reply(text_of(prompt), sampling) if callable(reply) else reply

        super().__init__(made, prefer)
        self._capabilities = replace(CAPABILITIES, **capabilities)
        self._chunk, self._gate = chunk, gate
        self.asked: list[Asked] = []
        self.scored: list[tuple[str, tuple[str, ...], bool]] = []
        self.commits: list[str] = []
        self.n_cancelled = 0

    async def capabilities(self):
        return self._capabilities

    async def _pass_gate(self) -> None:
        deadline = asyncio.get_running_loop().time() + BOUND_S
        while self._gate is not None and not self._gate.is_set():
            assert asyncio.get_running_loop().time() < deadline, "nobody opened the gate"
            await asyncio.sleep(0.002)

    async def generate(self, prompt, sampling, on_delta=None):
        self.asked.append(Asked(text_of(prompt), sampling, prompt))
        try:
            await self._pass_gate()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        reply = await super().generate(prompt, sampling, None)
        if on_delta is not None:
            size = self._chunk or max(len(reply.text), 1)
            for start in range(0, len(reply.text), size):
                on_delta(reply.text[start : start + size])
                await asyncio.sleep(0)
        return reply

    async def score(self, prompt, choices, unconditional=False):
        self.scored.append((text_of(prompt), choices, unconditional))
        await self._pass_gate()
        return await super().score(prompt, choices, unconditional)

    async def commit_prefix(self, prompt, heads=()):
        self.commits.append(text_of(prompt))
        return Usage()


class Recorded(Endpoint):
    backend: Any

    @property
    def asked(self) -> list[Asked]:
        return self.backend.asked

    @property
    def samplings(self) -> list[Any]:
        return [each.sampling for each in self.backend.asked]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.backend.asked]


@pytest.fixture
def recorded() -> Callable[..., Recorded]:
    """Makes an endpoint: `recorded(reply, prefer, chunk=, gate=, **capabilities)`."""

    def make(
        reply: Any = "reply",
        prefer: Any = lambda prompt, choices: 0,
        *,
        chunk: int | None = None,
        gate: threading.Event | None = None,
        **capabilities: Any,
    ) -> Recorded:
        return Recorded(RecordingBackend(reply, prefer, chunk, gate, capabilities))

    return make


@pytest.fixture
def within() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """`within(call)`: what the call gives, an error where it hangs."""
    pool = ThreadPoolExecutor(4)
    yield lambda call: pool.submit(call).result(timeout=BOUND_S)
    pool.shutdown(wait=False, cancel_futures=True)


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def server(scripted_server: ScriptedServer) -> ScriptedServer:
    """The server with nothing recorded and its settings as they were made."""
    for field in ("model", "fail_on", "is_fast", "pads_first_logprob", "chunk_tokens"):
        setattr(scripted_server, field, getattr(ScriptedServer, field))
    scripted_server.reset()
    return scripted_server


@pytest.fixture
def served(server: ScriptedServer) -> Iterator[Callable[..., RuntimeEndpoint]]:
    """Makes a connection to the server, which says it has the given model."""
    made: list[RuntimeEndpoint] = []

    def make(model: str = "scripted", **options: Any) -> RuntimeEndpoint:
        server.model = model
        made.append(RuntimeEndpoint(server.url, **options))
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.shutdown()
