"""The page of `sgc dev`, on this machine only.

It runs the user's program with arguments that the page sends, so a request must come from the page
itself: its `Host` and `Origin` are this address (`browser_check.py`), and a run is JSON, which no
form of another site can send.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from aiohttp import web

from sgc.cli.dev.runner import Runner
from sgc.cli.dev.versions import Versions, finite
from sgc.runtime.engine.http.errors import HttpError

WAIT_S = 20.0
MAX_BODY = 4 << 20
_ASSETS = Path(__file__).parent / "assets"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)


_NUMBER = re.compile("[0-9]{1,15}")


class Pages:
    def __init__(self, versions: Versions, runner: Runner) -> None:
        self._versions = versions
        self._runner = runner

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self._asset),
            web.get("/{name:dev\\.(?:js|css)}", self._asset),
            web.get("/state", self._state),
            web.post("/run", self._run),
            web.get("/versions/{number:\\d{1,9}}", self._version),
        ]

    async def _asset(self, request: web.Request) -> web.Response:
        path = _ASSETS / request.match_info.get("name", "dev.html")
        headers = {"Content-Security-Policy": _POLICY}
        text = path.read_text(encoding="utf-8")
        return web.Response(text=text, content_type=_KINDS[path.suffix], headers=headers)

    async def _state(self, request: web.Request) -> web.Response:
        seen = _NUMBER.fullmatch(request.query.get("seen", ""))
        state = await self._versions.state(-1 if seen is None else int(seen[0]), WAIT_S)
        return web.json_response(finite(state))

    async def _run(self, request: web.Request) -> web.Response:
        """Runs the program with the arguments of the body, a JSON object."""
        if request.content_type != "application/json":
            raise HttpError(415, "expected application/json")
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                raise HttpError(400, f"expected arguments of at most {MAX_BODY} bytes")
        try:
            arguments: Any = json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise HttpError(400, f"expected JSON: {error}") from error
        if not isinstance(arguments, dict):
            raise HttpError(400, "expected an object of arguments")
        version = await self._runner.start(arguments)
        return web.json_response({"version": version.number})

    async def _version(self, request: web.Request) -> web.StreamResponse:
        path = self._versions.page(int(request.match_info["number"]))
        if not path.is_file():
            raise HttpError(404, "there is no page of this version")
        return web.FileResponse(path, headers={"Content-Type": "text/html; charset=utf-8"})


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")
