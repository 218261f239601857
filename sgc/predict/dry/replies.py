"""The replies that a dry run assumes: those of a log, or made-up ones.

A made-up reply has half of its max_tokens, or all of them if nothing can end it earlier; under a
constraint it is a first text that satisfies it. The first choice wins.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from sgc.errors import SgcError, UsageError
from sgc.predict.dry.samples import Samples
from sgc.runtime.executor.backends.scripted import scores_that_prefer
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.interface.place import Place
from sgc.runtime.executor.log.records import fingerprint, prompt_parts, sampling_parts
from sgc.runtime.executor.patterns.checked_constraints import Check, meets
from sgc.tracing.checking.scripted_replies import obeying

SHARE = 0.5  # of max_tokens, if a reply's length is unknown
HINT = "run some rows with --log FILE; --like FILE tells what replies look like"


class Writer(Protocol):
    """Turns texts into a model's tokens."""

    def n_tokens(self, text: str) -> int: ...

    def placeholder(self, n_tokens: int) -> str:
        """Some text of about `n_tokens` tokens."""
        ...

    def ids(self, request: str, text: str, n_tokens: int) -> tuple[int, ...]:
        """New ids for a text, the same for equal requests; () if the model returns no ids."""
        ...


class AssumedReplies:
    """The `Replies` of a dry run (`backends/dry.py`). is_exact: the log's own ids are ids
    of this model.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        writer: Writer,
        samples: Samples | None = None,
        is_exact: bool = False,
    ) -> None:
        self._capabilities = capabilities
        self._writer = writer
        self._samples = samples
        self._is_exact = is_exact

    def generated(self, place: Place, prompt: Prompt, sampling: Sampling) -> Generated:
        found = self._samples.reply("generate", place) if self._samples is not None else None
        if found is not None and isinstance(found.reply, Generated):
            if found.is_same and self._is_exact:
                return found.reply
            n_tokens = self._n_tokens(found.reply)
            return self._rewritten(found.reply, n_tokens, prompt, sampling)
        made = self._made(place, sampling)
        return self._rewritten(made, made.usage.completion_tokens, prompt, sampling)

    def _n_tokens(self, reply: Generated) -> int:
        """The tokens of a reply in the log: as counted there, if by this model."""
        if self._is_exact:
            return len(reply.ids) or reply.usage.completion_tokens
        n_more = int(reply.finish_reason is FinishReason.STOP)  # the stop token
        return (self._writer.n_tokens(reply.text) if reply.text else 0) + n_more

    def _rewritten(
        self, reply: Generated, n_tokens: int, prompt: Prompt, sampling: Sampling
    ) -> Generated:
        """The same text, in new tokens that no other prompt has."""
        usage = Usage(completion_tokens=n_tokens, reasoning_tokens=reply.usage.reasoning_tokens)
        request = fingerprint(prompt_parts(prompt), sampling_parts(sampling))
        ids = self._writer.ids(request, reply.text, n_tokens)
        if not ids:
            return replace(reply, ids=(), kept_ids=(), tail=reply.text, head="", usage=usage)
        if not reply.ids or not self._is_exact:
            n_kept = max(n_tokens - (reply.finish_reason is FinishReason.STOP), 0)
            return replace(reply, ids=ids, kept_ids=ids[:n_kept], tail="", head="", usage=usage)
        start, end = _kept(reply)
        return replace(reply, ids=ids, kept_ids=ids[start:end], usage=usage)

    def _made(self, place: Place, sampling: Sampling) -> Generated:
        limit = sampling.max_tokens
        has_stops = bool(sampling.stop or sampling.stop_token_ids or sampling.stop_regex)
        can_end = not sampling.ignore_eos or has_stops
        n_tokens = max(math.ceil(limit * SHARE), sampling.min_tokens) if can_end else limit
        text = self._writer.placeholder(n_tokens)
        matched = sampling.stop[0] if can_end and sampling.stop else None
        if sampling.regex is not None or sampling.json_schema is not None:
            text, matched = _obeying(place, sampling, text), None
            n_tokens = min(self._writer.n_tokens(text) + 1, limit)
        for stop in sampling.stop:
            text = text.partition(stop)[0]
        reason = FinishReason.STOP if can_end and n_tokens < limit else FinishReason.LENGTH
        usage = Usage(completion_tokens=n_tokens)
        return Generated(text, (), (), text, reason, matched, usage)

    def scored(
        self, place: Place, prompt: Prompt, choices: tuple[str, ...], unconditional: bool
    ) -> Scored:
        found = self._samples.reply("score", place) if self._samples is not None else None
        reply = found.reply if found is not None else None
        index = 0
        if isinstance(reply, Scored):
            has_all = len(reply.choices) == len(choices) and self._capabilities.scores
            is_whole = all(len(each.unconditional) >= unconditional for each in reply.choices)
            if has_all and is_whole:
                return reply
            index = _chosen(reply, len(choices))
        if not self._capabilities.scores:
            said = reply.usage.completion_tokens if reply is not None else 0
            said = said or self._writer.n_tokens(choices[index]) + 1
            return Scored((), Usage(completion_tokens=said), index, "assumed")
        return Scored(scores_that_prefer(index, len(choices), unconditional), Usage())


def _obeying(place: Place, sampling: Sampling, text: str) -> str:
    """A text that satisfies the request's constraint. Raises UsageError if none is found."""
    given = {"regex": sampling.regex, "json_schema": sampling.json_schema}
    checks = [Check(name, value) for name, value in given.items() if value is not None]
    for inner in (text, text[:8], text[:1], ""):  # shorter texts for schemas with length limits
        found = obeying(sampling, 0, (inner,))
        if all(_meets(check, found) for check in checks):
            return found
    raise UsageError(
        f"no text is known that keeps to the {checks[0].field} of {place.name or 'a generation'}",
        where=place.line,
        hint=HINT,
    )


def _meets(check: Check, text: str) -> bool:
    try:
        return meets(check, text)
    except SgcError:
        return False


def _kept(reply: Generated) -> tuple[int, int]:
    """Which of a reply's ids are kept."""
    n, kept = len(reply.kept_ids), reply.kept_ids
    start = next((i for i in range(len(reply.ids) - n + 1) if reply.ids[i : i + n] == kept), 0)
    return start, start + n


def _chosen(reply: Scored, n_choices: int) -> int:
    index = reply.chosen
    if index is None and reply.choices:
        means = [math.fsum(each.logprobs) / max(len(each.logprobs), 1) for each in reply.choices]
        index = means.index(max(means))
    return index if index is not None and index < n_choices else 0
