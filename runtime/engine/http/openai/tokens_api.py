"""The endpoints of vLLM's and SGLang's servers beside OpenAI's: tokens of texts, texts of tokens,
and the version."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.errors import Json, bad, error_of
from sgc.runtime.engine.http.fields import Fields
from sgc.runtime.engine.http.openai.chat import chat_prompt
from sgc.runtime.engine.http.openai.requests import check_model, going_on
from sgc.runtime.engine.http.render import dumps, json_text
from sgc.runtime.engine.http.sampling import text_prompt
from sgc.runtime.engine.http.turns.formats import form_of
from sgc.runtime.engine.http.turns.tools import read_tools
from sgc.runtime.engine.preparing.bounds import RequestError, checked_segments, text_segments
from sgc.runtime.engine.preparing.joining import plain_segments
from sgc.runtime.engine.preparing.salts import cache_key
from sgc.runtime.engine.server.lanes import Lane
from sgc.runtime.engine.server.server import EngineFacts, engine_version
from sgc.runtime.engine.text.tokenizer import always, tokenizing_for

_TEXT = frozenset({"model", "prompt", "add_special_tokens", "return_token_strs"})
_CHAT = frozenset(
    {"model", "messages", "add_generation_prompt", "continue_final_message", "tools", "tool_choice"}
    | {"parallel_tool_calls", "chat_template_kwargs", "return_token_strs"}
)
TOKENIZE = _TEXT | _CHAT
DETOKENIZE = frozenset({"model", "tokens", "skip_special_tokens"})


class TokensApi:
    def __init__(self, facts: EngineFacts, bodies: BodyReader) -> None:
        self._facts, self._bodies = facts, bodies
        self._lane = Lane("tokens")

    def routes(self) -> list[Any]:
        return [
            web.post("/tokenize", self._tokenize),
            web.post("/v1/tokenize", self._tokenize),
            web.post("/detokenize", self._detokenize),
            web.post("/v1/detokenize", self._detokenize),
            web.get("/version", self._version),
        ]

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": engine_version()})

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await self._bodies.read(request)
        return json_text(
            await self._lane.run(
                request.protocol,
                lambda _: dumps(tokens_of(body, self._facts, request[CALLER].domain)),
            )
        )

    async def _detokenize(self, request: web.Request) -> web.Response:
        body = await self._bodies.read(request)
        return json_text(
            await self._lane.run(request.protocol, lambda _: dumps(text_of(body, self._facts)))
        )


def tokens_of(body: Json, facts: EngineFacts, domain: bytes = b"") -> Json:
    """The tokens of a prompt or a conversation, as a completion or a chat would have them. domain:
    of the client's token."""
    fields = Fields(body)
    is_chat = "messages" in fields
    fields.check_known(_CHAT if is_chat else _TEXT, {})
    check_model(fields, facts, is_needed=False)
    if not is_chat and "prompt" not in fields:
        raise bad("prompt or messages must be given", "prompt")
    tokenizer = facts.tokenizer
    try:
        prompt = _chat(fields, facts) if is_chat else text_prompt(fields.text("prompt"), facts)
        segments = text_segments(checked_segments(prompt, facts.limits))
        with tokenizing_for(cache_key(domain, b"")):
            ids = tokenizer.encode_prompt(plain_segments(segments, tokenizer, always)[0])
    except RequestError as error:
        raise error_of(error.to_message()) from error
    n_prefix = len(tokenizer.prefix_ids)
    if not is_chat and not fields.boolean("add_special_tokens", default=True):
        ids = ids[n_prefix:] if ids[:n_prefix] == list(tokenizer.prefix_ids) else ids
    found: Json = {"tokens": ids, "count": len(ids), "max_model_len": facts.limits.max_positions}
    if fields.boolean("return_token_strs"):
        found["token_strs"] = [tokenizer.backend.id_to_token(i) for i in ids]
    return found


def _chat(fields: Fields, facts: EngineFacts) -> Any:
    tools = read_tools(fields, form_of(facts))
    told = [function.told for function in tools.told] if tools is not None else []
    fields.object("chat_template_kwargs")
    values = fields.get("chat_template_kwargs")
    return chat_prompt(fields.get("messages"), facts, going_on(fields), told, values)


def text_of(body: Json, facts: EngineFacts) -> Json:
    """The text of tokens, under the names that either server gives it."""
    fields = Fields(body)
    fields.check_known(DETOKENIZE, {})
    check_model(fields, facts, is_needed=False)
    if "tokens" not in fields:
        raise bad("tokens is missing", "tokens", "invalid_type")
    ids = fields.ids("tokens")
    if max(ids, default=0) >= facts.limits.vocab_size:
        raise bad(f"tokens: ids are below {facts.limits.vocab_size}", "tokens")
    skips = fields.boolean("skip_special_tokens", default=True)
    text = facts.tokenizer.backend.decode(ids, skip_special_tokens=skips)
    return {"prompt": text, "text": text}
