"""The result cache: what is kept, what is not, and what goes first."""

from __future__ import annotations

import random
import stat
from dataclasses import replace

import pytest
from executor.keep.cached import N_REQUESTS, RUN, SAMPLING, Counting, answer, ask, in_loop

import sgc
from sgc.errors import BackendError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.interface.backend import RoleMark, Sampling, TextRun, TokenRun, Usage
from sgc.runtime.executor.interface.media import media
from sgc.runtime.executor.keep.request_keys import generation_key, score_key
from sgc.runtime.executor.keep.result_store import FILE, MIN_BYTES, ResultStore


@pytest.mark.parametrize("interpret", [False, True])
def test_what_draws_nothing_is_asked_once(tmp_path, interpret):
    first, n_first = ask(tmp_path, interpret=interpret)
    second, n_second = ask(tmp_path, interpret=not interpret)
    # Another draw gives another prompt to what follows, a choice and two generations.
    assert (n_first, n_second) == (N_REQUESTS, 1 + 1 + 2)
    assert second["greedy"] == first["greedy"]
    stats = second.stats
    assert (stats.requests, stats.cached_requests) == (N_REQUESTS, 2)
    assert (stats.prompt_tokens, stats.cost_usd) == (3 * 10, 3 * 0.5)
    kept = [request for request in second.requests if request.usage.from_cache]
    assert [request.name for request in kept] == ["greedy", "own"]
    assert kept[0].usage == Usage(
        prompt_tokens=10, computed_tokens=10, cost_usd=0.0, from_cache=True
    )
    assert second.get_meta_info("greedy")["prompt_tokens"] == 10


def test_with_a_seed_of_the_run_all_of_it_is_kept(tmp_path):
    first, n_first = ask(tmp_path, seed=3)
    second, n_second = ask(tmp_path, seed=3)
    assert (n_first, n_second) == (N_REQUESTS, 0)
    assert second.text() == first.text()
    assert second["many"] == first["many"]
    assert (second.stats.cached_requests, second.stats.cost_usd) == (N_REQUESTS, None)
    assert second.stats.prompt_tokens == 0
    assert ask(tmp_path, seed=4)[1] == 4


def test_text_from_the_cache_is_shown(tmp_path):
    shown = []
    for _ in range(2):
        shown.append([])
        with sgc.cached(Endpoint(Counting()), tmp_path) as endpoint:
            on_text = lambda node, path, text, to=shown[-1]: to.append(text)  # noqa: E731
            answer.compile(check=False).run("Q", seed=3, backend=endpoint, on_text=on_text)
    assert shown[0] == shown[1]


def test_whose_reply_it_is_counts(tmp_path):
    ask(tmp_path, seed=3)
    assert ask(tmp_path, Counting("another"), seed=3)[1] == N_REQUESTS
    elsewhere = Counting()
    elsewhere.scope = "elsewhere"
    assert ask(tmp_path, elsewhere, seed=3)[1] == N_REQUESTS


def test_errors_are_not_kept(tmp_path):
    with pytest.raises(BackendError):
        ask(tmp_path, Counting(fails=True), seed=3)
    assert ask(tmp_path, seed=3)[1] == N_REQUESTS


PICTURES = [media(b"GIF89a" + bytes(n)) for n in (1, 2)]


DIFFERENT = {
    "text": (TextRun("user: ho"),),
    "roles": (replace(RUN, roles=(RoleMark(0, 6, "user", True),)),),
    "another role": (replace(RUN, roles=(RoleMark(0, 6, "tool", True),)),),
    "an end": (replace(RUN, roles=(RoleMark(0, 6, "user", False),)),),
    "plain text": (replace(RUN, literal=((0, 2),)),),
    "tokens": (TokenRun((1, 2), "user: hi"),),
    "other tokens": (TokenRun((3,), "user: hi"),),
    "two texts": (TextRun("user:"), TextRun(" hi")),
    "an image": (RUN, sgc.runtime.executor.interface.backend.MediaRun(PICTURES[0], "")),
    "another image": (RUN, sgc.runtime.executor.interface.backend.MediaRun(PICTURES[1], "")),
}


