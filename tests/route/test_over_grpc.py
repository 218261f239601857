"""Engines behind one gRPC address."""

from __future__ import annotations

import asyncio
import ssl
import subprocess

import aiohttp
import grpc
import grpc.aio
import pytest
from route.routed_engines import Engine, request, routed, texts

from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.route.engines import Engines, HttpFace
from sgc.route.lines import GrpcFace
from sgc.route.proxy import Proxy
from sgc.route.service import serving_grpc
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.server.listen import Address, read_security, tls_context
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun


def test_replies_are_the_engines_and_go_to_those_who_asked():
    async def run() -> None:
        engines = [Engine("a"), Engine("b")]
        async with routed(*engines) as router:
            asked = [f"{n} " * 200 for n in range(30)]
            replies = await router.ask(*asked)
            assert texts(replies) == [text.upper() for text in asked]
            assert all(reply.generated.head == reply.generated.text for reply in replies)
            assert min(len(engine.asked) for engine in engines) > 10
            before = [{each.prompt.segments[0].text.text for each in e.asked} for e in engines]
            await router.ask(*(text + "more" for text in asked))
            for engine, known in zip(engines, before, strict=True):
                later = engine.asked[len(known) :]
                stayed = [each.prompt.segments[0].text.text[:-4] in known for each in later]
                assert sum(stayed) >= len(stayed) - 2

    asyncio.run(run())


def test_an_engine_is_believed_to_hold_what_its_pool_can():
    """All were taken for pools of 65,536 tokens, so small ones were sent what they had evicted."""

    async def run() -> None:
        async with routed(Engine("a")) as router:
            await router.ask(*(f"{n} " * 500 for n in range(30)))
            (member,) = router.engines.router.members
            assert member.held.room == 4000 * 4 // 128
            assert len(member.held) <= member.held.room

    asyncio.run(run())


@pytest.mark.parametrize(("says", "told"), [("", None), ("other", "gave another one")])
def test_an_engine_that_is_lost_in_the_middle_costs_no_text(says, told):
    async def run() -> None:
        bad, good = Engine("bad"), Engine("good", says=says)
        bad.breaks = 0
        async with routed(bad, good) as router:
            replies = await router.ask(*(f"{n}" * 200 for n in range(8)))
            moved = [reply for reply in replies if reply.HasField("error")]
            if told is None:
                assert texts(replies) == [f"{n}" * 200 for n in range(8)]
                assert all(r.generated.head == r.generated.text for r in replies)
            else:
                assert moved
                assert all(told in reply.error.message for reply in moved)
            assert [row["is_up"] for row in router.engines.rows()] == [False, True]

    asyncio.run(run())


def test_many_requests_find_an_engine_still_gone():
    """One of them closed the connection on which the others asked whether it is back."""

    async def run() -> None:
        gone, good, now = Engine("gone"), Engine("good"), [0.0]
        async with routed(gone, good) as router:
            router.engines.router._clock = lambda: now[0]
            (own,) = [e for n, e in router.engines.faces[0]._own.items() if n == gone.address]
            gone.breaks = 0
            await router.ask(*(f"{n}" * 200 for n in range(9)))
            gone.is_away = True
            now[0] += 60
            asked = [f"{n} again" * 200 for n in range(9)]
            assert texts(await router.ask(*asked)) == [text.upper() for text in asked]
            gone.is_away, gone.breaks = False, None
            now[0] += 60
            before = len(gone.asked)
            await router.ask(*(f"{n} and again" * 200 for n in range(9)))
            assert len(gone.asked) > before
            assert own._channel is not None

    asyncio.run(run())


def test_what_ends_every_engine_does_not_end_them_all():
    async def run() -> None:
        engines = [Engine(name) for name in "abcdef"]
        for engine in engines:
            engine.breaks = 0
        async with routed(*engines) as router:
            (reply,) = await router.ask("x" * 200)
            assert reply.error.code == pb.ERROR_CODE_UNAVAILABLE
            assert sum(len(engine.asked) for engine in engines) == 3

    asyncio.run(run())


def test_one_that_is_full_or_stops_is_passed_over_and_its_refusal_told_if_all_are():
    async def run() -> None:
        full, leaving, free = Engine("full"), Engine("leaving"), Engine("free")
        full.refuses = leaving.leaves = True
        async with routed(full, leaving, free) as router:
            assert texts(await router.ask("a", "b", "c")) == ["A", "B", "C"]
            free.refuses = True
            (reply,) = await router.ask("d")
            assert reply.error.code == pb.ERROR_CODE_RESOURCE_EXHAUSTED
            assert "has no room" in reply.error.message

    asyncio.run(run())


def test_what_is_cancelled_is_cancelled_at_its_engine():
    async def run() -> None:
        engine = Engine("a")
        engine.is_silent = True
        async with routed(engine) as router:
            call = router.stub.Session()
            await call.write(pb.ClientFrame(requests=[request(7, "x"), request(8, "y")]))
            while len(engine.asked) < 2:
                await asyncio.sleep(0.01)
            await call.write(pb.ClientFrame(cancels=[7]))
            while not engine.cancelled:
                await asyncio.sleep(0.01)
            assert engine.cancelled == [engine.asked[0].id]
            call.cancel()  # the client is gone
            while any(row["running"] for row in router.engines.rows()):
                await asyncio.sleep(0.01)

    asyncio.run(run())


def test_deadlines_are_passed_on_and_kept():
    async def run() -> None:
        engine = Engine("a")
        async with routed(engine) as router:
            await router.ask("x", timeout_s=50)
            assert 49 < engine.asked[0].timeout_s <= 50
            engine.is_silent = True
            (reply,) = await router.ask("x", timeout_s=0.05)
            assert reply.error.code == pb.ERROR_CODE_DEADLINE_EXCEEDED

    asyncio.run(run())


