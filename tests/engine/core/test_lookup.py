"""Prompt look-up: guessed tokens change no answer, save steps where a text repeats itself, and cost
little where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from engine.core.runners import runner_of
from tests_support import one_in

from sgc.runtime.engine.ints import IntBuffer
from sgc.runtime.engine.requests.guesses import (
    AT_FIRST,
    MOST,
    PER_ACCEPTED,
    PER_TOKEN,
    SHORT_WORTH,
    WINDOW,
    Guesses,
)
from sgc.runtime.engine.requests.request import Generate, LogprobsAsked, SamplingParams, Stops

VOCAB = 97
GREEDY, DRAWN = SamplingParams(), SamplingParams(1.0, top_p=0.95, seed=3)


class Rhyming:
    """A `Forward` whose next token depends on hardly more than the last: texts repeat themselves.

    bad_after: a token after which the logits are NaN."""

    def __init__(self, sharpness: float = 9.0, bad_after: int | None = None) -> None:
        rng = np.random.default_rng(1)
        self._table = rng.standard_normal((VOCAB, VOCAB)).astype(np.float32) * sharpness / 3
        self._table[:, 0] = -30
        self._bad_after = bad_after
        self._tokens: dict[int, int] = {}

    def run(self, batch):
        self._tokens.update(zip(batch.slots.tolist(), batch.token_ids.tolist(), strict=True))
        rows = np.searchsorted(batch.row_starts, batch.logit_index, side="right") - 1
        found = np.empty((len(rows), VOCAB), np.float32)
        for i, (row, at) in enumerate(zip(rows, batch.logit_index, strict=True)):
            here = batch.page_starts[row] + batch.positions[at]
            last = self._tokens[int(batch.pages[here])]
            before = self._tokens[int(batch.pages[here - 1])] if batch.positions[at] else 0
            found[i] = self._table[(3 * last + before % 2) % VOCAB]
            if last == self._bad_after:
                found[i] = np.nan
        return found


def run(lab, forward, requests, **options):
    core = lab.make_core(forward=forward, vocab=VOCAB, **options)
    return lab.drive(core, requests, per_step=options.get("per_step")), core.stats().counters


def rhyming_requests(lab, seed: int, n: int = 16) -> list:
    rng = np.random.default_rng(seed)
    trunk = rng.integers(1, VOCAB, 40)
    kinds = [
        lambda m: Generate(m, GREEDY),
        lambda m: Generate(m, replace(DRAWN, seed=m)),
        lambda m: Generate(m, GREEDY, stop_ids=(5, 9)),
        lambda m: Generate(m, replace(DRAWN, seed=m), min_tokens=11, stop_ids=(5, 9, 14, 40)),
        lambda m: Generate(m, DRAWN, stop=Stops((lab.letter(8), lab.letter(33)))),
        lambda m: Generate(m, SamplingParams(repetition_penalty=1.1)),
        lambda m: Generate(m, replace(DRAWN, logit_bias=((7, 4.0), (9, -9.0)))),
        lambda m: Generate(m, GREEDY, logprobs=LogprobsAsked(None, 2)),
    ]
    requests = []
    for i in range(n):
        prompt = [*trunk[: rng.integers(1, 40)], *rng.integers(1, VOCAB, rng.integers(0, 20))]
        requests.append(lab.request(i, prompt, kinds[i % len(kinds)](int(rng.integers(1, 90)))))
    return [*requests, *(replace(r, id=100 + r.id) for r in requests)]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("seed", "options"),
    one_in(3, range(3), [{"max_running": 2}, {"pool": 260}, {"chunk_tokens": 5, "pool": 200}]),
)
def test_no_answer_changes(lab, seed, options) -> None:
    requests = rhyming_requests(lab, seed)
    plain, _ = run(lab, Rhyming(), requests, lookup=False, **options)
    guessed, counters = run(lab, Rhyming(), requests, **options)
    assert counters.accepted_tokens > 20
    for i, outcome in plain.items():
        assert guessed[i].answer == outcome.answer
        assert guessed[i].last.usage.completion_tokens == outcome.last.usage.completion_tokens
        assert guessed[i].last.logprobs == outcome.last.logprobs


def test_longest_and_max_tokens_are_kept(lab) -> None:
    for max_tokens in (*range(1, 24), 500):
        request = lab.request(1, [3, 4, 5] * 4, Generate(max_tokens, GREEDY))
        both = [
            run(lab, Rhyming(), [request], lookup=lookup, max_context=90)[0][1]
            for lookup in (True, False)
        ]
        assert both[0].answer == both[1].answer
        assert len(both[0].ids) == min(max_tokens, 90 - 12)


def test_a_text_that_repeats_itself_takes_a_third_of_the_steps(lab) -> None:
    requests = [lab.request(1, [3, 4, 5], Generate(400, GREEDY))]
    plain, before = run(lab, Rhyming(), requests, lookup=False)
    guessed, counters = run(lab, Rhyming(), requests)
    assert guessed[1].answer == plain[1].answer
    assert 3 * counters.steps <= before.steps
    assert counters.positions_run == before.positions_run
    assert before.accepted_tokens == before.speculated_tokens == 0


@pytest.mark.parametrize("params", [GREEDY, DRAWN])
def test_a_request_asked_again_is_guessed_from_the_tree(lab, params) -> None:
    """The fake model's text does not repeat itself; its logits tell of every page before."""
    core = lab.make_core()
    first = lab.drive(core, [lab.request(1, range(50, 80), Generate(90, params))])
    before = core.stats().counters
    again = lab.drive(core, [lab.request(2, range(50, 80), Generate(90, params))])
    counters = core.stats().counters
    assert again[2].ids == first[1].ids
    assert counters.speculated_tokens == before.speculated_tokens
    assert 3 * (counters.steps - before.steps) <= before.steps


