"""What providers' prompt caches do, as far as is known, and what a request then counts and costs.

Written from the vendors' rules (dated November 2026), not from the code that places marks: it sees
the body of each request as it would be sent, and nothing else. Sizes are in tokens of CHARS
characters, which is not what the placement guesses. Times are those of a virtual clock.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sgc.runtime.executor.backends.providers.anthropic import wire as anthropic_wire
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.openai import wire as openai_wire
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.reply import Replies, Reply
from sgc.runtime.executor.interface.backend import FinishReason

Json = dict[str, Any]
CHARS = 3.7
FIRST_TEXT_S, REST_S = 1.0, 3.0


class VirtualClock:
    """Jumps to the next sleeper when nothing else happens."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._n = 0
        self._driver: asyncio.Task[None] | None = None

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._n += 1
        heapq.heappush(self._sleepers, (self.time + seconds, self._n, woken))
        if self._driver is None or self._driver.done():
            self._driver = asyncio.ensure_future(self._drive())
        await woken

    async def _drive(self) -> None:
        while self._sleepers:
            n = self._n
            for _ in range(40):
                await asyncio.sleep(0)
            if self._n == n:
                at, _, woken = heapq.heappop(self._sleepers)
                if not woken.done():
                    self.time = max(self.time, at)
                    woken.set_result(None)


@dataclass
class Bill:
    """Tokens of all requests, and their cost in tokens of plain input."""

    plain: int = 0
    written: int = 0
    written_1h: int = 0
    cached: int = 0
    n_requests: int = 0
    largest: int = 0

    @property
    def prompt(self) -> int:
        return self.plain + self.written + self.written_1h + self.cached

    def cost(self, write: float, read: float) -> float:
        return self.plain + write * self.written + 2 * self.written_1h + read * self.cached

    def add(self, total: int, cached: int, written: int, written_1h: int = 0) -> None:
        assert min(cached, written, written_1h, total - cached - written - written_1h) >= 0
        self.plain += total - cached - written - written_1h
        self.written, self.written_1h = self.written + written, self.written_1h + written_1h
        self.cached += cached
        self.n_requests += 1
        self.largest = max(self.largest, total)


@dataclass
class _Entries:
    """What is kept, by a hash: from when it can be read, and until when."""

    found: dict[str, tuple[float, float]] = field(default_factory=dict)

    def has(self, key: str, now: float) -> bool:
        ready, until = self.found.get(key, (0.0, -1.0))
        return ready <= now < until

    def keep(self, key: str, now: float, ttl_s: float) -> None:
        """Read just now, which begins its time anew; or written, and readable after a while."""
        ready = self.found[key][0] if self.has(key, now) else now + FIRST_TEXT_S
        self.found[key] = (ready, max(now, ready) + ttl_s)


@dataclass(frozen=True)
class _Block:
    """A content block. end: a hash of the prompt up to it; tokens: as many; mark: its ttl."""

    end: str
    tokens: int
    mark: str | None
    is_last: bool  # of its message


def _blocks(
    first: Any, messages: list[tuple[str, Any]], mark_of: Callable[[Json], Any]
) -> list[_Block]:
    running = hashlib.sha256(json.dumps(first, sort_keys=True).encode())
    n_chars, found = 0, []
    for number, (role, content) in enumerate(messages):
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for index, part in enumerate(parts):
            running.update(json.dumps([number, role, part["text"]]).encode())
            n_chars += len(part["text"])
            is_last = index == len(parts) - 1
            tokens = int(n_chars / CHARS)
            found.append(_Block(running.hexdigest(), tokens, mark_of(part), is_last))
    return found


