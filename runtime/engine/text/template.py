"""Chat templates, probed for the prefix and suffix that each role puts around its content.

A template is rendered on small conversations, and the pieces between the contents are read off.
Conversations assembled from the pieces are then compared with the template's own output. A template
that is not a concatenation of such pieces (it rewrites history, or merges the system text into the
user's) is marked as not prefix-stable, and its pieces are approximate.

Without a template, the plain format: `SYSTEM: …\\n`, `USER: …\\n`, `ASSISTANT:…\\n`, `TOOL: …\\n`.

The begin-of-sequence text is left out of the pieces: the tokenizer puts it first. Rendering
is in `template_render.py`; untrusted templates are probed in a child process
(`template_child.py`) under time and memory limits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Render = Callable[..., str]
"""Takes messages and add_generation_prompt, then perhaps tools and further values."""

SYSTEM, USER, USER2, REPLY, TOOL = "QsysQ", "QuserQ", "QnextQ", "QreplyQ", "QtoolQ"
THOUGHT = "QthoughtQ"


@dataclass(frozen=True, slots=True)
class Role:
    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A probed template; `default_system` is used if a conversation has no system message.

    calls: what the template makes of `CALL` (`template_tools.py`); "" if it has no place for tools.
    reasoning: the first of `REASONING` that the template names; "" if it names none.
    """

    roles: Mapping[str, Role]
    default_system: str = ""
    from_model: bool = True
    prefix_stable: bool = True
    fingerprint: str = ""
    notes: tuple[str, ...] = field(default=())
    calls: str = ""
    reasoning: str = ""


class ProbeError(Exception):
    """The template cannot be used at all."""


PLAIN = Chat(
    roles={
        "system": Role("SYSTEM: ", "\n"),
        "user": Role("USER: ", "\n"),
        "assistant": Role("ASSISTANT:", "\n"),
        "tool": Role("TOOL: ", "\n"),
    },
    from_model=False,
    fingerprint=hashlib.sha256(b"sgc plain chat format 1").hexdigest(),
)


def fingerprint(source: str, bos: str, eos: str) -> str:
    return hashlib.sha256("\0".join(("chat", source, bos, eos)).encode()).hexdigest()


def probe(render: Render, bos: str) -> Chat:
    """The pieces of the template behind `render`; raises `ProbeError` if it cannot be used."""
    return _Probe(render, bos).chat()


