"""Reads requests of OpenAI's Responses API as chats: items become messages, and other fields become
a chat's fields. Nothing is stored, so fields that refer to stored objects are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sgc.runtime.engine.http.errors import HttpError, Json, bad
from sgc.runtime.engine.http.fields import Fields, Refused
from sgc.runtime.engine.http.openai import requests as chats
from sgc.runtime.engine.http.openai.constraints import named_schema
from sgc.runtime.engine.http.openai.requests import Completions, chat_completions
from sgc.runtime.engine.http.openai.response_input import messages_of
from sgc.runtime.engine.http.sampling import NAMES
from sgc.runtime.engine.server.server import EngineFacts

_STATELESS = "nothing is stored here; send the whole conversation as input"
_SAME = (
    NAMES
    | {"model", "stream", "seed", "parallel_tool_calls", "chat_template_kwargs", "cache_salt"}
    | {"min_tokens", "top_logprobs"}
)  # fields that a chat has too
IGNORED = {name: kind for name, kind in chats.IGNORED.items() if name != "store"}
IGNORED["prompt_cache_options"] = Fields.object
RESPONSES = (
    _SAME
    | IGNORED.keys()
    | {"input", "instructions", "max_output_tokens", "tools", "tool_choice", "text", "include"}
    | {"stream_options", "reasoning", "truncation"}
)
REFUSED: dict[str, Refused] = {
    "store": ("nothing is stored here; leave it out, or send false",),
    "previous_response_id": (_STATELESS,),
    "conversation": (_STATELESS,),
    "prompt": ("no prompts are stored here; send instructions and input",),
    "background": ("a reply is for the connection that asks for it",),
    "max_tool_calls": ("it is for built-in tools, and there are none",),
    "context_management": (_STATELESS,),
    "moderation": ("this engine moderates nothing",),
    "max_tokens": ("send max_output_tokens",),
}
_LOGPROBS, _ENCRYPTED = "message.output_text.logprobs", "reasoning.encrypted_content"
# A chat's names of fields that have other names in a response.
_PARAMS = (
    (r"^tools\[(\d+)\]\.function\b\.?", r"tools[\1]."),
    (r"^tool_choice\.function\.name$", "tool_choice.name"),
    (r"^(max_tokens|max_completion_tokens)$", "max_output_tokens"),
    (r"^response_format\.json_schema", "text.format"),
    (r"^response_format", "text.format"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A response to make. echoed: the request's fields that the response repeats."""

    completions: Completions
    echoed: Json


def response_of(body: Json, facts: EngineFacts) -> Asked:
    """Raises HttpError, whose `param` is a field of the body."""
    fields = Fields(body)
    fields.check_known(RESPONSES, REFUSED)
    chats.check_model(fields, facts)
    chats.check_ignored(fields, IGNORED)
    if fields.text("truncation", "disabled") != "disabled":
        raise bad("truncation must be disabled: an input that is too long is refused", "truncation")
    fields.object("reasoning").check_known(
        set(), dict.fromkeys(_REASONING, ("the model decides", "none"))
    )
    fields.object("stream_options").check_known({"include_obfuscation"}, {})
    messages, origins = messages_of(fields.get("input"), fields.text("instructions"))
    tools = _tools(fields)
    chat: Json = {name: fields.get(name) for name in _SAME if name in fields}
    chat |= {"messages": messages, "tools": tools, "tool_choice": _choice(fields)}
    if "max_output_tokens" in fields:
        chat["max_completion_tokens"] = fields.integer("max_output_tokens", low=1)
    form = fields.object("text")
    form.check_known({"format", "verbosity"}, {})
    if form.text("verbosity", "medium") != "medium":
        raise bad("text.verbosity: the model decides", "text.verbosity", "unsupported_parameter")
    chat["response_format"] = _format(form.object("format"))
    chat["logprobs"] = _wants_logprobs(fields) or None
    with _renamed(origins):
        completions = chat_completions(chat, facts)
    return Asked(completions, _echoed(fields, tools, form.get("format")))


_REASONING = ("effort", "summary", "generate_summary", "context")


