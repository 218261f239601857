"""API speculative execution: one reply answers several generations (paper, section 5; at providers
each request is paid for with its whole prompt).

A generation that is marked asks for more than it needs, past its stop strings. What the reply says
beyond is kept: while the program appends just that, the generations that come next are answered
from it, and where it appends something else they are asked for as ever. So what is given is what
the model says of the same prompt, in fewer requests; a reply that does not follow the template
costs the tokens it was ahead. Of a prompt that is cut into other tokens a model says other things,
so what was said counts only up to where a token ends. One object a run, and each stream has its
own: nothing is shared between rows, forks or threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from sgc.errors import BudgetExceeded, ContextExceeded, UnsupportedParameter
from sgc.runtime.executor.backend import (
    Backend,
    Capabilities,
    FinishReason,
    Generated,
    LogprobsAsked,
    MediaRun,
    Prompt,
    Sampling,
    Scored,
    TextRun,
    Usage,
    generate_each,
)
from sgc.runtime.executor.lowering import OnThrown, Try

# What decides how a text is cut, not what the model would say.
_CUTS = frozenset({"max_tokens", "stop", "seed", "own_seed", "logprobs", "is_repeatable"})
_ANSWERED = Usage(from_ahead=True)
# Why more than was wanted is not given, though what was wanted may be.
_TOO_MUCH = (BudgetExceeded, ContextExceeded, UnsupportedParameter)


@dataclass(frozen=True, slots=True)
class Said:
    """What a reply has said after a prompt. is_ended: the model ended there by itself.

    ends: how many characters its first token is long, its first two, …; None where nobody tells.
    """

    before: str
    media: tuple[MediaRun, ...]
    text: str
    is_ended: bool
    ends: tuple[int, ...] | None
    sampling: Sampling

    def after(self, prompt: Prompt) -> int | None:
        """How much of the text a longer prompt has appended; None if it appended another."""
        text, media = _flat(prompt)
        if media != self.media or not text.startswith(self.before):
            return None
        appended = text[len(self.before) :]
        is_said = self.text.startswith(appended) and self._is_border(len(appended))
        return len(appended) if is_said else None

    def _is_border(self, at: int) -> bool:
        """Whether a token ends there: a prompt that ends within one is another prompt. Where nobody
        tells, that is sure only before a single space, which begins a token nearly everywhere.
        """
        if at == 0:
            return True
        if self.ends is not None:
            return at in self.ends
        return self.text[at : at + 1] == " " and not self.text[at - 1].isspace()

    def n_tokens(self, start: int, end: int) -> int:
        """At most how many tokens a part is: where nobody tells, one may be as short as a byte."""
        if self.ends is None:
            return len(self.text[start:end].encode("utf-8", "surrogatepass"))
        return sum(start < at < end for at in self.ends) + (end > start)


def _flat(prompt: Prompt) -> tuple[str, tuple[MediaRun, ...]]:
    media = tuple(part for part in prompt if isinstance(part, MediaRun))
    return "".join("\0" if isinstance(part, MediaRun) else part.text for part in prompt), media


class Speculation:
    """What the replies of one run have said ahead, by stream."""

    def __init__(self) -> None:
        self._said: dict[str, Said] = {}

    def backend(
        self,
        backend: Backend,
        capabilities: Capabilities,
        path: str,
        ahead: int,
        on_thrown: OnThrown,
    ) -> Backend:
        """The backend for one generation of a stream, that may ask for `ahead` tokens at once.

        on_thrown: gets replies that were of no use; they cost what they cost.
        """
        if not capabilities.speculates or (not ahead and path not in self._said):
            return backend
        return _Speculating(backend, capabilities, self._said, path, ahead, on_thrown)


class _Speculating:
    """A backend for one generation."""

    def __init__(
        self,
        backend: Backend,
        capabilities: Capabilities,
        said: dict[str, Said],
        path: str,
        ahead: int,
        on_thrown: OnThrown,
    ) -> None:
        self._backend, self._capabilities = backend, capabilities
        self._said, self._path, self._ahead = said, path, ahead
        self._on_thrown = on_thrown

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: Callable[[str], None] | None = None
    ) -> Generated:
        said = self._said.get(self._path)
        start = said.after(prompt) if said is not None else None
        if said is not None and start is not None and _is_alike(said.sampling, sampling):
            found = _cut(said, start, sampling)
            if found is not None:
                return replace(found, usage=_ANSWERED)
        self._said.pop(self._path, None)
        can_go_on = not self._capabilities.takes_messages or _is_within_role(prompt)
        if self._ahead <= sampling.max_tokens or not _is_free(sampling) or not can_go_on:
            return await self._backend.generate(prompt, sampling, on_delta)
        return await self._speculate(prompt, sampling)

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        return await generate_each(self, prompt, samplings)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        return await self._backend.score(prompt, choices, unconditional)

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        return await self._backend.commit_prefix(prompt, heads)

    async def prefetch(self, prompt: Prompt) -> Usage:
        return await self._backend.prefetch(prompt)

    async def close(self) -> None:
        """The backend is its run's to close."""

    async def _speculate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        """Asks past the stop strings. What was asked for is the beginning of what comes, unless
        that is too long, or so much is not given: then it is asked for as it should be.
        """
        can_count = "logprobs" not in self._capabilities.refuses
        can_count = can_count and self._capabilities.offers_logprobs
        asked = replace(
            sampling,
            stop=self._capabilities.chat.stop,
            max_tokens=self._ahead,
            logprobs=LogprobsAsked(text=True) if can_count else None,
        )
        start_s = time.monotonic()
        try:
            reply = await self._backend.generate(prompt, asked, None)
        except _TOO_MUCH:
            return await self._backend.generate(prompt, sampling, None)
        said = said_by(reply, prompt, sampling)
        found = _cut(said, 0, sampling)
        if found is None:
            self._on_thrown(Try(asked, reply, start_s, time.monotonic()))
            return await self._backend.generate(prompt, sampling, None)
        self._said[self._path] = said
        return replace(found, usage=reply.usage, extra=reply.extra)


def _is_within_role(prompt: Prompt) -> bool:
    """Whether a prompt ends in a message that has begun, so that the next one goes on with it.

    A text without roles is a message of its own each time: what was said to one is no part of the
    next.
    """
    marks = [mark for run in prompt if isinstance(run, TextRun) for mark in run.roles]
    return bool(marks) and marks[-1].is_begin


def said_by(reply: Generated, prompt: Prompt, sampling: Sampling) -> Said:
    text, media = _flat(prompt)
    is_ended = reply.finish_reason is FinishReason.STOP
    return Said(text, media, reply.text, is_ended, _ends(reply), sampling)


def _ends(reply: Generated) -> tuple[int, ...] | None:
    """Where the tokens of a reply end in its text, if it tells their texts and they add up."""
    if reply.logprobs is None or not reply.logprobs.output:
        return None
    texts = [text for _, _, text in reply.logprobs.output]
    ends, length = [], 0
    for text in texts:
        if text is None:
            return None
        length += len(text)
        ends.append(length)
    whole = "".join(text or "" for text in texts)
    return tuple(ends) if whole.startswith(reply.text) else None


def _is_free(sampling: Sampling) -> bool:
    """Whether nothing but its end is asked of a text."""
    bound = (sampling.regex, sampling.json_schema, sampling.ebnf, sampling.logprobs)
    return (
        all(each is None for each in bound)
        and not sampling.stop_regex
        and not sampling.stop_token_ids
        and not sampling.heal
        and not sampling.min_tokens
        and not sampling.ignore_eos
    )


def _is_alike(one: Sampling, other: Sampling) -> bool:
    """Whether the model would say the same for both, but for where it is cut."""
    names = [field.name for field in fields(Sampling) if field.name not in _CUTS]
    return _is_free(other) and all(getattr(one, name) == getattr(other, name) for name in names)


def _cut(said: Said, start: int, sampling: Sampling) -> Generated | None:
    """The text that a generation would have given, if what was said tells it whole."""
    rest = said.text[start:]
    found = [(rest.index(stop), stop) for stop in sampling.stop if stop in rest]
    if not found and not (said.is_ended and (rest or start == 0)):
        return _shortened(said, sampling) if start == 0 else None
    # As engines stop: with the string that is complete first, of these the longest.
    first = min(found, key=lambda each: (each[0] + len(each[1]), each[0]), default=None)
    end, matched = first or (len(rest), None)
    # The token that the stop string ends in counts too, as it does where it is asked for.
    until = start + end + len(matched or "")
    if said.n_tokens(start, until) <= sampling.max_tokens:
        return _given(rest[:end], FinishReason.STOP, matched)
    return _shortened(said, sampling) if start == 0 else None


def _shortened(said: Said, sampling: Sampling) -> Generated | None:
    """As many tokens as are asked for, if it is told where they end."""
    if said.ends is None or not 0 < sampling.max_tokens <= len(said.ends):
        return None
    return _given(said.text[: said.ends[sampling.max_tokens - 1]], FinishReason.LENGTH, None)


def _given(text: str, reason: FinishReason, matched: str | None) -> Generated:
    return Generated(text, (), (), text, reason, matched, Usage())
