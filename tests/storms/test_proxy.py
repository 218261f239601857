"""The reverse proxy of the docs before a server: nginx passes on what clients and the server say.

With `-s` it prints the times that docs/deploy.md has.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from storms.conftest import TOKENS
from storms.harness import Server, bearer, channel
from storms.traffic import http_request
from waiting import until

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc

CONF = Path(__file__).parents[2] / "docs" / "deploy" / "nginx.conf"
PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
CHAT = {"model": "fake", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
N_TOKENS = 2000
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx"),
]


@pytest.fixture(scope="module")
def proxy(storm_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of its two sockets, `http` and `grpc`."""
    folder = tmp_path_factory.mktemp("nginx")
    text = CONF.read_text(encoding="utf-8")
    for old, new in {
        "127.0.0.1:30000": f"127.0.0.1:{storm_server.http}",
        "127.0.0.1:30100": storm_server.target,
        "listen 8080;": f"listen unix:{folder}/http;",
        "listen 8081 http2;": f"listen unix:{folder}/grpc http2;",
    }.items():
        assert old in text
        text = text.replace(old, new)
    temporary = "".join(f"{name}_temp_path {folder}/{name};" for name in PATHS)
    head = f"daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}"
    whole = f"{head} http {{ access_log off; {temporary}\n{text} }}"
    (folder / "conf").write_text(whole, encoding="utf-8")
    command = ["nginx", "-e", f"{folder}/errors", "-c", f"{folder}/conf"]
    subprocess.run([*command, "-t"], check=True)
    with subprocess.Popen(command) as running:
        until((folder / "grpc").exists)
        yield folder
        running.terminate()


async def asked(proxy: Path, body: dict[str, Any], token: str) -> tuple[Any, Any]:
    reader, writer = await asyncio.open_unix_connection(str(proxy / "http"))
    data = http_request("/v1/chat/completions", body, token)
    head, _, content = data.partition(b"\r\n\r\n")
    writer.write(head + b"\r\nX-Request-Id: of-the-client\r\n\r\n")
    await asyncio.sleep(0.1)
    writer.write(content)
    return reader, writer


def test_a_stream_comes_piece_by_piece(storm_server: Server, proxy: Path) -> None:
    async def main() -> None:
        body = {**CHAT, "max_tokens": N_TOKENS, "ignore_eos": True}
        began, times = time.monotonic(), []
        reader, writer = await asked(proxy, body, TOKENS[0])
        data = b""
        while b"data: [DONE]" not in data and (piece := await reader.read(1 << 16)):
            times.append(time.monotonic() - began)
            data += piece
        writer.close()
        assert data.startswith(b"HTTP/1.1 200")
        assert b"of-the-client" in data
        assert len(times) > 20
        print(f"HTTP: {len(times)} pieces, first and last after {times[0]:.3f}, {times[-1]:.3f} s")
        refused, writer = await asked(proxy, body, "no token")
        said = await refused.readuntil(b"\r\n\r\n")
        writer.close()
        assert b"401" in said.partition(b"\r\n")[0]
        assert b"www-authenticate" in said.lower()

    asyncio.run(main())


def test_a_session_comes_frame_by_frame(proxy: Path) -> None:
    async def main() -> None:
        request = pb.Request(id=1)
        request.prompt.segments.add().text.text = "a story"
        sampling = request.generate.sampling
        sampling.max_tokens, sampling.ignore_eos, request.generate.stream = N_TOKENS, True, True
        sampling.top_p, sampling.top_k, sampling.repetition_penalty = 1, -1, 1
        async with channel(f"unix:{proxy}/grpc") as opened:
            call = engine_pb2_grpc.EngineStub(opened).Session(metadata=bearer(TOKENS[0]))
            began = time.monotonic()
            await call.write(pb.ClientFrame(requests=[request]))
            times, replies = [], []
            async for frame in call:
                times.append(time.monotonic() - began)
                replies += frame.replies
                if replies[-1].HasField("generated"):
                    await call.done_writing()
        text = "".join(each.delta.text for each in replies)
        assert text == replies[-1].generated.text
        assert len(times) > 20
        print(f"gRPC: {len(times)} frames, the first after {times[0]:.3f} s")

    asyncio.run(main())


def test_a_client_that_hangs_up_is_a_cancelled_request(storm_server: Server, proxy: Path) -> None:
    async def main() -> None:
        before = (await storm_server.stats()).cancelled_requests
        body = {**CHAT, "max_tokens": 4000, "ignore_eos": True}
        reader, writer = await asked(proxy, body, TOKENS[0])
        await reader.readuntil(b"data: {")
        writer.transport.abort()
        waited = await storm_server.idle()
        assert (await storm_server.stats()).cancelled_requests == before + 1
        print(f"idle {waited:.3f} s after a client hung up")

    asyncio.run(main())