def test_an_id_that_is_in_use_is_an_error():
    async def run() -> None:
        engine = Engine("a")
        engine.is_silent = True
        async with routed(engine) as router:
            call = router.stub.Session()
            await call.write(pb.ClientFrame(requests=[request(7, "x"), request(7, "y")]))
            frame = await call.read()
            assert frame.replies[0].error.code == pb.ERROR_CODE_INVALID_ARGUMENT
            call.cancel()

    asyncio.run(run())


def test_log_probabilities_that_would_be_lost_are_not_streamed():
    async def run() -> None:
        async with routed(Engine("a")) as router:
            asked = request(7, "x")
            asked.generate.sampling.logprobs.stream = True
            call = router.stub.Session()
            await call.write(pb.ClientFrame(requests=[asked]))
            refusal = (await call.read()).replies[0].error
            assert refusal.code == pb.ERROR_CODE_INVALID_ARGUMENT
            assert "leave out logprobs.stream" in refusal.message
            call.cancel()

    asyncio.run(run())


def test_what_is_no_frame_ends_its_stream():
    async def run() -> None:
        at = grpc.aio.insecure_channel
        async with routed(Engine("a")) as router, at(router.uri) as channel:
            call = channel.stream_stream("/sgc.engine.v1.Engine/Session")()
            await call.write(b"no frame")
            assert await call.code() == grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(run())


def test_what_all_engines_are_and_did():
    async def run() -> None:
        engines = [Engine("a"), Engine("b"), Engine("c")]
        async with routed(*engines) as router:
            info = await router.stub.GetInfo(pb.InfoRequest())
            assert (info.model, info.max_in_flight, info.pool_tokens) == ("m", 192, 12000)
            await router.ask("x", "y")
            stats = await router.stub.GetStats(pb.StatsRequest())
            assert (stats.requests, stats.pool_tokens, stats.forward_s) == (2, 3000, 1.5)
            assert (await router.stub.FlushCache(pb.FlushCacheRequest())).freed_tokens == 15
            assert all(row["held_blocks"] == 0 for row in router.engines.rows())

    asyncio.run(run())


def test_an_engine_that_is_added_is_used_and_one_of_another_model_is_not():
    async def run() -> None:
        engines = [Engine("a"), Engine("b"), Engine("other", model="another")]
        async with routed(*engines, used=1) as router:
            router.engines.set([each.address for each in engines])
            asked = [f"{n} " * 200 for n in range(12)]
            assert texts(await router.ask(*asked)) == [text.upper() for text in asked]
            assert len(engines[1].asked) > 3
            assert not engines[2].asked
            router.engines.set([engines[1].address])
            await router.ask(asked[0])
            assert len(engines[0].asked) + len(engines[1].asked) == 13

    asyncio.run(run())


def test_tokens_are_checked_and_passed_on():
    async def run() -> None:
        engine = Engine("a", token="inner")
        async with routed(engine, own="inner", tokens=("inner", "theirs")) as router:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await router.ask("x")
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert texts(await router.ask("x", token="inner")) == ["X"]
            (reply,) = await router.ask("x", token="theirs")
            assert "wants a token" in reply.error.message
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await router.stub.GetInfo(
                    pb.InfoRequest(), metadata=(("authorization", "Bearer theirs"),)
                )
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        async with routed(engine, own="inner") as router:
            assert texts(await router.ask("x")) == ["X"]

    asyncio.run(run())


def test_none_that_answers_and_two_models():
    async def run(*engines: Engine) -> None:
        async with routed(*engines):
            pass

    async def gone() -> None:
        engine = Engine("a")
        async with routed(engine) as router:
            router.engines.set(["unix:/nowhere/engine"])
            client = EngineBackend(router.uri)
            with pytest.raises(EngineUnavailable):
                await client.generate((TextRun("x"),), Sampling(max_tokens=4))
            await client.close()

    with pytest.raises(UsageError, match="another model"):
        asyncio.run(run(Engine("a"), Engine("b", model="other")))
    asyncio.run(gone())


def test_both_faces_speak_tls(tmp_path, monkeypatch):
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    security, tls = read_security(None, cert, key), tls_context(cert, key)
    local = Address("localhost", 0)

    async def run(folder: str) -> None:
        engine, behind, face, connections = Engine("a"), Engines(), GrpcFace(), Connections()
        behind.faces.append(face)
        async with (
            engine.serving(folder),
            serving_grpc(behind, face, local, security) as uri,
            aiohttp.ClientSession() as session,
        ):
            behind.set([engine.address])
            proxy = Proxy(behind, HttpFace(session), BodyReader(connections))
            app = application(proxy.routes(), security, connections)
            assert uri.startswith("grpcs://localhost:")
            client = EngineBackend(uri)
            reply = await client.generate((TextRun("x"),), Sampling(max_tokens=4))
            assert reply.text == "X"
            await client.close()
            plain = EngineBackend(uri.replace("grpcs", "grpc"), connect_timeout_s=2)
            with pytest.raises(BackendError):
                await plain.info()
            await plain.close()
            async with serving(app, connections, local, tls) as url:
                assert url.startswith("https://")
                trusting = ssl.create_default_context(cafile=cert)
                async with session.get(f"{url}/health", ssl=trusting) as found:
                    assert found.status == 200
                async with session.post(f"{url}/generate", json={}, ssl=trusting) as found:
                    assert "over gRPC only" in await found.text()

    monkeypatch.setenv("SGC_TLS_CA", cert)
    asyncio.run(run(str(tmp_path)))
