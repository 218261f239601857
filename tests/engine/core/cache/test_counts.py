"""How many positions are run, worked out from the requests alone: from the trie of all their
sequences. On an empty cache: its nodes, less each generation's and each choice's last token
unless another choice or a later prompt goes on from it, plus one for every request that needs
logits after a prompt that is already in the trie whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from property_tests import examples

from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.requests.request import Commit, Generate, SamplingParams, Score

VOCAB = 9973  # large, so that what is generated seldom coincides with anything
FLAT = FakeModel(4096, VOCAB)  # and nothing is much likelier than the rest


class Trie:
    def __init__(self) -> None:
        self.nodes: set[tuple[int, ...]] = set()

    def add(self, tokens) -> None:
        tokens = tuple(int(t) for t in tokens)
        self.nodes.update(tokens[:end] for end in range(1, len(tokens) + 1))

    def has(self, tokens) -> bool:
        return tuple(int(t) for t in tokens) in self.nodes


class Expected:
    """Follows waves of requests that arrive together, each when the one before is answered."""

    def __init__(self) -> None:
        self.trie = Trie()
        self.reruns = 0

    def wave(self, requests, outcomes) -> None:
        for r in requests:
            needs_logits = not isinstance(r.kind, Commit)
            if isinstance(r.kind, Generate) and r.kind.max_tokens == 0:
                needs_logits = False
            self.reruns += needs_logits and self.trie.has(r.tokens)
            self.trie.add(r.tokens)
        for r in requests:
            choices = r.kind.choices if isinstance(r.kind, Score) else ()
            runs = [run[:-1] for run in (outcomes[r.id].ids, *choices) if len(run) > 1]
            # Each runs its own, also where it coincides with another's: once in a thousand cases.
            assume(not any(self.trie.has([*r.tokens, run[0]]) for run in runs))
            for run in runs:
                self.trie.add([*r.tokens, *run])

    @property
    def positions(self) -> int:
        return len(self.trie.nodes) + self.reruns


def _kind(rng, i: int):
    which = rng.integers(0, 5)
    if which == 0:
        return Commit()
    if which == 1:
        # Choices of its own, for a choice is run by each request that asks for it.
        base = 5000 + 10 * i
        return Score(((base, 1, 2), (base, 1), (base + 1,), (base, 3)))
    return Generate(int(rng.integers(0, 6)), SamplingParams(temperature=9.0, seed=i))


def _prompts(rng, known: list) -> list:
    """Continues, repeats or cuts what is known, or starts anew."""
    out = []
    for _ in range(12):
        base = known[rng.integers(0, len(known))] if known and rng.integers(0, 4) else []
        cut = list(base[: rng.integers(0, len(base) + 1)]) if rng.integers(0, 2) else list(base)
        prompt = cut + rng.integers(10, 4000, rng.integers(0, 12)).tolist()
        out.append(prompt or [11])
        known.append(out[-1])
    return out


@examples(20)
@given(
    seed=st.integers(0, 10**6),
    chunk=st.sampled_from([1, 3, 16, 512]),
    max_running=st.sampled_from([1, 4, 256]),
)
@example(seed=20000, chunk=16, max_running=4)
def test_each_shared_position_is_run_once(lab, seed, chunk, max_running) -> None:
    rng = np.random.default_rng(seed)
    # In the order of arrival, which decides whose last position is already cached.
    core = lab.make_core(
        forward=FLAT, vocab=VOCAB, chunk_tokens=chunk, max_running=max_running, policy="fcfs"
    )
    expected, known, n = Expected(), [], 0
    for _ in range(3):
        requests = []
        for prompt in _prompts(rng, known):
            requests.append(lab.request(n, prompt, _kind(rng, n)))
            n += 1
        outcomes = lab.drive(core, requests)
        expected.wave(requests, outcomes)
        known += [[*r.tokens.tolist(), *outcomes[r.id].ids] for r in requests]
        assert core.stats().counters.positions_run == expected.positions
    counters = core.stats().counters
    assert counters.prompt_tokens == counters.cached_tokens + counters.computed_tokens
    assert core.stats().evicted_tokens == 0


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_requests_that_arrive_together_share_their_prefix(lab, chunk) -> None:
    rng = np.random.default_rng(0)
    shared = rng.integers(10, 4000, 200).tolist()
    requests = [
        lab.request(i, [*shared, *rng.integers(10, 4000, 8).tolist()], Commit()) for i in range(16)
    ]
    core = lab.make_core(vocab=VOCAB, chunk_tokens=chunk)
    outcomes = lab.drive(core, requests)
    assert core.stats().counters.positions_run == 200 + 16 * 8
    assert [outcomes[i].last.usage.cached_tokens for i in range(16)] == [0] + [200] * 15


def test_equal_prompts_that_arrive_together(lab) -> None:
    prompt = list(range(10, 110))
    kinds = [Generate(5, SamplingParams(temperature=9.0, seed=i)) for i in range(8)]
    core = lab.make_core(forward=FLAT, vocab=VOCAB, chunk_tokens=32)
    lab.drive(core, [lab.request(i, prompt, kind) for i, kind in enumerate(kinds)])
    assert core.stats().counters.positions_run == 100 + 7 + 8 * 4


def test_nobody_follows_a_parked_request(lab) -> None:
    """Nor is passed by a later one therefore, that finds a place when what both need is there."""
    core = lab.make_core(vocab=VOCAB, policy="fcfs", max_running=3)
    requests = [
        lab.request(0, [10, 11, 12], Commit()),
        lab.request(1, [10, 20], Generate(1)),
        lab.request(2, [10, 20, 30], Commit()),
        lab.request(3, [10, 20, 40, 41], Generate(1)),  # would follow the one before it
        lab.request(4, [50], Generate(2)),
        lab.request(5, [51], Generate(2)),  # the last place
        lab.request(6, [10, 20, 40, 41, 42], Commit()),
    ]
    outcomes = lab.drive(core, requests)
    usages = [outcomes[i].last.usage for i in (2, 3, 6)]
    assert [usage.cached_tokens for usage in usages] == [2, 2, 4]


def test_what_is_being_generated_is_shared_too(lab) -> None:
    """A prompt that continues a generation still running takes what is there of it."""
    core = lab.make_core(vocab=VOCAB)
    core.submit(lab.request(1, [10, 11, 12], Generate(100, SamplingParams(temperature=1.0))))
    ids = [i for _ in range(20) for update in core.step() for i in update.new_ids]
    assert len(ids) == 20
    core.submit(lab.request(2, [10, 11, 12, *ids[:15], 13, 14], Commit()))
    usages = [u.usage for _ in range(3) for u in core.step() if u.id == 2 and u.final]
    assert [(u.cached_tokens, u.computed_tokens) for u in usages] == [(18, 2)]
    core.cancel(1)


def test_a_choice_that_is_being_scored_is_waited_for(lab) -> None:
    core = lab.make_core(vocab=VOCAB, chunk_tokens=4)
    requests = [
        lab.request(1, [10, 11, 12], Score(((20, 21, 22, 23), (30, 31, 32, 33)))),
        lab.request(2, [10, 11, 12, 30, 31, 32, 33, 40], Commit()),
    ]
    outcomes = lab.drive(core, requests)
    assert outcomes[2].last.usage.computed_tokens == 2
    assert core.stats().counters.positions_run == 3 + 6 + 2


def test_choices_of_one_token_cost_no_step(lab) -> None:
    """Also after a new prompt that fills the step by itself."""
    core = lab.make_core(vocab=VOCAB, chunk_tokens=64)
    prompt, choices = list(range(10, 74)), ((20,), (21,), (22,))
    core.submit(lab.request(1, prompt, Score(choices)))
    (update,) = core.step()
    expected = lab.Naive(VOCAB).score(prompt, Score(choices))
    np.testing.assert_allclose(update.choices, expected, rtol=0, atol=1e-9)
    assert (update.usage.prompt_tokens, update.usage.computed_tokens) == (64, 64)
    counters = core.stats().counters
    assert (counters.steps, counters.positions_run) == (1, 64)
    assert not core.has_work
    # Whoever goes on from a choice runs it, and waits for nobody.
    lab.drive(core, [lab.request(2, prompt, Score(choices))])
    assert core.stats().counters.positions_run == 64 + 1
    then = lab.drive(core, [lab.request(3, [*prompt, 21, 30], Commit())])[3].last.usage
    assert (then.cached_tokens, then.computed_tokens) == (64, 2)


def test_what_no_choice_runs_is_not_waited_for(lab) -> None:
    """A prompt that goes on with a choice of one token runs beside the longer choices."""
    core = lab.make_core(vocab=VOCAB, chunk_tokens=8)
    core.submit(lab.request(1, [10, 11, 12], Score(((20,), tuple(range(30, 60))))))
    core.step()
    core.submit(lab.request(2, [10, 11, 12, 20, 21], Commit()))
    core.step()
    assert core.stats().running_requests == 2
    while core.has_work:
        core.step()
    assert core.stats().counters.positions_run == 3 + 29 + 2


def test_a_commit_of_what_is_cached_runs_nothing(lab) -> None:
    core = lab.make_core()
    lab.drive(core, [lab.request(1, range(10, 50), Commit())])
    steps = core.stats().counters.steps
    outcome = lab.drive(core, [lab.request(2, range(10, 40), Commit())])[2]
    assert outcome.last.usage.cached_tokens == 30
    assert core.stats().counters.steps == steps


def test_a_generation_is_cached_up_to_its_last_token(lab) -> None:
    core = lab.make_core()
    prompt = list(range(10, 20))
    ids = lab.drive(core, [lab.request(1, prompt, Generate(6))])[1].ids
    assert len(ids) == 6
    usage = lab.drive(core, [lab.request(2, [*prompt, *ids, 99], Commit())])[2].last.usage
    assert (usage.cached_tokens, usage.computed_tokens) == (15, 2)
    assert core.stats().cached_pool_tokens == 17


def test_namespaces_share_nothing(lab) -> None:
    from sgc.runtime.engine.requests.request import EngineRequest

    core = lab.make_core()
    tokens = np.arange(10, 30)
    requests = [EngineRequest(i, tokens, Commit(), space) for i, space in enumerate([b"a", b"b"])]
    lab.drive(core, requests)
    assert core.stats().counters.positions_run == 40


def test_a_preempted_request_reports_its_prompt_once(lab) -> None:
    rng = np.random.default_rng(1)
    core = lab.make_core(pool=100, chunk_tokens=32)
    requests = [lab.request(i, rng.integers(10, 900, 30), Generate(30)) for i in range(6)]
    outcomes = lab.drive(core, requests)
    stats = core.stats()
    assert stats.preemptions > 0
    assert all(o.last.usage.prompt_tokens == 30 for o in outcomes.values())
    assert stats.counters.prompt_tokens == 180
    assert stats.counters.positions_run > sum(29 + len(o.ids) for o in outcomes.values())
