"""Plans the replies to a chat: with reasoning, calls and constraints, or without."""

from __future__ import annotations

import json
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import bad
from sgc.runtime.engine.http.turns.channels import CONSTRAIN, NEEDED
from sgc.runtime.engine.http.turns.formats import HARMONY, CallFormat
from sgc.runtime.engine.http.turns.tools import Tools, calls_grammar
from sgc.runtime.engine.http.turns.turn import Harmony, Part, Plan
from sgc.runtime.engine.text.tokenizer import Tokenizer

_CONSTRAINTS = ("regex", "json_schema", "grammar")


def plan_of(
    prompt: pb.Prompt,
    sampling: pb.Sampling,
    tools: Tools | None,
    form: CallFormat | str,
    tag: str,
    tokenizer: Tokenizer,
    continues: bool,
) -> Plan:
    """The plan of every reply; may open the reasoning at the prompt's end. Raises HttpError.

    tag: around the model's reasoning; "" if it does not reason. continues: whether the reply
    continues a message that has begun.
    """
    may_call = tools is not None and bool(tools.callable)
    if form is HARMONY:
        return _in_channels(tools, tag, tokenizer, continues)
    constraint = sampling.WhichOneof("constraint")
    must_call = may_call and tools is not None and tools.must
    begins = _begins(prompt, tag, continues, bool(constraint) or must_call)
    if not may_call or tools is None or isinstance(form, str):
        return Plan(begins, tag)
    if sampling.stop_regex:
        raise bad("stop_regex and tools are both given; calls end where they end", "stop_regex")
    grammar = calls_grammar(form, tools)
    if must_call and begins is Part.TEXT:
        begins = Part.CALLS
    text_grammar = ""
    if constraint and not must_call:
        text_grammar = _either(form, constraint, getattr(sampling, constraint), tokenizer)
        for name in _CONSTRAINTS:
            sampling.ClearField(name)
    special = {
        trigger.text: token
        for trigger in form.triggers
        if (token := special_id(trigger.text, tokenizer)) is not None
    }
    return Plan(begins, tag, form, grammar, must_call, text_grammar, special)


def _in_channels(tools: Tools | None, tag: str, tokenizer: Tokenizer, continues: bool) -> Plan:
    ids = {
        text: token
        for text in (*NEEDED, CONSTRAIN)
        if (token := special_id(text, tokenizer)) is not None
    }
    functions = () if tools is None else tools.callable
    must_call = tools is not None and tools.must and bool(functions)
    begins, form = Part.TEXT if continues else Part.HEADER, HARMONY if functions else None
    harmony = Harmony(ids, functions, continues)
    return Plan(begins, tag, form, must_call=must_call, harmony=harmony)


def special_id(text: str, tokenizer: Tokenizer) -> int | None:
    """The id of the special token with this text, if there is one."""
    if text not in tokenizer.special_tokens:
        return None
    found: Any = tokenizer.backend.token_to_id(text)
    return None if found is None else int(found)


def _begins(prompt: pb.Prompt, tag: str, continues: bool, must_open: bool) -> Part:
    """The first part. must_open: whether the text after the reasoning is constrained, so that the
    reasoning must be opened beforehand."""
    if not tag or not prompt.segments:
        return Part.TEXT
    end = prompt.segments[-1].text.text[-64:].rstrip()
    if end.endswith(f"<{tag}>"):
        return Part.THINKING
    if continues or end.endswith(f"</{tag}>"):
        return Part.TEXT
    if must_open:
        prompt.segments[-1].text.text += f"<{tag}>\n"
        return Part.THINKING
    return Part.OPEN


def _either(form: CallFormat, kind: str, text: str, tokenizer: Tokenizer) -> str:
    """The grammar of either a text under a JSON schema or the trigger of calls."""
    trigger = form.triggers[0].text
    if kind != "json_schema":
        raise bad(f"{kind} cannot be combined with tools, unless tool_choice is none", "tools")
    if form.only_first or special_id(trigger, tokenizer) is not None:
        raise bad(
            f"this model's form of calls ({form.name}) cannot be told from a reply by a schema; "
            "use tool_choice none or required, or leave response_format out",
            "response_format",
        )
    return f"start: {json.dumps(trigger)} | reply\nreply: %json {text}\n"
