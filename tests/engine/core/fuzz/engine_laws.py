"""What must be true of an engine that has come to an end; `engine_fuzz.py` makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from engine.core.fuzz.engine_play import Played
from engine.core.fuzz.engine_requests import Answer

from sgc.runtime.engine.names import LAST_TOKEN
from sgc.runtime.engine.requests.request import Embed, EngineRequest, Score


def assert_right(
    requests: Sequence[EngineRequest], played: Played, right: Mapping[int, Answer]
) -> None:
    """Every answer, whatever its request went through, and all memory is free again."""
    for r in requests:
        last = played.outcomes[r.id].last
        if r.id in played.cancelled or r.id in played.failed:
            continue
        assert last is not None, "a request was forgotten"
        assert tuple(played.outcomes[r.id].ids) == right[r.id].ids, f"request {r.id}"
        assert (last.finish_reason, last.matched, last.matched_id) == right[r.id].ending
        assert last.embedding == right[r.id].embedding
        assert len(last.choices) == len(right[r.id].choices)
        for got, expected in zip(last.choices, right[r.id].choices, strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)
    stats = played.core.stats()
    assert stats.running_requests == stats.waiting_requests == stats.parked_requests == 0
    counters = stats.counters
    assert counters.positions_run + counters.speculated_tokens == played.forward.n_run


def assert_counted(requests: Sequence[EngineRequest], played: Played) -> None:
    """What each request is told, against all that was run, where nobody was cancelled."""
    n_told, n_preempted = 0, played.core.stats().preemptions
    usages = [played.outcomes[r.id].last.usage for r in requests]
    for name in ("prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens"):
        total = getattr(played.core.stats().counters, name)
        assert total == sum(getattr(usage, name) for usage in usages), name
    for r, usage in zip(requests, usages, strict=True):
        assert usage.prompt_tokens == usage.cached_tokens + usage.computed_tokens
        assert usage.prompt_tokens == len(r.tokens) + _n_of_choices(r)
        assert usage.completion_tokens == len(played.outcomes[r.id].ids)
        assert 0 <= usage.cached_tokens <= _longest_shared(r, requests, played)
        n_told += usage.computed_tokens + max(0, usage.completion_tokens - 1)
    # Who is preempted runs some again, and may find cached by others what it was to run.
    assert played.core.stats().counters.positions_run == n_told or n_preempted


def assert_run_once(requests: Sequence[EngineRequest], played: Played) -> None:
    """Each position of the prompts, however many have it; a last one again for its logits, and
    all for a mean."""
    prompts: set[tuple] = set()
    n_own = 0  # what every request runs itself
    for r in requests:
        tokens = r.tokens.tolist()
        prompts.update((r.namespace, *tokens[: i + 1]) for i in range(len(tokens)))
        n_own += isinstance(r.kind, Score) or bool(played.outcomes[r.id].ids)
        n_own += max(0, len(played.outcomes[r.id].ids) - 1)
        n_own += _n_of_choices(r)
        if isinstance(r.kind, Embed):
            n_own += 1 if r.kind.pooling == LAST_TOKEN else len(tokens)
    assert played.core.stats().counters.positions_run <= len(prompts) + n_own, (
        "a position was run twice"
    )


def _n_of_choices(request: EngineRequest) -> int:
    """The positions after which some choice goes on."""
    choices = request.kind.choices if isinstance(request.kind, Score) else ()
    return len({choice[:i] for choice in choices for i in range(1, len(choice))})


def _longest_shared(request: EngineRequest, requests, played: Played) -> int:
    """What another request of its namespace could have left for it."""
    n = 0
    for other in requests:
        if other.namespace == request.namespace and other is not request:
            for run in _sequences(other, played):
                n = max(n, _n_common(request.tokens.tolist(), run))
    return n


def _sequences(request: EngineRequest, played: Played) -> list[list[int]]:
    """What it has run, whole."""
    prompt, kind = request.tokens.tolist(), request.kind
    if isinstance(kind, Score):
        return [prompt + list(choice[:-1]) for choice in kind.choices]
    return [prompt + played.outcomes[request.id].ids[:-1]]


def _n_common(a: list[int], b: list[int]) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def assert_kept(requests: Sequence[EngineRequest], played: Played) -> None:
    """All that was run is cached for whoever comes next; where nothing was evicted."""
    for r in requests:
        for run in _sequences(r, played):
            found = played.core.cache.match(np.array(run), r.namespace)
            assert found.length == len(run), "what was computed is not in the cache"


def assert_freed(played: Played, pool: int) -> None:
    core = played.core
    n_held = pool - core.stats().free_tokens
    assert core.flush_cache() == n_held, "something is still locked"
    core.check()
    assert core.stats().free_tokens == pool, "pages were lost"
