"""Renders a conversation as a prompt, with the role texts that were read off the model's template
at start, or if these are not enough, with the template itself.

A message's content is always plain text: special tokens are recognised only in the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.http.images.places import image_prompt
from sgc.runtime.engine.http.openai.messages import read_messages
from sgc.runtime.engine.http.sampling import text_prompt
from sgc.runtime.engine.http.turns.formats import HARMONY, HERMES, found_in
from sgc.runtime.engine.http.turns.instructions import as_texts, with_instructions
from sgc.runtime.engine.http.turns.rendering import rendered
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template import Chat

Told = Sequence[Json]
# What the engine gives to chat templates, or asks of their renderer: no client's to set.
_NOT_CLIENTS = (
    *("messages", "tools", "documents", "add_generation_prompt", "continue_final_message"),
    *("bos_token", "eos_token", "pad_token", "unk_token", "chat_template", "tokenize"),
)


def chat_prompt(
    messages: Any,
    facts: EngineFacts,
    continues_last: bool = False,
    tools: Told = (),
    more: Mapping[str, Any] | None = None,
) -> pb.Prompt:
    """The prompt; raises HttpError if the messages are not texts, or cannot fit the context.

    continues_last: the reply continues the last message, which is an assistant's. tools: as the
    client gave them. more: values for the template.
    """
    chat = facts.chat
    files: list[bytes] = []
    images = facts.limits.images
    turns = read_messages(messages, _roles(chat), images if isinstance(images, str) else files)
    if files:
        _check_images(facts, tools)
    if continues_last and (turns[-1]["role"] != "assistant" or turns[-1].get("tool_calls")):
        where = f"messages[{len(turns) - 1}].role"
        raise bad("continue_final_message needs a last message of the assistant's", where)
    for name in _NOT_CLIENTS:
        if name in (more or ()):
            where = f"chat_template_kwargs.{name}"
            raise bad(f"{where}: the engine itself gives templates their {name}", where)
    if more and (facts.renderer is None or not chat.from_model):
        raise bad("chat_template_kwargs: this model has no chat template", "chat_template_kwargs")
    has_calls = any("tool_calls" in turn or turn["role"] == "tool" for turn in turns)
    with_calls = bool(chat.calls) and (has_calls or bool(tools))
    if found_in(chat) is HARMONY:
        turns = [_with_thinking(turn) for turn in turns]
    if facts.renderer is not None and (files or more or with_calls or not chat.prefix_stable):
        if not chat.calls:
            turns = _told(turns, tools, chat)
        found = rendered(
            facts.renderer,
            turns,
            tools if chat.calls else (),
            more or {},
            facts.tokenizer.special_tokens,
            continues_last,
        )
        return image_prompt(found[0], facts, files, found[1])
    return _assembled(_told(turns, tools, chat), facts, continues_last)


def _with_thinking(turn: Json) -> Json:
    """A message with its reasoning under the name that gpt-oss's templates use. With calls, they
    take either reasoning or content; then the content, which the client saw, is used."""
    if not turn.get("reasoning_content") or (turn.get("tool_calls") and turn["content"]):
        return turn
    return {**turn, "thinking": turn["reasoning_content"]}


def _check_images(facts: EngineFacts, tools: Told) -> None:
    """Raises HttpError where a conversation cannot have images."""
    if facts.renderer is None or not facts.chat.from_model:
        raise bad(
            "messages: this model has no chat template, which says where images stand; send "
            "/generate a text with image_data",
            "messages",
        )
    if tools and not facts.chat.calls and "system" not in facts.chat.roles:
        raise bad("this model's chat template has no place for tools beside images", "tools")


def _roles(chat: Chat) -> list[str]:
    """The roles for messages. Every template can hold tool results: without a role for tools, they
    are a user's text."""
    return [*(role for role in chat.roles if role != "tool"), "tool"]


def _told(turns: list[Json], tools: Told, chat: Chat) -> list[Json]:
    """The messages, with tools, calls and results as texts."""
    turns = as_texts(turns, HERMES, chat.roles)
    if not tools:
        return turns
    return with_instructions(turns, tools, chat.roles, chat.default_system)


def _assembled(turns: list[Json], facts: EngineFacts, continues_last: bool) -> pb.Prompt:
    chat = facts.chat
    if chat.default_system and turns[0]["role"] != "system":
        turns = [{"role": "system", "content": chat.default_system}, *turns]
    parts: list[str] = []
    literal: list[tuple[int, int]] = []
    n_chars = 0
    for turn in turns:
        around, content = chat.roles[turn["role"]], turn["content"]
        start = n_chars + len(around.prefix)
        literal.append((start, start + len(content)))
        parts += (around.prefix, content, around.suffix)
        n_chars = start + len(content) + len(around.suffix)
    if continues_last:
        parts.pop()
    else:
        parts.append(chat.roles["assistant"].prefix)
    return text_prompt("".join(parts), facts, literal)
