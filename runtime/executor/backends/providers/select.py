"""Takes a choice from a provider's model, in the way that `choose.py` finds for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.choice_walk import ALLOWED, Walk, encoding_named
from sgc.runtime.executor.backends.providers.choose import (
    index_of,
    lowered_select,
    select_sampling,
    way_of,
)
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply
from sgc.runtime.executor.backends.providers.wire.lower import Lowered, lower
from sgc.runtime.executor.backends.providers.wire.messages import plain_text
from sgc.runtime.executor.interface.backend import (
    ChoiceScore,
    Generated,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.patterns.checked_constraints import MAX_TRIES, excerpt

Send = Callable[[Lowered, int], Awaitable[tuple[Generated, ...]]]
"""(request, seed) -> its generations."""


async def select(send: Send, facts: Facts, prompt: Prompt, choices: tuple[str, ...]) -> Scored:
    """Takes a choice; raises BackendError if no try returned one."""
    way = way_of(prompt, choices, facts)
    if way == "echo":
        return await _score(send, facts, prompt, choices)
    if way == "logit_bias":
        return await _walk(send, facts, prompt, choices)
    return await _generate(send, facts, prompt, choices, way)


async def _generate(
    send: Send, facts: Facts, prompt: Prompt, choices: tuple[str, ...], way: str
) -> Scored:
    usage, refused = Usage(), tuple[str, ...]()
    for seed in range(MAX_TRIES):
        sampling = select_sampling(choices, facts, refused)
        lowered = lowered_select(way, prompt, choices, facts, sampling)
        (reply,) = await send(lowered, seed)
        usage = usage.with_more(reply.usage)
        index = index_of(reply.text, choices, is_completed=facts.api == "completions")
        if index is not None:
            return Scored((), usage, index, way)
        refused = (*refused, excerpt(reply.text))
    raise BackendError(
        f"none of {MAX_TRIES} replies was one of the choices; the last was {refused[-1]!r}",
        hint="ask for it in the prompt, or use a model with structured output",
    )


async def _walk(send: Send, facts: Facts, prompt: Prompt, choices: tuple[str, ...]) -> Scored:
    encoding = encoding_named(facts.encoding)
    walk, usage = Walk.begin(choices, encoding), Usage()
    start = lower(prompt, Sampling(max_tokens=1, temperature=0.0), facts)
    while walk.chosen is None:
        allowed = walk.allowed(encoding)
        bias = {str(token): ALLOWED for token in allowed}
        asked: Any = start.asked
        if isinstance(asked, str):
            asked += encoding.decode(walk.said)
        step = replace(start, asked=asked, params={**start.params, "logit_bias": bias})
        (reply,) = await send(step, 0)
        usage = usage.with_more(reply.usage)
        walk = walk.after(reply.text, encoding)
    return Scored((), usage, walk.chosen, "logit_bias")


async def _score(send: Send, facts: Facts, prompt: Prompt, choices: tuple[str, ...]) -> Scored:
    """Scores the choices with an API that echoes the prompt with log-probabilities."""
    text = plain_text(prompt, facts.model)
    sampling = Sampling(max_tokens=1, temperature=0.0)
    scores, usage = [], Usage()
    for choice in choices:
        lowered = replace(
            lower(prompt, sampling, facts),
            asked=text + choice,
            params={"echo": True, "logprobs": 0, "temperature": 0.0},
        )
        (reply,) = await send(lowered, 0)
        usage = usage.with_more(reply.usage)
        scores.append(_choice_score(reply, len(text), len(text + choice)))
    return Scored(tuple(scores), usage)


def _choice_score(reply: Any, start: int, end: int) -> ChoiceScore:
    """The score over tokens that end after the prompt and begin before the choice's end."""
    if reply.logprobs is None:
        raise MalformedReply("the server told no log-probabilities of the prompt")
    rows, before, at = [], [], 0
    for logprob, _, token in reply.logprobs.output:
        begin, at = at, at + len(token or "")
        if at <= start:
            before = [(None, 0, token)]
        elif begin < end:
            rows.append((logprob, token))
    if not rows or any(logprob is None for logprob, _ in rows):
        raise BackendError(
            "the server gave no log-probability for a choice",
            hint="the prompt may be too short; it needs a token before the choices",
        )
    ids = tuple(range(1, len(rows) + 1))  # the API returns no ids; these are positions
    logprobs, texts = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    return ChoiceScore(ids, logprobs, texts, before=tuple(before))
