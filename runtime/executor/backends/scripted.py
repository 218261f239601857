"""A backend of scripted replies: no model, no engine, every reply a function of the request.

It is for the tracer's check and for tests. A function of the whole request chooses the reply, so
that equal requests get equal replies in any order.
"""

from __future__ import annotations

from collections.abc import Callable

from sgc.runtime.executor.interface.backend import (
    Backend,
    ChoiceScore,
    FinishReason,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat, RoleFormat

PLAIN_CHAT = ChatFormat(
    roles={
        role: RoleFormat(f"<|{role}|>", "<|end|>")
        for role in ("system", "user", "assistant", "tool")
    },
    image_token="<image>",
)

CAPABILITIES = Capabilities(
    "scripted", PLAIN_CHAT, max_context=2**31 - 1, unconditional=True, images=True
)


class ScriptedBackend(Backend):
    """Replies with `reply(prompt, sampling)` and prefers the choice `prefer(prompt, choices)`."""

    def __init__(
        self,
        reply: Callable[[Prompt, Sampling], str],
        prefer: Callable[[Prompt, tuple[str, ...]], int] = lambda prompt, choices: 0,
    ) -> None:
        self._reply = reply
        self._prefer = prefer

    async def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        text = self._reply(prompt, sampling)
        matched = None
        for stop in sampling.stop:
            if stop in text:
                text, matched = text[: text.index(stop)], stop
        if on_delta is not None and text:
            on_delta(text)
        # One token per code point, all kept: a prompt depends only on its text.
        ids = tuple(map(ord, text))
        return Generated(text, ids, ids, "", FinishReason.STOP, matched, Usage())

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        best = self._prefer(prompt, choices)
        return Scored(scores_that_prefer(best, len(choices), unconditional), Usage())


def scores_that_prefer(best: int, n_choices: int, unconditional: bool) -> tuple[ChoiceScore, ...]:
    """Scores with which every method prefers choice `best`; each choice has one token."""
    return tuple(
        ChoiceScore(
            (index,),
            (0.0 if index == best else -1.0 - index,),
            unconditional=(None,) if unconditional else (),
        )
        for index in range(n_choices)
    )
