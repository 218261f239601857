"""Programs over HTTP: routes of their own, and as models of OpenAI's chat completions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import asdict
from typing import Any

from aiohttp import hdrs, web

from sgc.errors import (
    ArgumentError,
    BackendError,
    ContextExceeded,
    DeadlineExceeded,
    EngineUnavailable,
    Overloaded,
    SgcError,
    UsageError,
)
from sgc.ir.types import Kind
from sgc.programs.program import Program
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.calls.request_ids import id_of
from sgc.runtime.engine.http.errors import HttpError, Json, bad
from sgc.runtime.engine.http.fields import Fields
from sgc.runtime.engine.http.render import dumps, json_text
from sgc.runtime.engine.http.sse import respond
from sgc.runtime.executor.backends.engine.ends import InvalidRequest
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.services.chats import Chat, texts_of_reply
from sgc.services.programs import (
    NOT_BEGUN,
    Programs,
    Shows,
    Text,
    load_programs,
    no_program,
    shows_all,
)
from sgc.services.replies import OPTIONS, OptionError, as_json, description, options_of, run_object

PREFIX = "program/"
_RUN = frozenset({"arguments", "stream", *OPTIONS})
_CHAT = frozenset({
    "model", "messages", "stream", "stream_options", "user", "n", "max_completion_tokens",
    *OPTIONS,
})  # fmt: skip
_STATUS = (
    (UsageError, 400, "invalid_value"),  # the program's arguments among them
    (ContextExceeded, 400, "context_length_exceeded"),
    (InvalidRequest, 400, "invalid_value"),
    (Overloaded, 429, "overloaded"),
    (EngineUnavailable, 503, "unavailable"),
    (DeadlineExceeded, 504, "deadline_exceeded"),
    (BackendError, 500, "backend_error"),
    (SgcError, 422, "program_failed"),
)


class ProgramRoutes:
    """A `Beside` of the engine's HTTP site."""

    prefix = PREFIX

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._started = int(time.time())

    @property
    def models(self) -> Sequence[str]:
        return [PREFIX + name for name in self._programs.programs]

    def load_again(self) -> Callable[[], None]:
        loaded = load_programs(self._programs.targets, self._programs.tools)

        def begin() -> None:
            self._programs.programs = loaded

        return begin

    @property
    def n_running(self) -> int:
        return self._programs.n_running

    def refuse_new(self) -> None:
        self._programs.is_leaving = True

    async def open(self, uri: str, has_tokens: bool, max_run_s: float) -> None:
        self._programs.open(uri, has_tokens, max_run_s)

    async def close(self) -> None:
        await self._programs.close()

    def add_to(self, server: Any) -> str:
        from sgc.services.grpc_service import add_programs

        return add_programs(self._programs, server)

    def routes(self, bodies: BodyReader) -> list[Any]:
        async def run(request: web.Request) -> web.StreamResponse:
            return await self._run(request, await bodies.read(request))

        return [
            web.get("/v1/programs", self._list),
            web.get("/v1/programs/{name}", self._describe),
            web.post("/v1/programs/{name}", run),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        data = [description(*each) for each in self._programs.programs.items()]
        return web.json_response({"object": "list", "data": data})

    async def _describe(self, request: web.Request) -> web.Response:
        name = self._known(request.match_info["name"])
        return web.json_response(description(name, self._programs.programs[name]))

    def _known(self, name: str, param: str = "name") -> str:
        if name not in self._programs.programs:
            message = no_program(name, self._programs.programs)
            raise HttpError(404, message, param, "program_not_found")
        return name

    async def _run(self, request: web.Request, body: Json) -> web.StreamResponse:
        name, fields = self._known(request.match_info["name"]), Fields(body)
        fields.check_known(_RUN, {})
        arguments, options = body.get("arguments") or {}, _options(fields)
        if not isinstance(arguments, dict):
            raise bad("arguments must be an object of names and values", "arguments")
        if not fields.boolean("stream"):
            result = await self._result(request, name, arguments, options)
            with _told():
                return json_text(as_json(run_object(id_of(request), name, result)))
        async with aclosing(self._events(request, name, arguments, options)) as events:
            return await respond(request, events)

    async def _result(
        self, request: web.Request, name: str, arguments: Mapping[str, Any], options: RunOptions
    ) -> RunResult:
        with _told():
            return await self._programs.run(
                name, arguments, options, _token(request), deadline=request[CALLER].deadline
            )

    async def _stream(
        self,
        request: web.Request,
        name: str,
        arguments: Mapping[str, Any],
        options: RunOptions,
        shows: Shows = shows_all,
    ) -> AsyncGenerator[Text | RunResult]:
        """Yields texts as they are generated, and then the result. shows: which texts."""
        token, deadline = _token(request), request[CALLER].deadline
        running = self._programs.stream(name, arguments, options, token, deadline, shows)
        with _told():
            async with aclosing(running) as events:
                async for event in events:
                    yield event

    async def _events(
        self, request: web.Request, name: str, arguments: Mapping[str, Any], options: RunOptions
    ) -> AsyncGenerator[str]:
        """Yields each text as it is generated, and then the whole result."""
        async with aclosing(self._stream(request, name, arguments, options)) as events:
            async for event in events:
                if isinstance(event, RunResult):
                    result = run_object(id_of(request), name, event)
                    with _told():
                        whole = as_json({"type": "result", **result})
                    yield whole
                else:
                    yield dumps({"type": "text", **asdict(event)})

    # -- as a model of OpenAI's API ---------------------------------------------------------

    async def chat(self, request: web.Request, body: Json) -> web.StreamResponse:
        fields = Fields(body)
        fields.check_known(_CHAT, {})
        model = fields.text("model")
        name = self._known(model.removeprefix(PREFIX), "model")
        if fields.integer("n", 1) != 1:
            raise bad("a program gives one answer: n must be 1", "n")
        argument = chat_parameter(name, self._programs.programs[name])
        values = {argument: last_message(body.get("messages"))}
        chat, options = Chat(id_of(request), model, self._started), _options(fields)
        if not fields.boolean("stream"):
            result = await self._result(request, name, values, options)
            with _told():
                return json_text(dumps(chat.whole(result)))
        include_usage = fields.object("stream_options").boolean("include_usage")
        shows = texts_of_reply(self._programs.programs[name].graph)
        running = self._stream(request, name, values, options, shows)
        async with (
            aclosing(running) as events,
            aclosing(_told_of(chat.chunks(events, include_usage))) as chunks,
        ):
            return await respond(request, chunks)


def _token(request: web.Request) -> str:
    return request.headers.get(hdrs.AUTHORIZATION, "").removeprefix("Bearer ").strip()


def _options(fields: Fields) -> RunOptions:
    given = {name: fields.get(name) for name in OPTIONS}
    if "max_completion_tokens" in fields:
        given["max_tokens"] = fields.get("max_completion_tokens")
    try:
        return options_of(given)
    except OptionError as error:
        is_newer = error.name == "max_tokens" and "max_completion_tokens" in fields
        raise bad(error.message, "max_completion_tokens" if is_newer else error.name) from error


@contextmanager
def _told() -> Iterator[None]:
    """Errors of a program as HTTP tells them."""
    try:
        yield
    except SgcError as error:
        raise _http_error(error) from error


async def _told_of(chunks: AsyncGenerator[str]) -> AsyncGenerator[str]:
    with _told():
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk


def _http_error(error: SgcError) -> HttpError:
    status, code = next(row[1:] for row in _STATUS if isinstance(error, row[0]))
    param = "arguments" if isinstance(error, ArgumentError) else None
    found = HttpError(status, error.message, param, code)
    found.has_begun = not isinstance(error, NOT_BEGUN)
    if isinstance(error, Overloaded) and error.retry_after_s:
        found.retry_after_s = error.retry_after_s
    return found


def chat_parameter(name: str, program: Program) -> str:
    """The name of the one text argument that the program needs."""
    needed = [param.value for param in program.graph.params if param.default is None]
    if len(needed) == 1 and needed[0].type.kind is Kind.TEXT:
        return needed[0].name
    found = ", ".join(f"{value.name}: {value.type}" for value in needed) or "none"
    raise bad(
        f"as a model, a program must need one argument that is a text; {name} needs {found}: "
        f"call POST /v1/programs/{name}",
        "model",
    )


def last_message(messages: Any) -> str:
    """The text of the last user message."""
    if not isinstance(messages, list) or not messages:
        raise bad("messages must be a list of messages", "messages")
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, list) and all(map(_is_text_part, content)):
                content = "".join(part["text"] for part in content)
            if isinstance(content, str):
                return content
            raise bad("the last user message must be a text", "messages")
    raise bad("messages has no user message, whose text is the program's argument", "messages")


def _is_text_part(part: Any) -> bool:
    return (
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )
