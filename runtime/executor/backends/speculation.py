"""API speculative execution: one reply answers several generations (SGLang paper, section 5),
because providers bill each request with its whole prompt.

A marked generation requests more than it needs, past its stop strings. The rest of the reply is
kept: while the program appends exactly that text, it answers the next generations; if the program
appends something else, they are requested as usual. So results are what the model generates after
the same prompt, in fewer requests; a reply that does not follow the template costs the extra
tokens. A model may continue differently if a prompt is tokenized differently, so a reply is used
only from the end of a token on (`ahead_text.py`).

A chat model that cannot continue a message generates the whole message instead, which must begin
with the program's text. No other request is possible, so any position counts there, and a reply
with another beginning is requested again, a few times.

Each run has one object, and each stream its own text: rows, forks and threads share nothing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace

from sgc.errors import BudgetExceeded, ContextExceeded, SgcWarning, UnsupportedParameter
from sgc.runtime.executor.backends.ahead_text import (
    AheadText,
    begun_message,
    binding_parameters,
    difference,
    said_by,
    whole_message,
)
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    LogprobsAsked,
    OnDelta,
    Prompt,
    Sampling,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.interface.wrapping import Wrapping
from sgc.runtime.executor.patterns.checked_constraints import (
    ConstraintFailed,
    OnThrown,
    Try,
    retried,
)

MAX_MESSAGES = 3  # tries of a message that must begin with the program's text
_ANSWERED = Usage(from_ahead=True)
# Why a backend refuses a longer request, though it may take the one that is needed.
_TOO_MUCH = (BudgetExceeded, ContextExceeded, UnsupportedParameter)


class Speculation:
    """The unused text of the replies of one run, by stream."""

    def __init__(self) -> None:
        self._said: dict[str, AheadText] = {}
        self._told: set[tuple[str, str]] = set()

    def backend(
        self,
        backend: Backend,
        capabilities: Capabilities,
        path: str,
        ahead: int,
        on_thrown: OnThrown,
        where: str = "",
    ) -> Backend:
        """The backend for one generation of a stream, which may request `ahead` tokens.

        on_thrown: called with unusable replies, which cost money too. where: the generation's line,
        for warnings.
        """
        if capabilities.speculates and (ahead or path in self._said):
            return _Speculating(self, backend, capabilities, path, ahead, on_thrown, where)
        if ahead and capabilities.takes_messages:
            self.warn_once(where, "the model cannot continue a message without changing the prompt")
        return backend

    def said(self, path: str) -> AheadText | None:
        return self._said.get(path)

    def keep(self, path: str, said: AheadText | None) -> None:
        if said is None:
            self._said.pop(path, None)
        else:
            self._said[path] = said

    def warn_once(self, where: str, why: str) -> None:
        """Warns, once per line and reason, that a generation is requested without speculation."""
        if (where, why) not in self._told:
            self._told.add((where, why))
            message = f"{where or 'a generation'}: requested without speculation: {why}"
            warnings.warn(message, SgcWarning, stacklevel=2)


class _Speculating(Wrapping):
    """A backend for one generation."""

    def __init__(
        self,
        speculation: Speculation,
        backend: Backend,
        capabilities: Capabilities,
        path: str,
        ahead: int,
        on_thrown: OnThrown,
        where: str,
    ) -> None:
        super().__init__(backend)
        self._speculation, self._capabilities = speculation, capabilities
        self._path, self._ahead, self._on_thrown, self._where = path, ahead, on_thrown, where

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        found = self._answered(prompt, sampling)
        if found is not None:
            return replace(found, usage=_ANSWERED)
        self._speculation.keep(self._path, None)
        if not self._ahead or not self._may_ask_more(prompt, sampling):
            return await self.inner.generate(prompt, sampling, on_delta)
        begun = begun_message(prompt)
        if begun is not None and begun[1].strip() and not self._capabilities.goes_on:
            return await self._whole_message(*begun, prompt, sampling)
        return await self._speculate(prompt, sampling)

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        return await Backend.generate_n(self, prompt, samplings)  # one by one

    def _tell(self, why: str) -> None:
        """Warns about marked generations only; a pass marks the first of several ones."""
        if self._ahead:
            self._speculation.warn_once(self._where, why)

    def _answered(self, prompt: Prompt, sampling: Sampling) -> Generated | None:
        """The answer in an earlier reply; None if it does not have one."""
        said = self._speculation.said(self._path)
        appended = said.appended(prompt) if said is not None else None
        if said is None or appended is None or binding_parameters(sampling):
            return None
        other = difference(said.sampling, sampling)
        if other:
            self._tell(f"its {other} is not that of the generation before")
            return None
        if not said.is_border(len(appended)):
            self._tell(
                "the text before it ends inside what the model made one token, or may have; let "
                "it end where a word does"
            )
            return None
        found = said.answer(len(appended), sampling)
        if found is None and len(appended) < len(said.text):
            self._tell(_cut_off(said))
        return found

    def _may_ask_more(self, prompt: Prompt, sampling: Sampling) -> bool:
        bound = binding_parameters(sampling)
        if bound:
            self._tell(f"it has {', '.join(bound)}")
        elif self._capabilities.takes_messages and begun_message(prompt) is None:
            self._tell("to a chat model a text without roles is a message; use sgc.assistant(…)")
        else:
            return True
        return False

    def _more(self, sampling: Sampling) -> Sampling:
        """The sampling without stop strings, with enough tokens for the next generations."""
        can_count = "logprobs" not in self._capabilities.refuses
        can_count = can_count and self._capabilities.offers_logprobs
        return replace(
            sampling,
            stop=self._capabilities.chat.stop,
            max_tokens=max(self._ahead, sampling.max_tokens),
            logprobs=LogprobsAsked(text=True) if can_count else None,
        )

    async def _speculate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        """Requests a longer reply and returns its first generation. If the backend refuses that
        many tokens, or the first generation is too long, requests just the generation.
        """
        asked = self._more(sampling)
        start_s = time.monotonic()
        try:
            reply = await self.inner.generate(prompt, asked, None)
        except _TOO_MUCH as error:
            self._tell(f"{asked.max_tokens} tokens at once are refused: {error.message}")
            return await self.inner.generate(prompt, sampling, None)
        said = said_by(reply, prompt, sampling, asked.max_tokens)
        found = said.answer(0, sampling)
        if found is None:
            self._tell(_cut_off(said))
            self._on_thrown(Try(asked, reply, start_s, time.monotonic()))
            return await self.inner.generate(prompt, sampling, None)
        is_whole = not self._capabilities.goes_on
        self._speculation.keep(self._path, replace(said, is_whole_message=is_whole))
        return replace(found, usage=reply.usage, extra=reply.extra)

    async def _whole_message(
        self, head: Prompt, begun: str, prompt: Prompt, sampling: Sampling
    ) -> Generated:
        """Requests the whole message. head: the prompt up to the message's start. Raises
        ConstraintFailed if no reply begins with `begun`."""
        asked, text = self._more(sampling), ""
        for number in range(MAX_MESSAGES):
            tried = retried(asked, number)
            start_s = time.monotonic()
            reply = await self.inner.generate(head, tried, None)
            said = whole_message(said_by(reply, head, sampling, asked.max_tokens), begun)
            found = None if said is None else said.answer(len(begun), sampling)
            if found is not None:
                self._speculation.keep(self._path, said)
                return replace(found, usage=reply.usage, extra=reply.extra)
            self._on_thrown(Try(tried, reply, start_s, time.monotonic()))
            text = reply.text
        raise ConstraintFailed(
            f"{self._capabilities.model} cannot continue a begun message, and none of "
            f"{MAX_MESSAGES} whole messages began with {begun[-40:]!r}; the last was {text[:60]!r}",
            hint="ask for this form in the prompt, with an example, or raise num_api_spec_tokens",
        )


def _cut_off(said: AheadText) -> str:
    if said.ends is None:
        return (
            "the API does not tell how many tokens a text has, so that it may be longer than "
            "max_tokens, or the reply was cut off; raise max_tokens or num_api_spec_tokens"
        )
    return "the reply was cut off before its stop string; raise num_api_spec_tokens"
