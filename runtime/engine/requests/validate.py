"""Checks a request when it is submitted, and returns typed errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.joined import problem_with as problem_with_joins
from sgc.runtime.engine.requests.request import (
    EngineError,
    EngineRequest,
    Generate,
    SamplingParams,
    Score,
)
from sgc.runtime.engine.requests.sampling_ranges import (
    BIAS,
    RANGES,
    problem_with,
    problem_with_top_k,
)


@dataclass(frozen=True, slots=True)
class Limits:
    max_context: int
    pool_tokens: int
    vocab_size: int
    no_generation: str = ""  # why there is none

    @property
    def longest(self) -> int:
        """The most tokens that a prompt and its generation together may have."""
        return min(self.max_context, self.pool_tokens)


def problem_of(request: EngineRequest, limits: Limits) -> EngineError | None:
    """Why the request can never succeed; None if it can."""
    message = _bad_tokens(request, limits.vocab_size)
    if request.joins:
        message = message or problem_with_joins(request.joins, 0, len(request.tokens))
        if request.images:
            message = message or "a prompt with images cannot have parts that are joined"
    if isinstance(request.kind, Generate | Score):
        message = message or limits.no_generation
    if isinstance(request.kind, Generate):
        message = message or _bad_sampling(request.kind, limits.vocab_size)
    if message:
        return EngineError(pb.ERROR_CODE_INVALID_ARGUMENT, message)
    message = _too_long(request, limits)
    return EngineError(pb.ERROR_CODE_CONTEXT_EXCEEDED, message) if message else None


def _bad_tokens(request: EngineRequest, vocab_size: int) -> str:
    if len(request.tokens) == 0:
        return "the prompt has no tokens; an engine needs at least one to start from"
    tokens = request.tokens[request.tokens >= 0] if request.images else request.tokens
    runs = [np.ascontiguousarray(tokens, np.int64)]
    if isinstance(request.kind, Score):
        if not request.kind.choices:
            return "a score request needs at least one choice"
        if not all(request.kind.choices):
            return "a choice has no tokens"
        runs += [np.asarray(choice, np.int64) for choice in request.kind.choices]
    for run in runs:
        # As unsigned, a negative id is very large: one pass finds both kinds.
        if len(run) and np.maximum.reduce(run.view(np.uint64)) >= vocab_size:
            bad = int(run[(run < 0) | (run >= vocab_size)][0])
            return f"token id {bad} is not in the vocabulary (0 to {vocab_size - 1})"
    return ""


def _bad_sampling(kind: Generate, vocab_size: int) -> str:
    p: SamplingParams = kind.params
    if kind.stop_ids and not 0 <= min(kind.stop_ids) <= max(kind.stop_ids) < vocab_size:
        return f"a stop token id is not in the vocabulary (0 to {vocab_size - 1})"
    if kind.min_tokens > 0 and len(set(kind.stop_ids)) >= vocab_size:
        return "every token is a stop token, so min_tokens cannot be reached"
    if any(not 0 <= token < vocab_size for token, _ in p.logit_bias):
        return f"a token of logit_bias is not in the vocabulary (0 to {vocab_size - 1})"
    return _out_of_range(p)


@lru_cache(maxsize=1024)  # many requests have equal parameters; seeds do not matter here
def _out_of_range(p: SamplingParams) -> str:
    problems = [problem_with(name, getattr(p, name), each) for name, each in RANGES.items()]
    problems += [problem_with("a logit bias", bias, BIAS) for _, bias in p.logit_bias]
    return next(filter(None, [*problems, problem_with_top_k(p.top_k)]), "")


def _too_long(request: EngineRequest, limits: Limits) -> str:
    n_prompt, kind = len(request.tokens), request.kind
    if n_prompt < limits.longest and not isinstance(kind, Score):
        return ""
    n_context = n_pool = n_prompt
    what = f"the prompt has {n_prompt} tokens"
    if isinstance(kind, Generate) and kind.max_tokens > 0:
        n_context = n_pool = n_prompt + 1
        what += ", and generation needs room for one more at least"
    elif isinstance(kind, Score):
        n_context = n_prompt + max(map(len, kind.choices))
        n_pool = n_prompt + sum(map(len, kind.choices))
        what += f", and its choices make it {n_context} (in the pool up to {n_pool})"
    if n_context > limits.max_context:
        return f"{what}; the model's context is {limits.max_context}"
    if n_pool > limits.pool_tokens:
        return f"{what}; the engine's pool holds {limits.pool_tokens}"
    return ""