class AnthropicCache:
    """Up to four marks; each finds an entry at most 20 blocks back; what is shorter than the floor
    is not kept, silently; a longer ttl comes first; `cache_control` beside the messages marks the
    last block.
    """

    write, read, look_back, ttl_s = 1.25, 0.1, 20, {"5m": 300.0, "1h": 3600.0}

    def __init__(self, floor: int = 512) -> None:
        self.floor, self.entries, self.bill = floor, _Entries(), Bill()

    def ask(self, body: Json, now: float) -> Json:
        system = [("system", [block]) for block in body.get("system", [])]
        messages = [(m["role"], m["content"]) for m in body["messages"]]
        shape = body.get("output_config", {}).get("format")
        blocks = _blocks(shape, [*system, *messages], lambda part: _ttl(part.get("cache_control")))
        if "cache_control" in body:
            last = blocks[-1]
            ttl = _ttl(body["cache_control"])
            blocks[-1] = _Block(last.end, last.tokens, ttl, last.is_last)
        marks = [i for i, block in enumerate(blocks) if block.mark is not None]
        ttls = [blocks[i].mark for i in marks]
        assert len(marks) <= 4, "400: at most four blocks with cache_control"
        assert ttls == sorted(ttls), "400: a ttl of 1h must not come after one of 5m"
        usage = self._count(blocks, marks, now)
        return {**usage, "output_tokens": 50}

    def _count(self, blocks: list[_Block], marks: list[int], now: float) -> Json:
        seen = (i for m in marks for i in range(max(m - self.look_back + 1, 0), m + 1))
        hit = max((i for i in seen if self.entries.has(blocks[i].end, now)), default=-1)
        cached = blocks[hit].tokens if hit >= 0 else 0
        done, written = cached, Counter({"5m": 0, "1h": 0})
        for i in marks:
            block = blocks[i]
            assert block.mark is not None
            if block.tokens < self.floor:
                continue
            if i > hit:
                written[block.mark] += block.tokens - done
                done = block.tokens
            self.entries.keep(block.end, now, self.ttl_s[block.mark])
        if hit >= 0:
            self.entries.keep(blocks[hit].end, now, self.ttl_s["5m"])
        total = blocks[-1].tokens
        self.bill.add(total, cached, written["5m"], written["1h"])
        return {
            "input_tokens": total - done,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": sum(written.values()),
            "cache_creation": {
                "ephemeral_5m_input_tokens": written["5m"],
                "ephemeral_1h_input_tokens": written["1h"],
            },
        }


def _ttl(control: Any) -> str | None:
    return None if control is None else control.get("ttl", "5m")


class OpenAIMarkedCache:
    """GPT-5.6 and later: the last four marks are written, which costs; a match is looked for at the
    last 80. Without mode=explicit the end of the latest message is marked, too, in place of one.
    """

    write, read, floor, ttl_s = 1.25, 0.1, 1024, 1800.0

    def __init__(self) -> None:
        self.entries, self.bill = _Entries(), Bill()

    def ask(self, body: Json, now: float) -> Json:
        messages = [(m["role"], m["content"]) for m in body["messages"]]
        shape = body.get("response_format")
        blocks = _blocks(shape, messages, lambda part: part.get("prompt_cache_breakpoint"))
        is_implicit = body.get("prompt_cache_options", {}).get("mode") != "explicit"
        marks = [b for b in blocks if b.mark is not None]
        writes = marks[-3:] if is_implicit else marks[-4:]
        looked = marks[-80:]
        if is_implicit:
            writes = [*writes, blocks[-1]]
            # Where the latest message of an earlier request ended there was its mark.
            looked = sorted({*looked, *(b for b in blocks if b.is_last)}, key=lambda b: b.tokens)
        total = blocks[-1].tokens
        hits = [b.tokens for b in looked[-80:] if self.entries.has(b.end, now)]
        cached = max(hits, default=0)
        kept = [b for b in writes if b.tokens >= self.floor]
        done = max([cached, *(b.tokens for b in kept)])
        for block in looked:
            if self.entries.has(block.end, now) and block.tokens == cached:
                self.entries.keep(block.end, now, self.ttl_s)
        for block in kept:
            self.entries.keep(block.end, now, self.ttl_s)
        self.bill.add(total, cached, done - cached)
        return _openai_usage(total, cached, done - cached)


