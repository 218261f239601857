"""Reads a conversation's messages, with calls and their results, into what chat templates take."""

from __future__ import annotations

import json
from typing import Any

from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.http.fields import Fields, Refused
from sgc.runtime.engine.http.images.places import file_of

MAX_MESSAGES = 4096
Files = list[bytes] | str
_ROLES = {"developer": "system"}
_NOT_CALLING: Refused = ("only an assistant's message has calls",)
_REFUSED: dict[str, Refused] = {
    "function_call": ("send tool_calls",),
    "audio": ("this engine takes text",),
    "refusal": ("chat templates have no place for it; say it in the content",),
    "annotations": ("chat templates have no place for them",),
    "name": ("chat templates have no place for it; say it in the content",),
    "tool_calls": _NOT_CALLING,
    "tool_call_id": ("only a tool's message has one",),
    "reasoning_content": ("only an assistant's message has it",),
    "reasoning": ("only an assistant's message has it",),
}
_OWN = {
    "assistant": frozenset({"tool_calls", "reasoning_content", "reasoning"}),
    "tool": frozenset({"tool_call_id", "name"}),
}


def read_messages(
    given: Any, roles: list[str], files: Files = "this engine takes text"
) -> list[Json]:
    """The messages as templates take them: content as a text, or with images as a list of parts,
    arguments as objects.

    roles: those that the model's template has. files: a list to which image files are added, in
    order, or the reason why there may be none. Raises HttpError.
    """
    if not isinstance(given, list) or not given:
        raise bad("messages must be a list of at least one message", "messages", "invalid_type")
    if len(given) > MAX_MESSAGES:
        raise bad(f"messages: {len(given)}, of at most {MAX_MESSAGES}", "messages")
    found = [_message(message, f"messages[{i}]", roles, files) for i, message in enumerate(given)]
    _name_results(found)
    return found


def _name_results(messages: list[Json]) -> None:
    """Adds to results the names of their calls, which some templates need; raises HttpError for a
    result without a call. Calls that have no id may be anyone's."""
    names: dict[str, str] = {}
    for i, message in enumerate(messages):
        for call in message.get("tool_calls", ()):
            names[call.get("id", "")] = call["function"]["name"]
        if message["role"] != "tool":
            continue
        where, given = f"messages[{i}].tool_call_id", message["tool_call_id"]
        if given not in names and "" not in names:
            raise bad(f"{where}: no message before it has a call {given[:80]!r}", where)
        if given in names:
            message.setdefault("name", names[given])


def _message(message: Any, where: str, roles: list[str], files: Files) -> Json:
    if not isinstance(message, dict):
        raise bad(f"{where} must be an object with role and content", where, "invalid_type")
    fields = Fields(message, f"{where}.")
    role = fields.text("role")
    role = _ROLES.get(role, role)
    if role not in roles:
        known = ", ".join(roles)
        raise bad(f"{where}.role must be one of {known}; found {role[:80]!r}", f"{where}.role")
    own = _OWN.get(role, frozenset())
    refused = {name: why for name, why in _REFUSED.items() if name not in own}
    fields.check_known({"role", "content"} | own, refused)
    calls = _calls(fields) if role == "assistant" else []
    if role != "user":
        files = "images are in users' messages"
    content = _content(fields, f"{where}.content", bool(calls), files)
    if role == "tool" and not fields.needed_text("tool_call_id"):
        raise bad(f"{where}.tool_call_id is empty", f"{where}.tool_call_id")
    found: Json = {"role": role, "content": content}
    if calls:
        found["tool_calls"] = calls
    for name in ("tool_call_id", "name", "reasoning_content"):
        if text := fields.text(name):
            found[name] = text
    if text := fields.text("reasoning"):
        found.setdefault("reasoning_content", text)
    return found


def _calls(fields: Fields) -> list[Json]:
    given, where = fields.get("tool_calls"), f"{fields.where}tool_calls"
    if given is not None and not isinstance(given, list):
        raise bad(f"{where} must be a list of calls", where, "invalid_type")
    return [_call(each, f"{where}[{i}]") for i, each in enumerate(given or ())]


def _call(call: Any, where: str) -> Json:
    if not isinstance(call, dict):
        raise bad(f"{where} must be an object with id and function", where, "invalid_type")
    fields = Fields(call, f"{where}.")
    fields.check_known({"id", "type", "function", "index"}, {})
    if fields.text("type", "function") != "function":
        raise bad(f"{where}.type must be function", f"{where}.type")
    function = fields.object("function")
    function.check_known({"name", "arguments"}, {})
    name, at = function.text("name"), f"{function.where}arguments"
    if not name:
        raise bad(f"{function.where}name is missing", f"{function.where}name", "invalid_type")
    try:
        arguments = json.loads(function.text("arguments") or "{}")
    except (ValueError, RecursionError) as error:
        raise bad(f"{at} must be the text of a JSON object: {error}", at) from error
    if not isinstance(arguments, dict):
        raise bad(f"{at} must be the text of a JSON object", at)
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {**made, "id": fields.text("id")} if "id" in fields else made


def _content(fields: Fields, where: str, may_lack: bool, files: Files) -> str | list[Json]:
    content = fields.get("content")
    if not isinstance(content, list):
        if content is None and not may_lack:
            raise bad(f"{where} is missing", where, "invalid_type")
        return fields.text("content")
    parts = [_part(part, f"{where}[{i}]", files) for i, part in enumerate(content)]
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _part(part: Any, where: str, files: Files) -> Json:
    inner = Fields(part if isinstance(part, dict) else {}, f"{where}.")
    kind = inner.get("type")
    if kind == "image_url" and not isinstance(files, str):
        inner.check_known({"type", "image_url"}, {})
        given = inner.object("image_url")
        given.check_known({"url", "detail"}, {})
        files.append(file_of(given.get("url"), f"{where}.image_url.url"))
        return {"type": "image"}
    if kind != "text":
        takes = f"text ({files})" if isinstance(files, str) else "text and image_url"
        message = f"{where}: parts of type {takes} are taken here; found {str(kind)[:40]}"
        raise bad(message, f"{where}.type", "unsupported_parameter")
    inner.check_known({"type", "text"}, {})
    return {"type": "text", "text": inner.needed_text("text")}
