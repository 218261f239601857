"""Turns a response's input, a text or items, into a chat's messages."""

from __future__ import annotations

from typing import Any

from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.http.fields import Fields
from sgc.runtime.engine.http.openai.messages import MAX_MESSAGES

_TEXTS = frozenset({"input_text", "output_text", "text", "refusal", "reasoning_text"})


def messages_of(given: Any, instructions: str) -> tuple[list[Json], dict[str, str]]:
    """The messages, and for places in them, the fields that they were made from. Raises
    HttpError."""
    made = _Messages()
    if instructions:
        made.add({"role": "system", "content": instructions}, "instructions")
    if isinstance(given, str):
        made.add({"role": "user", "content": given}, "input")
    elif not isinstance(given, list) or not given:
        raise bad("input must be a text or a list of items", "input", "invalid_type")
    else:
        if len(given) > MAX_MESSAGES:
            raise bad(f"input: {len(given)} items, of at most {MAX_MESSAGES}", "input")
        for i, item in enumerate(given):
            made.add_item(item, f"input[{i}]")
    if made.thought:
        made.reply("input")
    return made.messages, made.origins


class _Messages:
    """Collects messages; consecutive reasoning, texts and calls become one assistant message."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.origins: dict[str, str] = {}
        self.call_ids: set[str] = set()
        self.thought = ""

    def add(self, message: Json, where: str) -> Json:
        if self.thought and message["role"] != "assistant":
            self.reply(where)
        self.origins[f"messages[{len(self.messages)}]"] = where
        self.messages.append(message)
        return message

    def reply(self, where: str) -> Json:
        """A new message of the assistant, with the reasoning before it."""
        message: Json = {"role": "assistant", "content": ""}
        if self.thought:
            message["reasoning_content"], self.thought = self.thought, ""
        return self.add(message, where)

    def add_item(self, item: Any, where: str) -> None:
        if not isinstance(item, dict):
            raise bad(f"{where} must be an object", where, "invalid_type")
        fields = Fields(item, f"{where}.")
        kind = fields.text("type", "message")
        if kind not in _KINDS:
            known = ", ".join(_KINDS)
            message = f"{where}.type must be one of {known}; found {kind[:40]!r}"
            raise bad(message, f"{where}.type", "unsupported_parameter")
        known_fields, read = _KINDS[kind]
        fields.check_known(known_fields | {"type", "id", "status"}, {})
        read(self, fields, where)

    def message(self, fields: Fields, where: str) -> None:
        role, content = fields.text("role"), _text(fields, "content")
        if role != "assistant":
            self.add({"role": role, "content": content}, where)
        else:
            self.reply(where)["content"] = content

    def call(self, fields: Fields, where: str) -> None:
        last = self.messages[-1] if self.messages else None
        if last is None or last["role"] != "assistant" or self.thought:
            last = self.reply(where)
        function = {"name": fields.text("name"), "arguments": fields.text("arguments")}
        call_id = _call_id(fields)
        call = {"id": call_id, "type": "function", "function": function}
        calls = last.setdefault("tool_calls", [])
        place = f"messages[{len(self.messages) - 1}].tool_calls[{len(calls)}]"
        self.origins |= {place: where, f"{place}.function": where}
        calls.append(call)
        self.call_ids.add(call_id)

    def result(self, fields: Fields, where: str) -> None:
        content = _text(fields, "output")
        call_id = _call_id(fields)
        if call_id not in self.call_ids:
            message = f"{where}.call_id: no item before it is a call {call_id[:80]!r}"
            raise bad(message, f"{where}.call_id")
        self.add({"role": "tool", "tool_call_id": call_id, "content": content}, where)

    def reasoning(self, fields: Fields, where: str) -> None:
        """Reads reasoning; ignores encrypted reasoning and summaries, useless to this model."""
        if "content" in fields:
            self.thought += _text(fields, "content")


_KINDS = {
    "message": (frozenset({"role", "content", "phase"}), _Messages.message),
    "function_call": (frozenset({"call_id", "name", "arguments"}), _Messages.call),
    "function_call_output": (frozenset({"call_id", "output"}), _Messages.result),
    "reasoning": (frozenset({"summary", "content", "encrypted_content"}), _Messages.reasoning),
}


def _call_id(fields: Fields) -> str:
    found = fields.needed_text("call_id")
    if not found:
        raise bad(f"{fields.where}call_id is empty", f"{fields.where}call_id")
    return found


def _text(fields: Fields, name: str) -> str:
    """The text of a field that is a text or a list of parts."""
    given, where = fields.get(name), f"{fields.where}{name}"
    if given is None:
        raise bad(f"{where} is missing", where, "invalid_type")
    if not isinstance(given, list):
        return fields.text(name)
    parts = []
    for i, part in enumerate(given):
        inner = Fields(part if isinstance(part, dict) else {}, f"{where}[{i}].")
        kind = str(inner.get("type"))
        if kind not in _TEXTS:
            message = f"{where}[{i}]: this engine takes parts of text, found {kind[:40]!r}"
            raise bad(message, f"{where}[{i}].type", "unsupported_parameter")
        inner.check_known({"type", "text", "refusal", "annotations", "logprobs"}, {})
        parts.append(inner.needed_text("refusal" if kind == "refusal" else "text"))
    return "".join(parts)
