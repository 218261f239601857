"""Asking an engine on the fake model over the wire, and what a reply must hold."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from jsonschema import Draft202012Validator
from waiting import BOUND_S, cpu_s

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import (
    Generated,
    Prompt,
    Sampling,
    TextRun,
)

HELLO: Prompt = (TextRun("Hello"),)


GREEDY = Sampling(max_tokens=10, temperature=0.0)


Run = Callable[[EngineBackend], Awaitable[Any]]


def run(engine: EmbeddedEngine, work: Run, limit_s: float = BOUND_S) -> Any:
    async def main() -> Any:
        async with EngineBackend(engine.uri) as backend:
            return await asyncio.wait_for(work(backend), limit_s)

    return asyncio.run(main())


def ask(engine: EmbeddedEngine, *samplings: Sampling, prompt: Prompt = HELLO) -> list[Generated]:
    async def work(backend: EngineBackend) -> list[Generated]:
        return list(await asyncio.gather(*(backend.generate(prompt, s) for s in samplings)))

    return run(engine, work)


def ask_streamed(engine: EmbeddedEngine, sampling: Sampling) -> tuple[Generated, list[str]]:
    deltas: list[str] = []

    async def work(backend: EngineBackend) -> Generated:
        return await backend.generate(HELLO, sampling, deltas.append)

    return run(engine, work), deltas


def holds(given: dict[str, str], text: str) -> bool:
    if "json_schema" in given:
        return Draft202012Validator(json.loads(given["json_schema"])).is_valid(json.loads(text))
    known = {'root ::= ("a" | "b") "-" [0-9]': "[ab]-[0-9]", 'start: "x" /[yz]{2}/': "x[yz]{2}"}
    return re.fullmatch(known.get(given.get("ebnf", ""), given.get("regex", "")), text) is not None


def cpu_of(engine: EmbeddedEngine) -> Callable[[], float]:
    return lambda: cpu_s(engine.pid or 0)