def _tools(fields: Fields) -> list[Json] | None:
    given = fields.get("tools")
    if given is None:
        return None
    if not isinstance(given, list):
        raise bad("tools must be a list of tools", "tools", "invalid_type")
    return [_tool(each, f"tools[{i}]") for i, each in enumerate(given)]


def _tool(tool: Any, where: str) -> Json:
    if not isinstance(tool, dict):
        raise bad(f"{where} must be an object", where, "invalid_type")
    kind = tool.get("type")
    if kind != "function":
        message = f"{where}.type: this engine has no built-in tools, only type function; found"
        raise bad(f"{message} {str(kind)[:40]!r}", f"{where}.type", "unsupported_parameter")
    function = {name: value for name, value in tool.items() if name != "type"}
    return {"type": "function", "function": function}


def _choice(fields: Fields) -> Any:
    """The tool choice in the form of a chat."""
    choice = fields.get("tool_choice")
    if not isinstance(choice, dict):
        return choice
    inner = fields.object("tool_choice")
    if inner.text("type") == "function":
        inner.check_known({"type", "name"}, {})
        return {"type": "function", "function": {"name": inner.text("name")}}
    if inner.text("type") != "allowed_tools":
        raise bad("tool_choice.type must be function or allowed_tools", "tool_choice.type")
    inner.check_known({"type", "mode", "tools"}, {})
    given = inner.get("tools")
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise bad("tool_choice.tools must be a list of tools", "tool_choice.tools", "invalid_type")
    named = [{"type": "function", "function": {"name": each.get("name")}} for each in given]
    allowed = {"mode": inner.text("mode", "auto"), "tools": named}
    return {"type": "allowed_tools", "allowed_tools": allowed}


def _format(form: Fields) -> Json | None:
    kind = form.text("type", "text")
    if kind != "json_schema":
        form.check_known({"type"}, {})
        return None if kind == "text" else {"type": kind}
    if "schema" not in form:
        raise bad(f"{form.where}schema is missing", f"{form.where}schema", "invalid_type")
    named_schema(form, "type")
    schema = {"name": form.text("name"), "schema": form.get("schema") or {}}
    return {"type": "json_schema", "json_schema": schema}


def _wants_logprobs(fields: Fields) -> bool:
    given = fields.get("include")
    for i, each in enumerate(given if isinstance(given, list) else fields.texts("include")):
        if each not in (_LOGPROBS, _ENCRYPTED):
            where = f"include[{i}]"
            raise bad(f"{where}: this engine has only {_LOGPROBS}, found {str(each)[:60]!r}", where)
    return _LOGPROBS in (given or ()) or bool(fields.get("top_logprobs"))


@contextmanager
def _renamed(origins: Mapping[str, str]) -> Iterator[None]:
    """Within the block, errors about a chat's fields name the fields of the response instead."""
    try:
        yield
    except HttpError as error:
        if error.param is not None:
            found = param_of(error.param, origins)
            error.message = error.message.replace(error.param, found)
            error.param = found
        raise


def param_of(param: str, origins: Mapping[str, str]) -> str:
    """The response's name of a chat's field. origins: from places in messages to the fields that
    they were made from."""
    for place in sorted(origins, key=len, reverse=True):
        if param == place or param.startswith(f"{place}."):
            return origins[place] + param.removeprefix(place)
    for pattern, name in _PARAMS:
        param = re.sub(pattern, name, param)
    return param.rstrip(".")


def _echoed(fields: Fields, tools: list[Json] | None, form: Any) -> Json:
    defaults = {"description": None, "parameters": None, "strict": True}
    return {
        "instructions": fields.get("instructions"),
        "max_output_tokens": fields.get("max_output_tokens"),
        "metadata": fields.get("metadata") or {},
        "parallel_tool_calls": fields.boolean("parallel_tool_calls", default=True),
        "temperature": fields.number("temperature", 1.0),
        "text": {"format": form or {"type": "text"}},
        "tool_choice": fields.get("tool_choice") or "auto",
        "tools": [{"type": "function", **defaults, **each["function"]} for each in tools or ()],
        "top_p": fields.number("top_p", 1.0),
        "user": fields.get("user"),
    }
