"""Renders a conversation as a prompt, with the roles read off the model's template at start.

A message's content is always plain text: special tokens are recognised only in the template.
"""

from __future__ import annotations

from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import bad
from sgc.runtime.engine.http.fields import Fields, Refused
from sgc.runtime.engine.http.sampling import text_prompt
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template import Chat

MAX_MESSAGES = 4096
_ROLES = {"developer": "system"}
_KNOWN = frozenset({"role", "content"})
_NO_TOOLS: Refused = ("this engine calls no tools",)
_REFUSED: dict[str, Refused] = {
    "tool_calls": _NO_TOOLS,
    "tool_call_id": _NO_TOOLS,
    "function_call": _NO_TOOLS,
    "audio": ("this engine takes text",),
    "refusal": ("chat templates have no place for it; say it in the content",),
    "annotations": ("chat templates have no place for them",),
    "name": ("chat templates have no place for it; say it in the content",),
}


def chat_prompt(messages: Any, facts: EngineFacts, goes_on: bool = False) -> pb.Prompt:
    """The prompt; raises HttpError if the messages are not texts, or cannot fit the context.

    goes_on: the reply continues the last message, which is an assistant's.
    """
    chat = facts.chat
    if not isinstance(messages, list) or not messages:
        raise bad("messages must be a list of at least one message", "messages", "invalid_type")
    if len(messages) > MAX_MESSAGES:
        raise bad(f"messages: {len(messages)}, of at most {MAX_MESSAGES}", "messages")
    turns = [_turn(message, f"messages[{i}]", chat) for i, message in enumerate(messages)]
    if chat.default_system and turns[0][0] != "system":
        turns.insert(0, ("system", chat.default_system))
    if goes_on and turns[-1][0] != "assistant":
        where = f"messages[{len(messages) - 1}].role"
        raise bad("continue_final_message needs a last message of the assistant's", where)
    parts: list[str] = []
    literal: list[tuple[int, int]] = []
    n_chars = 0
    for role, content in turns:
        around = chat.roles[role]
        start = n_chars + len(around.prefix)
        literal.append((start, start + len(content)))
        parts += (around.prefix, content, around.suffix)
        n_chars = start + len(content) + len(around.suffix)
    if goes_on:
        parts.pop()
    else:
        parts.append(chat.roles["assistant"].prefix)
    return text_prompt("".join(parts), facts, literal)


def _turn(message: Any, where: str, chat: Chat) -> tuple[str, str]:
    if not isinstance(message, dict):
        raise bad(f"{where} must be an object with role and content", where, "invalid_type")
    fields = Fields(message, f"{where}.")
    role = fields.text("role")
    role = _ROLES.get(role, role)
    if role == "tool" or role not in chat.roles:
        known = ", ".join(name for name in chat.roles if name != "tool")
        raise bad(f"{where}.role must be one of {known}; found {role[:80]!r}", f"{where}.role")
    fields.check_known(_KNOWN, _REFUSED)
    return role, _content(fields, f"{where}.content")


def _content(fields: Fields, where: str) -> str:
    content = fields.get("content")
    if not isinstance(content, list):
        if content is None:
            raise bad(f"{where} is missing", where, "invalid_type")
        return fields.text("content")
    parts = []
    for i, part in enumerate(content):
        inner = Fields(part if isinstance(part, dict) else {}, f"{where}[{i}].")
        if inner.get("type") != "text":
            found = str(inner.get("type"))[:40]
            message = f"{where}[{i}]: this engine takes parts of type text, found {found}"
            raise bad(message, f"{where}[{i}].type", "unsupported_parameter")
        inner.check_known({"type", "text"}, {})
        parts.append(inner.text("text"))
    return "".join(parts)
