"""Tools for a model whose chat template has no place for them: instructions in the system message,
calls and results as texts, all in Hermes' form, which many models have learnt."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from sgc.runtime.engine.http.errors import Json
from sgc.runtime.engine.http.turns.formats import CallFormat

_BEFORE = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
_AFTER = """
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def with_instructions(
    messages: Sequence[Json], told: Sequence[Json], roles: Collection[str], default: str
) -> list[Json]:
    """The messages, with the tools in the system message, or where the template has none, in the
    first message. default: the system message of a conversation without one."""
    block = _BEFORE + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in told) + _AFTER
    first = messages[0]
    if first["role"] == "system" or "system" not in roles:
        text = f"{first['content']}\n\n{block}" if first["role"] == "system" else (
            f"{block}\n\n{first['content']}"
        )  # fmt: skip
        return [{**first, "content": text}, *messages[1:]]
    text = f"{default}\n\n{block}" if default else block
    return [{"role": "system", "content": text}, *messages]


def as_texts(messages: Sequence[Json], form: CallFormat, roles: Collection[str]) -> list[Json]:
    """The messages with their calls and results as plain content."""
    return [_as_text(message, form, roles) for message in messages]


def _as_text(message: Json, form: CallFormat, roles: Collection[str]) -> Json:
    if message["role"] == "tool":
        if "tool" in roles:
            return {"role": "tool", "content": message["content"]}
        text = f"<tool_response>\n{message['content']}\n</tool_response>"
        return {"role": "user", "content": text}
    calls = message.get("tool_calls")
    if not calls:
        return message
    written = form.written(
        [
            (
                each["function"]["name"],
                json.dumps(each["function"]["arguments"], ensure_ascii=False),
            )
            for each in calls
        ]
    )
    said = message["content"]
    return {"role": message["role"], "content": f"{said}\n{written}" if said else written}
