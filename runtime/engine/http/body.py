"""A request's body as JSON: bounded in bytes, in time and in depth, and nothing but text inside."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

from aiohttp import web

from sgc.runtime.engine.bounds import MAX_MESSAGE_BYTES
from sgc.runtime.engine.http.errors import HttpError, Json, bad

MAX_DEPTH = 64
READ_TIMEOUT_S = 30.0
INLINE_BYTES = 256 * 1024  # more than this is parsed on a thread
MAX_LARGE_BODIES = 8  # read at a time; others wait


class BodyReader:
    def __init__(self) -> None:
        self._large = asyncio.Semaphore(MAX_LARGE_BODIES)

    async def read(self, request: web.Request) -> Json:
        """The object that the body is; raises HttpError 400, 408, 413 or 415."""
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise HttpError(415, "a compressed body is not taken; send it as it is")
        length = request.content_length
        if length is not None and length > MAX_MESSAGE_BYTES:
            raise too_large()
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                if length is not None and length <= INLINE_BYTES:
                    return parsed(await request.read())
                async with self._large:
                    return await asyncio.to_thread(parsed, await request.read())
        except TimeoutError as error:
            raise HttpError(408, f"the body did not come within {READ_TIMEOUT_S:g} s") from error


def too_large() -> HttpError:
    return HttpError(413, f"the body may have {MAX_MESSAGE_BYTES} bytes", code="body_too_large")


def parsed(data: bytes) -> Json:
    """The JSON object of a body; raises HttpError."""
    try:
        found = json.loads(data.decode(), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise bad(f"the body is not JSON: {error}", code="invalid_json") from error
    if not isinstance(found, dict):
        raise bad("the body must be a JSON object", code="invalid_json")
    _check(found)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _check(found: Json) -> None:
    """Depth, level by level, and that every text could be written as UTF-8."""
    level: list[Any] = [found]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.keys()
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str) and not value.isascii():
                _check_text(value)
        if not below:
            return
        level = below
    raise _too_deep()


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = text[error.start]
        raise bad(f"a text holds a lone surrogate ({found!r}), which is no character") from error


def _too_deep() -> HttpError:
    return bad(f"the body is nested more than {MAX_DEPTH} levels deep", code="invalid_json")
