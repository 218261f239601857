"""How model families write tool calls: a table; the chat template's own rendering of a call decides
which row applies.

Every form but harmony is a text around each call's name and arguments, which are JSON. Families
that write other special tokens or XML between name and arguments are not in the table, and are
refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sgc.runtime.engine.http.turns.channels import ANALYSIS, CHANNEL, NEEDED
from sgc.runtime.engine.names import AUTO, OFF, TOOL_FORMATS
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template import Chat
from sgc.runtime.engine.text.template_tools import ARGUMENT, NAME, VALUE


@dataclass(frozen=True, slots=True)
class Trigger:
    """text: the text with which calls begin. opens: text to add before the first call, if the model
    does not generate it."""

    text: str
    opens: str


@dataclass(frozen=True, slots=True)
class CallFormat:
    """triggers: the first one also opens calls that must be made. only_first: a trigger counts only
    at the beginning of a reply. is_single: whether a reply has at most one call. begins, ends: the
    texts around all calls; before, between, after: the texts of one call."""

    name: str
    triggers: tuple[Trigger, ...]
    before: str
    between: str
    after: str
    separator: str
    begins: str = ""
    ends: str = ""
    only_first: bool = False
    is_single: bool = False

    def written(self, calls: list[tuple[str, str]]) -> str:
        """Writes calls of a conversation, given the name and the arguments, as JSON, of each."""
        each = (
            self.before + json.dumps(name, ensure_ascii=False)[1:-1] + self.between + given
            + self.after
            for name, given in calls
        )  # fmt: skip
        return self.triggers[0].opens + self.begins + self.separator.join(each) + self.ends


_NAMED = '{"name": "'
HERMES = CallFormat(
    "hermes",
    (Trigger("<tool_call>", "<tool_call>\n"),),
    _NAMED,
    '", "arguments": ',
    "}",
    separator="\n</tool_call>\n<tool_call>\n",
    ends="\n</tool_call>",
)
LLAMA3 = CallFormat(
    "llama3",
    (Trigger(_NAMED, ""), Trigger("<|python_tag|>", "<|python_tag|>")),
    _NAMED,
    '", "parameters": ',
    "}",
    separator="; ",
    only_first=True,
    is_single=True,  # its templates allow one call a turn
)
MISTRAL = CallFormat(
    "mistral",
    (Trigger("[TOOL_CALLS]", "[TOOL_CALLS]"),),
    _NAMED,
    '", "arguments": ',
    "}",
    separator=", ",
    begins="[",
    ends="]",
)
HARMONY = CallFormat(  # followed message by message: `harmony.py`
    "harmony",
    (Trigger("<|channel|>commentary", ""),),
    "<|channel|>commentary to=functions.",
    " <|constrain|>json<|message|>",
    "<|call|>",
    separator="<|start|>assistant",
    is_single=True,
)
_ALL = (HERMES, LLAMA3, MISTRAL, HARMONY)
FORMATS: Mapping[str, CallFormat] = dict(zip(TOOL_FORMATS, _ALL, strict=True))

# Marks of known but unsupported families in their renderings of a call.
_OTHERS: Mapping[str, str] = {
    "<function=": "XML (Qwen3-Coder)",
    "[ARGS]": "newer Mistral ([ARGS])",
    "<｜tool": "DeepSeek",
    "<arg_key>": "GLM",
}


def form_of(facts: EngineFacts) -> CallFormat | str:
    """The form of the model's calls, or why there is none."""
    found = FORMATS.get(facts.tool_format) or found_in(facts.chat)
    lacks = [x for x in NEEDED if x not in facts.tokenizer.special_tokens]
    if found is HARMONY and lacks:
        return (
            "gpt-oss's form of replies (harmony) needs special tokens that this model's tokenizer "
            f"lacks: {', '.join(lacks)}; serve it with its own tokenizer, or name another form "
            "with --tool-format"
        )
    return found


def tag_of(facts: EngineFacts) -> str:
    """The tag around the model's reasoning, or its channel; "" if none is split off. A tag of
    special tokens does not count, since it is not in the text."""
    tag = facts.reasoning_format
    if form_of(facts) is HARMONY:
        return "" if tag == OFF else ANALYSIS
    if tag == AUTO:
        tag = facts.chat.reasoning
    is_seen = tag and tag != OFF and f"</{tag}>" not in facts.tokenizer.special_tokens
    return tag if is_seen else ""


def line_of(facts: EngineFacts) -> str:
    """The line on calls and reasoning that an engine logs at its start."""
    form, tag = form_of(facts), tag_of(facts)
    if form is HARMONY:
        return f"tool calls: harmony; reasoning: {f'its channel {tag}' if tag else 'none'}"
    if isinstance(form, str):
        calls = f"none: {form}"
    elif facts.tool_format != AUTO:
        calls = f"{form.name} (--tool-format)"
    else:
        calls = f"{form.name} ({'as its chat template' if facts.chat.calls else 'instructed'})"
    return f"tool calls: {calls}; reasoning: {f'<{tag}>' if tag else 'none'}"


def found_in(chat: Chat) -> CallFormat | str:
    """The form of the calls that the template writes, or the reason why there is none. For a
    template without tools, it is Hermes' form, with instructions of our own."""
    if not chat.calls:
        return HERMES
    if f"to=functions.{NAME}" in chat.calls and CHANNEL in chat.calls:
        return HARMONY
    given = json.dumps({ARGUMENT: VALUE})
    for form in FORMATS.values():
        ahead, found, _ = chat.calls.partition(form.before + NAME + form.between + given)
        mark = form.triggers[0].text
        if found and mark in chat.calls:
            gap = ahead.rpartition(mark)[2]
            is_same = not form.begins or gap.strip() != form.begins
            return form if is_same else replace(form, begins=gap)
    if "<tool_call>\n{" in chat.calls and given in chat.calls:
        return HERMES  # the first Hermes models' templates have the arguments before the name
    other = next((name for mark, name in _OTHERS.items() if mark in chat.calls), "unknown")
    known = ", ".join(FORMATS)
    return (
        f"this model's chat template writes tool calls in a form that this engine does not follow "
        f"({other}); it follows {known}, and --tool-format names one"
    )
