"""Writes replies as JSON; large replies are written on a thread, so that other clients are served.

Only log-probabilities make a reply large: 200,000 of them take about a second.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TypeVar

from aiohttp import web

from sgc.runtime.engine.http.errors import Json

T = TypeVar("T")


def dumps(value: Json | list[Json]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


async def rendered(make: Callable[[], T], is_large: bool) -> T:
    return await asyncio.to_thread(make) if is_large else make()


def json_text(text: str) -> web.Response:
    return web.Response(text=text, content_type="application/json")
