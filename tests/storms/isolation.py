"""What one token's client can learn of another's: whether a look-up ever finds what another token
has cached, and whether the time to a first token tells if it has."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from storms.harness import Server, bearer, channel

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.runtime.engine.preparing.salts import cache_key, domain_of

FRAME = 200  # requests
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_AUC = 0.55


def names(n: int) -> list[str]:
    """Tokens of clients."""
    return [f"token-{i}-{random.Random(i).getrandbits(64):x}" for i in range(n)]


def prompt_of(text: str) -> pb.Prompt:
    return pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text=text))])


def generation(number: int, prompt: pb.Prompt, salt: bytes = b"") -> pb.Request:
    sampling = pb.Sampling(max_tokens=1, top_p=1.0, top_k=-1, repetition_penalty=1.0)
    generate = pb.Generate(sampling=sampling)
    return pb.Request(id=number, prompt=prompt, generate=generate, cache_salt=salt)


# Look-ups.


async def lookups(server: Server, tokens: Sequence[str], n: int) -> dict[str, Any]:
    """The first token's client caches prompts, under salts of all kinds; each other one then looks
    each of them up once. The first looks them up again, for comparison."""
    owner, others = tokens[0], tokens[1:]
    n_prompts = -(-n // len(others))
    asked = [(_secret(i), _salt(i, owner)) for i in range(n_prompts)]
    await _cached(server, owner, asked)
    again = await _cached(server, owner, asked)
    hits, looked = 0, 0
    for token in others:
        found = await _cached(server, token, asked[: n - looked])
        looked += len(found)
        hits += sum(map(bool, found))
    return {
        "tokens": len(tokens),
        "prompts": n_prompts,
        "lookups": looked,
        "hits": hits,
        "hits_of_its_own": sum(map(bool, again)) / len(again),
    }


def _secret(i: int) -> pb.Prompt:
    """A prompt that begins unlike all others."""
    ids = [4 + i, *random.Random(i).choices(range(4, 2000), k=11)]
    return pb.Prompt(segments=[pb.Segment(tokens=pb.TokenRun(ids=ids))])


def _salt(i: int, owner: str) -> bytes:
    """None, a client's own, and one made to look like another token's key."""
    forged = cache_key(domain_of(owner), b"")[:64]
    return (b"", b"shared salt", forged)[i % 3]


async def _cached(
    server: Server, token: str, asked: Sequence[tuple[pb.Prompt, bytes]]
) -> list[int]:
    """The cached tokens of each prompt."""
    found: dict[int, int] = {}
    async with channel(server.target) as opened:
        call = engine_pb2_grpc.EngineStub(opened).Session(metadata=bearer(token))
        for start in range(0, len(asked), FRAME):
            part = asked[start : start + FRAME]
            requests = [generation(start + i, *each) for i, each in enumerate(part)]
            await call.write(pb.ClientFrame(requests=requests))
            while len(found) < start + len(part):
                for reply in (await call.read()).replies:
                    assert reply.HasField("generated"), reply
                    found[reply.id] = reply.generated.usage.cached_tokens
        await call.done_writing()
    return [found[i] for i in range(len(asked))]


# Times.


def auc(positive: Iterable[float], negative: Iterable[float]) -> float:
    """The share of pairs in which the positive is smaller; ties count half."""
    a, b = np.sort(np.fromiter(positive, float)), np.fromiter(negative, float)
    above = len(a) - np.searchsorted(a, b, "right")
    below = np.searchsorted(a, b, "left")
    return float(np.mean(below + (len(a) - above - below) / 2) / len(a))


def interval(positive: Sequence[float], negative: Sequence[float], n: int = 1000) -> list[float]:
    """95%, by resampling."""
    rng = np.random.default_rng(1)
    a, b = np.array(positive), np.array(negative)
    found = [auc(rng.choice(a, len(a)), rng.choice(b, len(b))) for _ in range(n)]
    return [round(float(x), 4) for x in np.percentile(found, [2.5, 97.5])]


def probe(rng: random.Random, n_words: int) -> str:
    """A text of words that nobody else has."""
    words = ("".join(rng.choices(LETTERS, k=8)) for _ in range(n_words))
    return " ".join(words)


async def timings(
    server: Server,
    victim: str,
    attacker: str,
    n: int,
    n_words: int = 500,
    over_http: bool = False,
) -> dict[str, Any]:
    """Times the attacker's first token of prompts that the victim has asked for, or not (it then
    asked for another of the same length), in random order."""
    rng = random.Random(f"{victim} {attacker}")
    times: dict[bool, list[float]] = {True: [], False: []}
    async with channel(server.target) as first, channel(server.target) as second:
        calls = [
            engine_pb2_grpc.EngineStub(each).Session(metadata=bearer(token))
            for each, token in ((first, victim), (second, attacker))
        ]
        for i in range(n + 10):
            text, other = probe(rng, n_words), probe(rng, n_words)
            is_cached = rng.random() < 0.5
            await _first_token(calls[0], i, text if is_cached else other)
            if over_http:
                took_s = await asyncio.to_thread(_http_first_token, server.http, attacker, text)
            else:
                took_s = await _first_token(calls[1], i, text)
            if i >= 10:
                times[is_cached].append(took_s)
        for call in calls:
            call.cancel()
    found = auc(times[True], times[False])
    medians = {str(kind): round(1000 * float(np.median(x)), 3) for kind, x in times.items()}
    return {
        "n": n,
        "auc": round(found, 4),
        "interval": interval(times[True], times[False]),
        "median_ms_if_cached": medians,
    }


async def _first_token(call: Any, number: int, text: str) -> float:
    frame = pb.ClientFrame(requests=[generation(number, prompt_of(text))])
    start = time.perf_counter()
    await call.write(frame)
    frame = await call.read()
    took_s = time.perf_counter() - start
    assert frame.replies[0].HasField("generated"), frame
    return took_s


def _http_first_token(port: int, token: str, text: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    body = json.dumps({"text": text, "sampling_params": {"max_new_tokens": 1}})
    start = time.perf_counter()
    connection.request("POST", "/generate", body, {"Authorization": f"Bearer {token}"})
    reply = connection.getresponse()
    reply.read()
    took_s = time.perf_counter() - start
    connection.close()
    assert reply.status == 200
    return took_s


def tells(found: dict[str, Any]) -> bool:
    """Whether a classifier on the times is told something: either way."""
    low, high = found["interval"]
    return max(high, 1 - low) > MOST_AUC
