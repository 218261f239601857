"""Engines behind one HTTP address."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import web

from sgc.errors import EngineUnavailable, UsageError
from sgc.route import proxy
from sgc.route.engines import Engines, HttpFace
from sgc.route.places import read_engines
from sgc.route.prompts import cached_share_of, n_out_of, salt_of, text_of
from sgc.route.proxy import Proxy
from sgc.route.serving import Named, RouteConfig, _watch
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.engine.server.listen import Address, Security

LOCAL = Address("127.0.0.1", 0)


class Engine:
    """An HTTP engine that says who it is. ends: how it fails; status: of its answers."""

    def __init__(
        self,
        name: str,
        model: str = "m",
        ends: str = "",
        status: int = 200,
        token: str = "",
        begun: str | None = None,
    ) -> None:
        self.name, self.model, self.ends, self.status = name, model, ends, status
        self.token, self.own_headers = token, {"X-Own": name}
        if begun is not None:
            self.own_headers["sgc-begun"] = begun
        self.asked: list[dict] = []
        self.headers: list[dict] = []
        self.url = ""

    async def _models(self, request: web.Request) -> web.Response:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"error": {}}, status=401)
        return web.json_response({"data": [{"id": self.model}]})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        if self.ends == "at once":
            request.transport.abort()
            return web.Response()
        if body.get("stream"):
            answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            if self.ends != "before the first event":
                await answer.prepare(request)
                for n in range(3):
                    await answer.write(f"data: {self.name} {n}\n\n".encode())
                    await asyncio.sleep(0.01)
            if self.ends:
                request.transport.abort()
            return answer
        usage = {"prompt_tokens": 100, "completion_tokens": 4,
                 "prompt_tokens_details": {"cached_tokens": 80}}  # fmt: skip
        told = {"by": self.name, "usage": usage}
        return web.json_response(told, status=self.status, headers=self.own_headers)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        app = web.Application()
        app.add_routes([web.get("/v1/models", self._models), web.post("/{p:.*}", self._answer)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self.url
        finally:
            await runner.cleanup()


@contextlib.asynccontextmanager
async def routed(*engines: Engine, tokens: tuple[str, ...] = (), own: str = "") -> AsyncIterator:
    async with contextlib.AsyncExitStack() as stack:
        for engine in engines:
            await stack.enter_async_context(engine.serving())
        session = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
        behind, connections, face = Engines(), Connections(), HttpFace(session, own)
        behind.faces.append(face)
        behind.set([engine.url for engine in engines])
        await behind.meet()
        routing = Proxy(behind, face, BodyReader(connections))
        security = Security(Tokens(tokens))
        app = application(routing.routes(), security, connections, frozenset({"/health"}))
        url = await stack.enter_async_context(serving(app, connections, LOCAL, None))
        yield url, session, behind


def chat(*texts: str, **fields) -> dict:
    messages = [{"role": "user", "content": text} for text in texts]
    return {"model": "m", "messages": messages, **fields}


async def post(session, url: str, body: dict, **headers: str) -> tuple[int, str]:
    async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as found:
        return found.status, await found.text()


def test_a_conversation_stays_where_it_began():
    async def run() -> None:
        engines = [Engine("a"), Engine("b"), Engine("c")]
        async with routed(*engines) as (url, session, _):
            for subject in "xyz":
                turns = [f"{subject} " * 300]
                by = set()
                for turn in range(4):
                    status, text = await post(session, url, chat(*turns))
                    assert status == 200
                    by.add(json.loads(text)["by"])
                    turns.append(f"and {turn}")
                assert len(by) == 1
        assert [len(engine.asked) for engine in engines] == [4, 4, 4]

    asyncio.run(run())


@pytest.mark.parametrize("ends", ["at once", "before the first event"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_an_engine_that_ends_costs_no_request(ends, is_stream):
    async def run() -> None:
        bad, good = Engine("bad", ends=ends), Engine("good")
        async with routed(bad, good) as (url, session, behind):
            for n in range(6):
                body = chat(f"{n} " * 200, **({"stream": True} if is_stream else {}))
                status, text = await post(session, url, body)
                assert status == 200
                if ends == "at once" or is_stream:
                    assert "good" in text
                    assert "bad" not in text
            assert all(row["running"] == 0 for row in behind.rows())

    asyncio.run(run())


def test_a_stream_that_has_begun_ends_with_an_error():
    async def run() -> None:
        async with routed(Engine("a", ends="later")) as (url, session, _):
            status, text = await post(session, url, chat("x", stream=True))
            assert status == 200
            *events, last = text.strip().split("\n\n")
            assert events == ["data: a 0", "data: a 1", "data: a 2"]
            assert json.loads(last.removeprefix("data: "))["error"]["code"] == "unavailable"
            status, text = await post(session, url, chat("x"))
            assert (status, json.loads(text)["error"]["code"]) == (503, "unavailable")
            async with session.get(f"{url}/health") as found:
                assert found.status == 503

    asyncio.run(run())


def test_a_client_that_hangs_up_is_no_failure_of_its_engine(monkeypatch):
    class HungUp(web.StreamResponse):
        async def write(self, data: bytes) -> None:
            raise aiohttp.ClientConnectionResetError("the client is gone")

    async def run() -> None:
        async with routed(Engine("a"), Engine("b")) as (url, session, behind):
            with monkeypatch.context() as patch:
                names = SimpleNamespace(StreamResponse=HungUp, Response=web.Response)
                patch.setattr(proxy, "web", names)
                found = await session.post(
                    f"{url}/v1/chat/completions", json=chat("x", stream=True)
                )
                found.close()
                while any(row["running"] for row in behind.rows()):
                    await asyncio.sleep(0.01)
            assert all(row["is_up"] for row in behind.rows())

    asyncio.run(run())


def test_an_engine_that_is_back_is_up_and_one_that_has_another_model_is_not_used():
    async def run() -> None:
        back, other, now = Engine("back", ends="at once"), Engine("other"), [0.0]
        async with routed(back, other) as (url, session, behind):
            behind.router._clock = lambda: now[0]
            for n in range(4):
                assert (await post(session, url, chat(f"{n} " * 200)))[0] == 200
            assert [row["is_up"] for row in behind.rows()] == [False, True]
            back.ends, back.model = "", "another"
            other.ends = "at once"
            now[0] += 60
            status, text = await post(session, url, chat("x"))
            assert (status, "no engine answers" in text) == (503, True)
            assert [each.name for each in (back, other) if each.asked[-1] == chat("x")] == ["other"]
            back.model = "m"
            now[0] += 60
            status, text = await post(session, url, chat("y", stream=True))
            assert (status, "back" in text) == (200, True)
            assert behind.rows()[0]["is_up"]

    asyncio.run(run())


def test_one_that_is_full_is_passed_over_and_its_refusal_told_if_all_are():
    async def run() -> None:
        full, free = Engine("full", status=429), Engine("free")
        async with routed(full, free) as (url, session, _):
            for n in range(4):
                status, text = await post(session, url, chat(f"{n} " * 100))
                assert (status, json.loads(text)["by"]) == (200, "free")
            free.status = 429
            status, text = await post(session, url, chat("again"))
            assert status == 429

    asyncio.run(run())


def test_a_program_that_has_begun_is_not_sent_again():
    async def run() -> None:
        lost = [Engine("a", ends="at once"), Engine("b", ends="at once")]
        async with routed(*lost) as (url, session, _):
            status, text = await post(session, url, {**chat("x"), "model": "program/tip"})
            assert status == 503
            assert "ran a program" in text
        assert sum(len(engine.asked) for engine in lost) == 1

    asyncio.run(run())


@pytest.mark.parametrize("begun", [None, "no"])
def test_a_program_that_is_refused_goes_to_another_engine_if_it_has_not_begun(begun):
    """A 503 in the middle of a run was taken for a refusal, and the run began again elsewhere."""

    async def run() -> None:
        engines = [Engine("a", status=503, begun=begun), Engine("b", status=503, begun=begun)]
        async with routed(*engines) as (url, session, _):
            status, _ = await post(session, url, {**chat("x"), "model": "program/tip"})
            assert status == 503
        assert sum(len(engine.asked) for engine in engines) == (2 if begun else 1)

    asyncio.run(run())


def test_headers_go_through_but_those_of_a_connection():
    async def run() -> None:
        engine = Engine("a")
        async with routed(engine, tokens=("secret",)) as (url, session, _):
            status, _ = await post(session, url, chat("x"))
            assert status == 401
            status, _ = await post(
                session, url, chat("x"), Authorization="Bearer secret", Traceparent="t",
                Connection="x-hop", **{"X-Hop": "1"},
            )  # fmt: skip
            assert status == 200
        (sent,) = engine.headers
        assert (sent["Authorization"], sent["traceparent"]) == ("Bearer secret", "t")
        assert "X-Hop" not in sent
        assert sent["Host"] == engine.url.removeprefix("http://")

    asyncio.run(run())


def test_engines_of_two_models_are_refused_and_none_is_an_error():
    async def run(*engines: Engine) -> None:
        async with routed(*engines):
            pass

    with pytest.raises(UsageError, match="serves other, and the others m"):
        asyncio.run(run(Engine("a"), Engine("b", model="other")))

    async def nobody() -> None:
        async with aiohttp.ClientSession() as session:
            engines = Engines()
            engines.faces.append(HttpFace(session))
            engines.set(["http://127.0.0.1:9"])
            await engines.meet()

    with pytest.raises(EngineUnavailable, match="none of 1 engines answers"):
        asyncio.run(nobody())


def test_the_router_has_a_token_of_its_own_and_passes_on_that_of_clients():
    async def run() -> None:
        engine = Engine("a", token="inner")
        async with routed(engine, own="inner") as (url, session, _):
            await post(session, url, chat("x"))
            await post(session, url, chat("x"), Authorization="Bearer theirs")
        told = [each.get("Authorization") for each in engine.headers]
        assert told == ["Bearer inner", "Bearer theirs"]

    asyncio.run(run())


def test_a_file_of_engines_is_read_again(tmp_path: Path):
    async def run() -> None:
        first, second = Engine("a"), Engine("b")
        async with second.serving(), routed(first) as (url, session, behind):
            file = tmp_path / "engines"
            file.write_text(f"# all\n{first.url}\n")
            told: list[str] = []
            config = RouteConfig(Named((), file), "", None)
            watching = asyncio.create_task(_watch(config, behind, told.append))
            file.write_text(f"{second.url}/\n")
            while behind.names != [second.url]:
                await asyncio.sleep(0.05)
            _, text = await post(session, url, chat("x"))
            assert json.loads(text)["by"] == "b"
            file.write_text("nonsense\n")
            while len(told) < 2:
                await asyncio.sleep(0.05)
            assert "'nonsense' is no address" in told[-1]
            assert behind.names == [second.url]
            watching.cancel()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("urls", "told"),
    [([], "no engine is named"), (["ftp://a"], "expected http://HOST:PORT"),
     (["http://a", "http://b,grpc://b:1"], "http://a has no grpc:// address"),
     (["http://a,http://b"], "both of one engine"), (["grpc://a:1,unix:/b"], "both of one engine"),
     (["http://a", "http://a/"], "each once")],
)  # fmt: skip
def test_addresses_that_are_none(urls, told):
    with pytest.raises(UsageError) as caught:
        read_engines(urls, None)
    assert told in str(caught.value)


def test_what_a_body_says():
    assert text_of(chat("a", "b")).startswith(text_of(chat("a"))[:-2])
    assert text_of({"input_ids": [1, 2, 3]}) == "[1, 2, 3]"
    assert salt_of({"model": "m"}, b"one") != salt_of({"model": "m"}, b"two")
    assert n_out_of({"max_tokens": 5}, 100) == 5
    assert n_out_of({"sampling_params": {"max_new_tokens": 7}}, 100) == 7
    assert n_out_of({"max_tokens": None, "sampling_params": "x"}, 100) == 100
    native = {"meta_info": {"prompt_tokens": 10, "cached_tokens": 5}}
    assert cached_share_of(native) == 0.5
    for reply in ([], {}, {"usage": 3}, {"usage": {"prompt_tokens": 0}}, {"usage": {}}):
        assert cached_share_of(reply) is None
