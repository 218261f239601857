"""Extends generations token by token, and ends them. The core calls it after each step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.request import Generate, SamplingParams, Update, Work
from sgc.runtime.engine.requests.text_rules import NO_STOP, Stop
from sgc.runtime.engine.step.masks import Allowed

_GREEDY = Draw(SamplingParams())  # the largest logit wins, whatever the other parameters


def draw_of(work: Work, allowed: Allowed | None, n_ahead: int = 0) -> Draw:
    """The parameters of the next token's draw, or of a later one's, after `n_ahead` more."""
    kind = work.request.kind
    assert isinstance(kind, Generate)
    n_generated = work.n_generated + n_ahead
    banned = kind.stop_ids if n_generated < kind.min_tokens else ()
    params = kind.params
    is_plain = not banned and allowed is None and work.decoding.penalties is None
    if is_plain and params.is_greedy and not params.logit_bias:
        return _GREEDY
    return Draw(kind.params, n_generated, work.decoding.penalties, banned, allowed)


def begin(work: Work, longest: int) -> Update:
    """Appends tokens that a constraint forces at once. Raises ValueError if they do not fit."""
    update = _extend_constrained(work, [], longest)
    is_cut = update.final and update.finish_reason == pb.FINISH_REASON_LENGTH
    if is_cut and work.decoding.guide is not None and not work.decoding.guide.may_end:
        raise ValueError(
            f"the constraint forces {len(update.new_ids)} tokens to begin with, and more; "
            "raise max_tokens or shorten the prompt"
        )
    return update


def grow(work: Work, token: int | None, longest: int) -> Update:
    """Appends a drawn token and those that a constraint then forces; final if that ends the text.

    token: None if the constraint allows none. longest: tokens a sequence may have. Raises
    ValueError if the constraint failed.
    """
    if token is not None:
        if work.decoding.guide is not None:
            return _extend_constrained(work, [token], longest)
        return _add(work, token, longest, [token]) or _going_on(work, [token])
    assert work.decoding.guide is not None
    work.decoding.guide.check()
    if not work.decoding.guide.may_end:
        raise ValueError("the constraint allows no further token of this model")
    return _ended(work, [], pb.FINISH_REASON_STOP)


def grow_run(work: Work, tokens: Sequence[int], longest: int) -> Update:
    """Appends the tokens that one step drew, up to one that ends the text."""
    new_ids: list[int] = []
    for token in tokens:
        new_ids.append(token)
        end = _add(work, token, longest, new_ids)
        if end is not None:
            return end
    return _going_on(work, new_ids)


def _going_on(work: Work, new_ids: Sequence[int]) -> Update:
    """The update of a generation that has not ended."""
    log = work.decoding.logprobs
    if log is None or not new_ids:
        return Update(work.request.id, tuple(new_ids))
    logprobs, of_prompt = log.untold(work.tokens.at(0))
    return Update(work.request.id, tuple(new_ids), logprobs=logprobs, prompt_logprobs=of_prompt)


def _extend_constrained(work: Work, drawn: list[int], longest: int) -> Update:
    """Appends drawn and forced tokens under a constraint."""
    assert work.decoding.guide is not None
    new_ids: list[int] = []
    tokens, is_forced = drawn, False
    while tokens or not is_forced:  # forced tokens may force more
        for token in tokens:
            new_ids.append(token)
            work.decoding.n_forced += is_forced
            end = _add(work, token, longest, new_ids)
            if end is not None:
                return end
        tokens, is_forced = _forced(work), True
    work.decoding.guide.check()
    if work.decoding.guide.is_over:
        return _ended(work, new_ids, pb.FINISH_REASON_STOP)
    if work.decoding.guide.is_free:
        work.decoding.guide = None
    return _going_on(work, new_ids)


def _forced(work: Work) -> list[int]:
    """The forced tokens up to a stop token: whether the text may end is the mask's decision."""
    kind = work.request.kind
    assert isinstance(kind, Generate)
    assert work.decoding.guide is not None
    return list(takewhile(lambda token: token not in kind.stop_ids, work.decoding.guide.forced()))


def _add(work: Work, token: int, longest: int, new_ids: list[int]) -> Update | None:
    """Appends one token; returns the final update if that ends the text."""
    kind = work.request.kind
    assert isinstance(kind, Generate)
    work.tokens.append(token)
    if work.decoding.penalties is not None:
        work.decoding.penalties.add(token)
    stop = NO_STOP
    if work.decoding.checker is not None:
        stop = work.decoding.checker.feed([token], work.n_generated >= kind.min_tokens)
    if token in kind.stop_ids:
        return _ended(work, new_ids, pb.FINISH_REASON_STOP, matched_id=token)
    if work.decoding.guide is not None:
        work.decoding.guide.take([token])
    if stop and (work.decoding.guide is None or work.decoding.guide.is_whole_without(stop.n_chars)):
        return _ended(work, new_ids, pb.FINISH_REASON_STOP, stop)
    if work.n_generated >= kind.max_tokens or len(work.tokens) >= longest:
        is_over = work.decoding.guide is not None and work.decoding.guide.is_over
        reason = pb.FINISH_REASON_STOP if is_over else pb.FINISH_REASON_LENGTH
        return _ended(work, new_ids, reason)
    return None


def _ended(
    work: Work,
    new_ids: list[int],
    reason: pb.FinishReason,
    stop: Stop = NO_STOP,
    matched_id: int | None = None,
) -> Update:
    log = work.decoding.logprobs
    return Update(
        work.request.id,
        tuple(new_ids),
        True,
        reason,
        stop.text,
        matched_id,
        stop.n_over,
        logprobs=() if log is None else log.of_generated(),
        prompt_logprobs=() if log is None else log.of_prompt(work.tokens.at(0)),
        usage=work.usage(time.monotonic()),
    )


def final_update(work: Work) -> Update:
    """The final update of a request that has run all its positions and draws no token."""
    if isinstance(work.request.kind, Generate):
        ending = work.decoding.ending or _ended(work, [], pb.FINISH_REASON_LENGTH)
        return replace(ending, usage=work.usage(time.monotonic()))
    return Update(
        work.request.id,
        final=True,
        choices=() if work.trie is None else work.trie.logprobs(),
        embedding=() if work.pooled is None else work.pooled.vector,
        usage=work.usage(time.monotonic()),
    )
