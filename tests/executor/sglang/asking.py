"""Asking SGLang's API, of a server that scripts replies or of one that sends canned bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from waiting import BOUND_S

from sgc.errors import BackendError
from sgc.runtime.executor.backends.sglang.backend import SGLangBackend
from sgc.runtime.executor.interface.backend import (
    Sampling,
    TextRun,
)
from sgc.runtime.executor.interface.media import media

GREEDY = Sampling(max_tokens=12, temperature=0.0)
PROMPT = (TextRun("Say a word about Paris: "),)
PNG = media(b"\x89PNG\r\n\x1a\n rest")
VIDEO = media(b"\xff\xd8\xff frames", "video/jpeg-frames", n_frames=3)


def ask(url: str, use: Any, **settings: Any) -> Any:
    """What `use(backend)` gives."""

    async def run() -> Any:
        async with SGLangBackend(url, **settings) as backend:
            return await asyncio.wait_for(use(backend), BOUND_S)

    return asyncio.run(run())


# -- a server of canned bytes, for what a real one should not do --

INFO = b'{"model_path": "m"}'
DONE = b"data: [DONE]\n\n"


def http(body: bytes, status: str = "200 OK", head: str = "", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head += f"Connection: close\r\nContent-Length: {size}\r\n"
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def events(*chunks: bytes, ends: bool = True) -> list[bytes]:
    """A chunked reply, each chunk written by itself."""
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *[b"%x\r\n%s\r\n" % (len(c), c) for c in chunks], *[b"0\r\n\r\n"] * ends]


def completion(text: str, finish: Any = "stop", **meta: Any) -> dict[str, Any]:
    return {"text": text, "meta_info": {"finish_reason": finish and {"type": finish}, **meta}}


def event(text: str, finish: Any = None) -> bytes:
    return f"data: {json.dumps(completion(text, finish), ensure_ascii=False)}\n\n".encode()


class Canned:
    """Each request to /generate gets the next reply, then the connection ends."""

    def __init__(self, replies: list[Any], info: bytes) -> None:
        self.replies, self.info = replies, info
        self.heads: list[bytes] = []
        self.bodies: list[Any] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            reply: Any = self.info
            if head.startswith(b"POST"):
                self.heads.append(head)
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.bodies.append(json.loads(await reader.readexactly(size) or b"null"))
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            for piece in reply if isinstance(reply, list) else [reply]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.002)
        finally:
            writer.close()


@asynccontextmanager
async def canned_server(replies: list[Any], info: bytes) -> AsyncIterator[Canned]:
    canned = Canned(replies, info)
    server = await asyncio.start_server(canned.serve, "127.0.0.1", 0)
    canned.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield canned


def ask_canned(*replies: Any, use: Any = None, info: bytes | None = None, **settings: Any) -> Any:
    """What `use(backend)` gives, or the error, and the server."""
    use = use or (lambda backend: backend.generate(PROMPT, GREEDY))

    async def run() -> Any:
        async with (
            canned_server(list(replies), info or http(INFO)) as canned,
            SGLangBackend(canned.url, **settings) as backend,
        ):
            try:
                return await asyncio.wait_for(use(backend), BOUND_S), canned
            except BackendError as error:
                return error, canned

    return asyncio.run(run())


def streamed(*chunks: bytes, ends: bool = True, then: Any = (), stop: tuple[str, ...] = ()) -> Any:
    """The deltas of a stream, its result or error, and the server."""
    deltas: list[str] = []
    sampling = replace(GREEDY, stop=stop)
    found, canned = ask_canned(
        events(*chunks, ends=ends),
        *then,
        use=lambda backend: backend.generate(PROMPT, sampling, deltas.append),
    )
    return deltas, found, canned
