"""Embeddings from Python: `endpoint.embed`, over gRPC, also in a program's tool."""

from __future__ import annotations

import asyncio
import math

import pytest

import sgc
from sgc.errors import BackendError, ContextExceeded, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.runs.endpoint import Endpoint
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend

FACTS = ["A young cat is a kitten.", "Paris is in France.", "The sea is salty."]


@pytest.fixture(scope="module")
def endpoint(engine: EmbeddedEngine):
    with sgc.RuntimeEndpoint(engine.uri) as made:
        yield made


def dot(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True))


def test_each_text_has_a_vector_of_length_one(endpoint: Endpoint) -> None:
    found = endpoint.embed([*FACTS, FACTS[0]])
    assert [len(each) for each in found] == [16] * 4
    assert all(dot(each, each) == pytest.approx(1.0) for each in found)
    assert found[0] == found[3]
    assert dot(found[0], found[1]) < 0.999
    (raw,) = endpoint.embed(FACTS[:1], normalize=False)
    length = math.hypot(*raw)
    assert length > 1.01
    assert [each / length for each in raw] == pytest.approx(found[0])
    assert endpoint.embed([]) == []


def test_the_engine_says_how_it_embeds(engine: EmbeddedEngine) -> None:
    async def main() -> tuple[pb.Info, pb.Stats, pb.Stats]:
        async with EngineBackend(engine.uri) as backend:
            before = await backend.stats()
            await backend.embed(["some words that nobody has embedded"] * 3)
            return await backend.info(), before, await backend.stats()

    info, before, after = asyncio.run(main())
    assert (info.pooling, info.hidden_size) == ("last", 16)
    n = (after.prompt_tokens - before.prompt_tokens) // 3
    assert after.finished_requests - before.finished_requests == 3
    assert after.positions_run - before.positions_run == n + 2  # once, and two last tokens again


def test_more_texts_than_a_session_may_have_requests(endpoint: Endpoint) -> None:
    found = endpoint.embed([f"{i}" for i in range(1100)])
    assert found[7] == endpoint.embed(["7"])[0]


def test_a_programs_tool_retrieves(endpoint: Endpoint) -> None:
    vectors = endpoint.embed(FACTS)

    @sgc.tool
    def nearest(question: str) -> str:
        (asked,) = endpoint.embed([question])
        return max(zip(FACTS, vectors, strict=True), key=lambda each: dot(asked, each[1]))[0]

    @sgc.function
    def answer(s, question: str):
        s += "Fact: " + nearest(question) + "\n" + sgc.gen("answer", max_tokens=4)

    state = answer.run(FACTS[2], backend=endpoint)
    assert state.text().startswith("Fact: The sea is salty.\n")


def test_what_cannot_be_embedded(endpoint: Endpoint, engine: EmbeddedEngine) -> None:
    for wrong in ("a text", [b"bytes"], [1]):
        with pytest.raises(UsageError, match="embed takes a list of texts"):
            endpoint.embed(wrong)  # type: ignore[arg-type]
    with pytest.raises(ContextExceeded, match="the text to embed is 60"):
        endpoint.embed(["fine", "x y " * 2000])

    async def none_of_them() -> None:
        async with EngineBackend(engine.uri) as backend:
            empty = pb.Request(embed=pb.Embed(last=0))
            await backend._ask(empty)

    with pytest.raises(BackendError, match="last is 0"):
        asyncio.run(none_of_them())


def test_other_backends_refuse_it() -> None:
    class Other(EngineBackend):
        embed = None  # type: ignore[assignment]

    with pytest.raises(UsageError, match="gives no embeddings here"):
        _Named(Other("unix:/nowhere")).embed(["x"])


class _Named(Endpoint):
    def get_model_name(self) -> str:
        return "m"