@pytest.mark.slow
def test_a_text_without_repetition_costs_little(lab) -> None:
    core = lab.make_core(vocab=40, max_context=3000)
    requests = [lab.request(i, [2 + i, 3, 9], Generate(2000, DRAWN)) for i in range(2)]
    lab.drive(core, requests)
    counters = core.stats().counters
    n_earned = PER_TOKEN * counters.completion_tokens + PER_ACCEPTED * counters.accepted_tokens
    assert 0 < counters.speculated_tokens <= 2 * AT_FIRST + n_earned
    assert counters.accepted_tokens < 0.1 * counters.completion_tokens


def test_only_small_steps_have_guesses(lab) -> None:
    requests = [lab.request(i, [3 + i, 4, 5], Generate(60, GREEDY)) for i in range(20)]
    _, counters = run(lab, Rhyming(), requests)
    assert counters.accepted_tokens == counters.speculated_tokens == 0
    sizes: list[int] = []
    forward = Rhyming()
    plain_run = forward.run
    forward.run = lambda batch: sizes.append(batch.n_tokens) or plain_run(batch)
    _, counters = run(lab, forward, requests[:5])
    assert counters.accepted_tokens > 0
    assert max(sizes) <= 16


def test_not_a_number_after_a_guess_ends_its_request_as_without_guesses(lab) -> None:
    good = lab.request(1, [3, 4, 5], Generate(60, GREEDY))
    ids = run(lab, Rhyming(), [good], lookup=False)[0][1].ids
    for bad in set(ids[20:40]):
        requests = [lab.request(2, [*good.tokens, *ids[:16], *ids[:3]], Generate(60, GREEDY)), good]
        plain, guessed = (
            run(lab, Rhyming(bad_after=bad), requests, lookup=lookup)[0] for lookup in (False, True)
        )
        for i in (1, 2):
            assert guessed[i].ids == plain[i].ids
            assert guessed[i].last.error == plain[i].last.error


def test_a_cancelled_request_holds_nothing(lab) -> None:
    core = lab.make_core(forward=Rhyming(), vocab=VOCAB)
    core.submit(lab.request(1, [3, 4, 5] * 5, Generate(300, GREEDY)))
    for _ in range(12):
        core.step()
    core.cancel(1)
    core.check()
    core.flush_cache()
    assert core.stats().free_tokens == core.limits.pool_tokens


def test_a_real_model_says_the_same(lab) -> None:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=48, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1024,
        bos_token_id=None, eos_token_id=None, pad_token_id=None, initializer_range=0.3,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    runner = runner_of(model, 4096)
    requests = rhyming_requests(lab, 5, 8)
    plain, _ = run(lab, runner, requests, lookup=False, max_running=3)
    guessed, counters = run(lab, runner, requests, max_running=1, policy="fcfs")
    assert {i: o.answer for i, o in guessed.items()} == {i: o.answer for i, o in plain.items()}
    assert counters.accepted_tokens > 100
    assert counters.speculated_tokens > 0


def test_the_index_finds_what_a_search_finds() -> None:
    """Also when tokens come in runs, and after it was made anew."""
    rng = np.random.default_rng(2)
    tokens, guesses = IntBuffer(rng.integers(0, 6, 50)), Guesses(50)
    for _ in range(400):
        assert guesses.copied(tokens, MOST) == found_by_search(tokens.view.tolist(), MOST)
        tokens.extend(rng.integers(0, 6, int(rng.integers(1, 5))))
    tokens.extend(rng.integers(0, 6, 2 * WINDOW + 7))
    for _ in range(3):
        assert guesses.copied(tokens, MOST) == found_by_search(tokens.view.tolist(), MOST)
        tokens.append(3)
    assert all(len(after) <= 2 * WINDOW for after in (guesses._after_long, guesses._after_short))


def found_by_search(tokens: list[int], n: int) -> list[int]:
    for length, most in ((4, n), (2, SHORT_WORTH)):
        last = tokens[-length:]
        for at in range(len(tokens) - 1, length - 1, -1):
            if tokens[at - length : at] == last:
                run = tokens[at:]
                return (run * n)[: min(n, most)]
    return []