class _Probe:
    def __init__(self, render: Render, bos: str) -> None:
        self._render = render
        self._bos = bos

    def chat(self) -> Chat:
        user, assistant, before_user = self._user_and_assistant()
        roles = {"user": user, "assistant": assistant}
        default_system = ""
        system = self._system(user)
        if system is not None:
            roles["system"] = system
            default_system = _between(before_user, system.prefix, system.suffix + user.prefix)
        tool = self._tool(assistant)
        if tool is not None:
            roles["tool"] = tool
        chat = Chat(roles, default_system)
        stable = self._rebuilds(chat) and self._keeps_history()
        return Chat(roles, default_system, prefix_stable=stable)

    def _user_and_assistant(self) -> tuple[Role, Role, str]:
        asked = self._must_render([_user(USER)], True)
        closed = self._must_render([_user(USER)], False)
        turns = self._must_render([_user(USER), _reply(REPLY), _user(USER2)], True)
        before, after = _cut(asked, USER)
        suffix, prefix_of_reply = _split_generation(after, _cut(closed, USER)[1])
        gap = _cut(_cut(turns, REPLY)[1], USER2)[0]
        prefix = self._user_prefix(before, gap)
        reply_suffix = gap[: len(gap) - len(prefix)]
        return Role(prefix, suffix), Role(prefix_of_reply, reply_suffix), before

    def _user_prefix(self, before: str, gap: str) -> str:
        """The end of the text between a reply and the next user text: it opens the user's turn."""
        if gap.endswith(before):
            return before
        turn = self._try_render([_user(USER), _reply(REPLY)], False)
        end = _cut(turn, REPLY)[1] if turn is not None and REPLY in turn else ""
        if end and gap.startswith(end):
            return gap[len(end) :]
        return _common_suffix(before, gap)

    def _system(self, user: Role) -> Role | None:
        text = self._try_render([{"role": "system", "content": SYSTEM}, _user(USER)], True)
        if text is None or SYSTEM not in text or USER not in text:
            return None
        prefix, rest = _cut(text, SYSTEM)
        gap = _cut(rest, USER)[0]
        return Role(prefix, gap.removesuffix(user.prefix))

    def _tool(self, assistant: Role) -> Role | None:
        messages = [_user(USER), _reply(REPLY), {"role": "tool", "content": TOOL}]
        text = self._try_render(messages, True)
        if text is None or TOOL not in text or REPLY not in text:
            return None
        gap, after = _cut(_cut(text, REPLY)[1], TOOL)
        if not gap.startswith(assistant.suffix) or not after.endswith(assistant.prefix):
            return None
        suffix = after[: len(after) - len(assistant.prefix)]
        return Role(gap[len(assistant.suffix) :], suffix)

    def _rebuilds(self, chat: Chat) -> bool:
        """Whether conversations assembled from the pieces equal what the template renders."""
        turns = [_user(USER), _reply(REPLY), _user(USER2), _reply("Q one\nQ two Q"), _user("Q?")]
        cases: list[list[Message]] = [turns[:1], turns[:3], turns]
        if "system" in chat.roles:
            system = {"role": "system", "content": SYSTEM}
            cases += [[system, *turns[:1]], [system, *turns]]
        if "tool" in chat.roles:
            cases.append([*turns[:2], {"role": "tool", "content": TOOL}])
        return all(self._try_render(case, True) == assemble(chat, case) for case in cases)

    def _keeps_history(self) -> bool:
        """Whether a reply with reasoning text stays unchanged in later turns."""
        thinking = f"<think>\n{THOUGHT}\n</think>\n\n{REPLY}"
        text = self._try_render([_user(USER), _reply(thinking), _user(USER2)], True)
        return text is not None and thinking in text

    def _try_render(self, messages: Sequence[Message], generate: bool) -> str | None:
        try:
            return self._render(messages, generate).removeprefix(self._bos)
        except ProbeError:
            return None

    def _must_render(self, messages: Sequence[Message], generate: bool) -> str:
        text = self._render(messages, generate).removeprefix(self._bos)
        for message in messages:
            if message["content"] not in text:
                raise ProbeError(f"the template leaves out the {message['role']}'s text")
        return text


def assemble(chat: Chat, messages: Sequence[Message]) -> str:
    """A conversation assembled from a chat's pieces, up to the assistant's reply."""
    if chat.default_system and messages[0]["role"] != "system":
        messages = [{"role": "system", "content": chat.default_system}, *messages]
    roles = chat.roles
    parts = [roles[m["role"]].prefix + m["content"] + roles[m["role"]].suffix for m in messages]
    return "".join(parts) + roles["assistant"].prefix


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _reply(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _cut(text: str, mark: str) -> tuple[str, str]:
    before, found, after = text.partition(mark)
    if not found:
        raise ProbeError("the template changes the text of a message")
    return before, after


def _split_generation(asked: str, closed: str) -> tuple[str, str]:
    """Splits the text after a user's text into its suffix and the prefix of a reply."""
    if asked.startswith(closed):
        return closed, asked[len(closed) :]
    return "", asked


def _between(text: str, start: str, end: str) -> str:
    """The text between a start and an end; "" if `text` does not have both."""
    if len(text) < len(start) + len(end) or not (text.startswith(start) and text.endswith(end)):
        return ""
    return text[len(start) : len(text) - len(end)]


def _common_suffix(a: str, b: str) -> str:
    n = 0
    while n < min(len(a), len(b)) and a[-1 - n] == b[-1 - n]:
        n += 1
    return a[len(a) - n :]