class OpenAIAutomaticCache:
    """Before GPT-5.6: prefixes from 1024 tokens on in steps of 128, nothing to pay for writing. A
    machine is chosen by the first 256 tokens and the key; beyond 15 requests a minute to one of
    these, they go to machines that have seen nothing.
    """

    write, read, floor, step, per_minute, ttl_s = 1.0, 0.1, 1024, 128, 15, 300.0

    def __init__(self) -> None:
        self.machines: dict[Any, _Entries] = defaultdict(_Entries)
        self.times: dict[Any, list[float]] = defaultdict(list)
        self.bill = Bill()

    def ask(self, body: Json, now: float) -> Json:
        assert "prompt_cache_options" not in body
        text = json.dumps(body.get("response_format")) + "".join(
            f"<{m['role']}>{m['content']}" for m in body["messages"]
        )
        total = int(len(text) / CHARS)
        entries = self._machine(text, body.get("prompt_cache_key", ""), now)
        steps = range(self.floor, total + 1, self.step)
        ends = [(n, hashlib.sha256(text[: int(n * CHARS)].encode()).hexdigest()) for n in steps]
        cached = max((n for n, end in ends if entries.has(end, now)), default=0)
        for _, end in ends:
            entries.keep(end, now, self.ttl_s)
        self.bill.add(total, cached, 0)
        return _openai_usage(total, cached, 0)

    def _machine(self, text: str, key: str, now: float) -> _Entries:
        route = (text[: int(256 * CHARS)], key)
        times = self.times[route] = [t for t in self.times[route] if t > now - 60] + [now]
        is_spilt = len(times) > self.per_minute
        return _Entries() if is_spilt else self.machines[route]


def _openai_usage(total: int, cached: int, written: int) -> Json:
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    return {"prompt_tokens": total, "completion_tokens": 50, "prompt_tokens_details": details}


Cache = AnthropicCache | OpenAIMarkedCache | OpenAIAutomaticCache


class CacheApi:
    """An `Api` without a network: bodies go to the cache's rules, replies are made of the prompt.

    bodies: what was asked, in order.
    """

    def __init__(
        self, cache: Cache, clock: VirtualClock, reply: Callable[[Json], str] | None = None
    ) -> None:
        self.cache, self.clock, self.reply = cache, clock, reply or answer
        self.bodies: list[Json] = []

    @property
    def base_url(self) -> str:
        return "http://cache.test"

    async def send(
        self, lowered: Lowered, facts: Facts, on_text: Callable[[str], None] | None
    ) -> Replies:
        wire: Any = anthropic_wire if facts.provider == "anthropic" else openai_wire
        body = json.loads(json.dumps(wire.body_of(lowered, facts, on_text is not None)))
        self.bodies.append(body)
        usage = self.cache.ask(body, self.clock.now())
        text = self.reply(body)
        await self.clock.sleep(FIRST_TEXT_S)
        if on_text is not None:
            on_text(text[:1])
        await self.clock.sleep(REST_S)
        return Replies((Reply(text, FinishReason.STOP),), wire.spent_of(usage))

    async def close(self) -> None:
        pass


def schema_of(body: Json) -> Json | None:
    found = body.get("output_config", {}).get("format")
    if "response_format" in body:
        found = body["response_format"]["json_schema"]
    return found["schema"] if found else None


def said(body: Json) -> str:
    """All texts of a request, however they are cut."""
    parts: list[str] = [block["text"] for block in body.get("system", [])]
    for message in body["messages"]:
        content = message["content"]
        parts.append(f"<{message['role']}>")
        parts += [content] if isinstance(content, str) else [part["text"] for part in content]
    return "".join(parts)


def answer(body: Json) -> str:
    """About 60 tokens, told apart by the prompt."""
    schema = schema_of(body)
    if schema is not None:
        return json.dumps({"value": schema["properties"]["value"]["enum"][0]})
    digest = hashlib.sha256(said(body).encode()).hexdigest()[:8]
    n_turns = sum(message["role"] == "assistant" for message in body["messages"])
    return f"{'DONE' if n_turns >= 5 else 'MORE'} {digest} " + "it is as the text says, " * 9