def test_requests_have_one_key_each():
    keys = {generation_key(prompt, SAMPLING) for prompt in [(RUN,), *DIFFERENT.values()]}
    values = {
        "max_tokens": 5, "min_tokens": 1, "temperature": 0.5, "top_p": 0.5, "top_k": 3,
        "min_p": 0.1, "frequency_penalty": 0.1, "presence_penalty": 0.1, "ignore_eos": True,
        "repetition_penalty": 1.1, "stop": ("a",), "stop_token_ids": (1,), "stop_regex": ("a",),
        "regex": "a", "json_schema": "{}", "ebnf": "a", "logit_bias": ((1, 2.0),), "heal": True,
        "refused": ("a",),
        "logprobs": sgc.runtime.executor.interface.backend.LogprobsAsked(),
    }  # fmt: skip
    assert set(values) == set(Sampling.__slots__) - {"seed", "own_seed", "is_repeatable"}
    keys |= {generation_key((RUN,), replace(SAMPLING, **{n: v})) for n, v in values.items()}
    keys |= {generation_key((RUN,), replace(SAMPLING, temperature=0.5, seed=7))}
    scores = [(("a",), False), (("a",), True), (("a", "b"), False), (("ab",), False)]
    keys |= {score_key((RUN,), *score) for score in scores}
    assert len(keys) == 1 + len(DIFFERENT) + len(values) + 1 + len(scores)
    marked = replace(RUN, cache_marks=(3,))
    assert generation_key((marked,), replace(SAMPLING, seed=9, is_repeatable=True)) in keys


def test_only_its_owner_reads_it(tmp_path):
    ask(tmp_path / "new" / "cache", seed=3)
    store = ResultStore(tmp_path / "new" / "cache")
    in_loop(lambda: store.put("k", {"a": 1}))
    for path in (tmp_path / "new" / "cache").iterdir():  # the journal too
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new" / "cache").stat().st_mode) == 0o700
    store.close()
    store.close()
    assert in_loop(lambda: store.get("k")) is None


def test_the_least_recently_used_go_first(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("sgc.runtime.executor.keep.result_store.time.time", lambda: clock[0])
    store = ResultStore(tmp_path, MIN_BYTES)
    text = "".join(random.Random(1).choices("abcdef", k=10_000))

    async def fill():
        for n in range(300):
            clock[0] += 100
            await store.put(f"k{n}", {"n": n, "text": text})
            assert await store.get("k0") == {"n": 0, "text": text}  # used again and again
        await store.put("huge", {"text": text * 20})
        found = [n for n in range(300) if await store.get(f"k{n}") is not None]
        assert await store.get("huge") is None
        return found

    found = in_loop(fill)
    store.close()
    assert found[0] == 0
    assert found[1:] == list(range(301 - len(found), 300))
    assert 40 < len(found) < 105
    assert (tmp_path / FILE).stat().st_size < 2 * MIN_BYTES


@pytest.mark.parametrize("n_rows", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_rows(tmp_path, n_rows):
    n_texts = n_rows * 3 // 10

    @sgc.function
    def one(s, q: str):
        s += q + sgc.gen("t", temperature=0, max_tokens=4)

    program = one.compile()
    rows = [{"q": f"question {n % n_texts}"} for n in range(n_rows)]
    for n_asked in (n_texts, 0):
        backend = Counting()
        with sgc.cached(Endpoint(backend), tmp_path) as endpoint:
            states = program.run_batch(rows, backend=endpoint, max_concurrency=10_000)
            stats = [state.result().stats for state in states]
        assert backend.n_asked == n_asked
        assert sum(each.shared_requests for each in stats) == n_rows - n_texts
        assert sum(each.cached_requests for each in stats) == n_texts - n_asked
