"""What a chat template makes of tools, of a call and its result, and of reasoning.

`template_child.py` asks at start; the HTTP face finds the form of a model's calls in the answer.
"""

from __future__ import annotations

from typing import Any

from sgc.runtime.engine.names import REASONING
from sgc.runtime.engine.text.template import Message, ProbeError, Render

NAME, ARGUMENT, VALUE, RESULT, TEXT = "QcallQ", "QkeyQ", "QvalueQ", "QresultQ", "QaskedQ"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "QaboutQ",
        "parameters": {"type": "object", "properties": {ARGUMENT: {"type": "string"}}},
    },
}
CALL: dict[str, Any] = {
    "id": "QcallQ123",  # nine letters and digits, which Mistral's templates insist on
    "type": "function",
    "function": {"name": NAME, "arguments": {ARGUMENT: VALUE}},
}
CONVERSATION: list[Message] = [
    {"role": "user", "content": TEXT},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": RESULT, "tool_call_id": CALL["id"], "name": NAME},
]


def calls_of(render: Render) -> str:
    """The conversation with a call, as the template renders it; "" if tools make no difference."""
    try:
        without = render(CONVERSATION[:1], True)
        if NAME in without or NAME not in render(CONVERSATION[:1], True, [TOOL]):
            return ""
        return render(CONVERSATION, True, [TOOL])
    except ProbeError:
        return ""


def reasoning_of(source: str) -> str:
    """The tag that the template names; "" if it names none."""
    return next((name for name in REASONING if f"</{name}>" in source), "")
