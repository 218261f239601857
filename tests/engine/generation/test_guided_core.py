"""Constraints in the engine's core, over a real vocabulary: what is generated satisfies them, and
depends on nothing but the request; what is forced costs no step."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engine.core.conftest import Outcome, drive
from engine.generation.conftest import Rig, make_rig
from jsonschema import Draft202012Validator
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.core import EngineCore
from sgc.runtime.engine.guides import Vocabulary
from sgc.runtime.engine.names import CACHES
from sgc.runtime.engine.request import EngineRequest, Generate, SamplingParams, Stops
from sgc.runtime.engine.tokenizer import load_tokenizer

STOP, LENGTH = pb.FINISH_REASON_STOP, pb.FINISH_REASON_LENGTH
PERSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        },
        "required": ["name", "age", "tags"],
    }
)
CONSTRAINTS = [
    ("regex", r"[a-z]{3,8}"),
    ("regex", r"\d{4}-\d{2}-\d{2}"),
    ("regex", r"The answer is (?:yes|no|maybe)\."),
    ("regex", r"(?:[A-Z][a-z]{1,6} ){1,3}!"),
    ("regex", r"[é🙂你]{1,3}x?"),
    ("regex", r"\w{1,5}@\w{2,6}\.(?:com|org)"),
    ("json_schema", PERSON),
    (
        "json_schema",
        '{"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems":4}',
    ),
    ("json_schema", '{"enum": ["alpha", "beta", {"k": [1, 2]}]}'),
    ("json_schema", '{"type": "string", "maxLength": 6}'),
    ("grammar", 'start: "(" start ")" | /[a-c]{1,3}/'),
    ("grammar", 'root ::= item ("," item)* ";"\nitem ::= [0-9]+'),
]
PROMPT = "Tell me something: "


def is_valid(field: str, text: str, said: str) -> bool:
    if field == "regex":
        return re.fullmatch(text, said) is not None
    if field == "json_schema":
        return Draft202012Validator(json.loads(text)).is_valid(json.loads(said))
    depth = said.count("(")
    lark = rf"\({{{depth}}}[a-c]{{1,3}}\){{{depth}}}"
    return re.fullmatch(r"\d+(,\d+)*;" if "::=" in text else lark, said) is not None


def make_requests(rig: Rig, n: int = 36, max_tokens: int = 40) -> list[EngineRequest]:
    """Of every constraint, greedy and drawn, with penalties, biases, prompts that share much."""
    shared = rig.ids("A long beginning that everyone has, and that is cached once it is known. ")
    requests = []
    for i in range(n):
        field, text = CONSTRAINTS[i % len(CONSTRAINTS)]
        params = SamplingParams(
            temperature=(0.0, 1.0, 1.4)[i % 3],
            top_p=(1.0, 0.9)[i % 2],
            frequency_penalty=(0.0, 0.7)[i % 5 == 0],
            repetition_penalty=(1.0, 1.2)[i % 7 == 0],
            logit_bias=((rig.ids(" ")[0], -3.0), (rig.eos, 2.0)) if i % 4 == 0 else (),
            seed=i,
        )
        kind = Generate(
            max_tokens,
            params,
            min_tokens=(0, 3)[i % 11 == 0],
            stop_ids=(rig.eos,) if i % 6 else (),
            constraint=rig.compile(field, text) if i % 9 else None,
        )
        requests.append(rig.request(i, shared[: 3 + i] + rig.ids(f"Ask {i // 3}: "), kind))
    return requests


def answers(outcomes: dict[int, Outcome]) -> dict[int, tuple]:
    for i, outcome in outcomes.items():
        assert outcome.last is not None, i
        assert outcome.last.error is None, outcome.last.error
    return {i: outcome.answer for i, outcome in outcomes.items()}


def said(rig: Rig, outcome: Outcome) -> str:
    assert outcome.last is not None
    ids = outcome.ids[:-1] if outcome.last.matched_id >= 0 else outcome.ids
    return rig.text(ids)


@pytest.fixture(scope="module")
def requests(rig: Rig) -> list[EngineRequest]:
    return make_requests(rig)


@pytest.fixture(scope="module")
def right(rig: Rig, requests: list[EngineRequest]) -> dict[int, tuple]:
    """Each asked alone, of an engine of its own."""
    return {r.id: answers(drive(rig.core(), [r]))[r.id] for r in requests}


# What comes out


@pytest.mark.parametrize("jumps", [True, False])
@pytest.mark.parametrize(("field", "text"), CONSTRAINTS, ids=lambda value: value[:20])
def test_a_text_that_ended_satisfies_its_constraint(rig: Rig, field, text, jumps) -> None:
    constraint = rig.compile(field, text)
    kinds = [
        Generate(60, SamplingParams(t, seed=seed), stop_ids=(rig.eos,), constraint=constraint)
        for seed, t in enumerate([0.0, 0.5, 1.0, 1.0, 1.0, 1.5, 1.5, 2.0])
    ]
    core = rig.core(jumps=jumps)
    outcomes = drive(core, [rig.request(i, PROMPT, kind) for i, kind in enumerate(kinds)])
    endings = [outcome.last.finish_reason for outcome in outcomes.values()]
    assert endings.count(STOP) >= 3
    for outcome in outcomes.values():
        assert outcome.last.error is None
        assert len(outcome.ids) <= 60
        if outcome.last.finish_reason == STOP:
            assert is_valid(field, text, said(rig, outcome)), said(rig, outcome)
        else:
            assert len(outcome.ids) == 60
    assert_counted(core, outcomes.values())


def assert_counted(core: EngineCore, outcomes) -> None:
    counters = core.stats().counters
    usages = [outcome.last.usage for outcome in outcomes]
    assert counters.sampled_tokens == sum(len(outcome.ids) for outcome in outcomes)
    assert counters.completion_tokens == sum(usage.completion_tokens for usage in usages)
    assert counters.forced_tokens == sum(usage.forced_tokens for usage in usages)
    for outcome, usage in zip(outcomes, usages, strict=True):
        assert usage.completion_tokens == len(outcome.ids)
        assert usage.prompt_tokens == usage.cached_tokens + usage.computed_tokens


# What it does not depend on


def test_the_requests_differ(rig: Rig, requests, right) -> None:
    assert len({answer[0] for answer in right.values()}) > 20
    assert {answer[1] for answer in right.values()} == {STOP, LENGTH}
    outcomes = [drive(rig.core(), [r])[r.id] for r in requests]
    assert sum(outcome.last.usage.forced_tokens > 0 for outcome in outcomes) > 10


@pytest.mark.parametrize("max_running", [1, 2, 5, 256])
def test_independent_of_the_batch(rig: Rig, requests, right, max_running) -> None:
    core = rig.core(max_running=max_running)
    outcomes = drive(core, requests)
    assert answers(outcomes) == right
    assert_counted(core, outcomes.values())


@pytest.mark.parametrize("per_step", [None, 1, 3])
def test_independent_of_the_order_of_arrival(rig: Rig, requests, right, per_step) -> None:
    order = np.random.default_rng(per_step).permutation(len(requests))
    assert answers(drive(rig.core(), [requests[i] for i in order], per_step=per_step)) == right


@pytest.mark.parametrize("chunk", [1, 3, 7, 64])
def test_independent_of_chunks(rig: Rig, requests, right, chunk) -> None:
    core = rig.core(chunk_tokens=chunk)
    outcomes = drive(core, requests, per_step=2)
    assert answers(outcomes) == right
    assert_counted(core, outcomes.values())


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("cache", CACHES)
def test_independent_of_the_cache(rig: Rig, requests, right, cache, shares) -> None:
    core = rig.core(cache=cache, shares_in_batch=shares, max_running=3)
    outcomes = drive(core, requests)
    assert answers(outcomes) == right
    assert (core.stats().counters.cached_tokens > 0) == (cache != "none")
    assert_counted(core, outcomes.values())


@pytest.mark.parametrize("cache", CACHES)
def test_independent_of_a_tight_pool(rig: Rig, requests, right, cache) -> None:
    longest = max(len(r.tokens) + 41 for r in requests)
    core = rig.core(pool=longest + 40, cache=cache, chunk_tokens=16)
    outcomes = drive(core, requests)
    assert answers(outcomes) == right
    stats = core.stats()
    assert stats.preemptions > 3
    assert cache == "none" or stats.evicted_tokens > 0
    assert_counted(core, outcomes.values())
    core.flush_cache()
    assert core.stats().free_tokens == longest + 40


def test_independent_of_what_is_cached_already(rig: Rig, requests, right) -> None:
    core = rig.core()
    for _ in range(2):
        assert answers(drive(core, requests)) == right


# Jumps


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """A vocabulary of bytes, in which every text has one tokenization."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {char: i for i, char in enumerate(alphabet)}
    backend = Backend(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|end|>"])
    folder = tmp_path_factory.mktemp("letters")
    backend.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = load_tokenizer(folder)
    return make_rig(tokenizer, Vocabulary(tokenizer, tokenizer.vocab_size))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(("field", "text"), CONSTRAINTS, ids=lambda value: value[:20])
def test_where_a_text_has_one_tokenization_jumps_change_nothing(
    letters: Rig, field, text, temperature
) -> None:
    constraint = letters.compile(field, text)
    requests = [
        letters.request(
            seed,
            PROMPT,
            Generate(
                90,
                SamplingParams(temperature, seed=seed, frequency_penalty=0.2 * (seed % 2)),
                stop_ids=(letters.eos,),
                constraint=constraint,
            ),
        )
        for seed in range(4)
    ]
    runs = {jumps: drive(letters.core(jumps=jumps), requests) for jumps in (True, False)}
    assert answers(runs[True]) == answers(runs[False])
    for seed in range(4):
        assert runs[False][seed].last.usage.forced_tokens == 0
    if field == "json_schema" and text == PERSON:
        assert all(runs[True][seed].last.usage.forced_tokens >= 20 for seed in range(4))


def test_where_the_model_takes_its_own_tokens_jumps_change_nothing(rig: Rig) -> None:
    """Of the vocabulary of words: those runs in which what was forced is tokenized as it would
    have been."""
    n_alike, n_forced = 0, 0
    for field, text in CONSTRAINTS:
        for seed in range(4):
            kind = Generate(
                60,
                SamplingParams(float(seed % 2), seed=seed),
                stop_ids=(rig.eos,),
                constraint=rig.compile(field, text),
            )
            asked = rig.one(rig.core(jumps=False), PROMPT, kind)
            if canonical_jumps(rig, field, text, asked.ids):
                jumped = rig.one(rig.core(), PROMPT, kind)
                assert jumped.answer == asked.answer
                n_alike += 1
                n_forced += jumped.last.usage.forced_tokens
    assert n_alike >= 8
    assert n_forced > 0


def canonical_jumps(rig: Rig, field: str, text: str, ids: Sequence[int]) -> bool:
    """Whether the ids, generated without jumps, go along all that a guide would have forced."""
    guide, at = rig.compile(field, text).start(), 0
    while at < len(ids):
        forced = guide.forced()
        if forced:
            n = min(len(forced), len(ids) - at)
            if list(ids[at : at + n]) != forced[:n]:
                return False
            guide.take(forced)
            at += n
        else:
            if ids[at] == rig.eos:
                break
            guide.take([ids[at]])
            at += 1
    return True


class Counting:
    """A model that counts its runs."""

    def __init__(self, model: Any) -> None:
        self._model, self.n_runs, self.n_tokens = model, 0, 0

    def run(self, batch: Any) -> Any:
        self.n_runs += 1
        self.n_tokens += batch.n_tokens
        return self._model.run(batch)


@pytest.mark.parametrize("chunk", [3, 512])
@pytest.mark.parametrize(("field", "text"), CONSTRAINTS, ids=lambda value: value[:20])
def test_a_forced_token_saves_a_step(rig: Rig, field, text, chunk) -> None:
    """A request alone makes a step for each token that is not forced, and those of its prompt."""
    for seed in range(3):
        forward = Counting(rig.model(4096))
        core = rig.core(forward=forward, chunk_tokens=chunk)
        params = SamplingParams(1.0, seed=seed)
        kind = Generate(60, params, stop_ids=(rig.eos,), constraint=rig.compile(field, text))
        outcome = rig.one(core, PROMPT, kind)
        usage = outcome.last.usage
        n_drawn = usage.completion_tokens - usage.forced_tokens
        # The model is asked a last time where the text was whole and could have gone on.
        assert core.stats().counters.steps == forward.n_runs
        n_run = forward.n_tokens
        assert n_run <= usage.prompt_tokens + usage.completion_tokens
        if chunk == 512:
            assert forward.n_runs == n_drawn
        else:
            assert forward.n_runs >= n_drawn
            assert forward.n_runs <= n_drawn + -(-n_run // chunk)
        assert core.stats().counters.forced_tokens == usage.forced_tokens


def test_a_text_that_is_forced_whole_costs_one_prefill(rig: Rig) -> None:
    text = "There is one way to say this, and this is it."
    forward = Counting(rig.model(4096))
    core = rig.core(forward=forward)
    kind = Generate(60, stop_ids=(rig.eos,), constraint=rig.compile("regex", re.escape(text)))
    outcome = rig.one(core, PROMPT, kind)
    assert (rig.text(outcome.ids), outcome.last.finish_reason) == (text, STOP)
    usage = outcome.last.usage
    assert usage.forced_tokens == usage.completion_tokens == len(outcome.ids)
    assert forward.n_runs == 1
    assert core.stats().counters.steps == 1
    assert not core.has_work
    # And what was forced can be gone on from.
    again = rig.one(core, PROMPT, kind)
    assert again.ids == outcome.ids
    assert again.last.usage.cached_tokens >= usage.prompt_tokens - 1
    longer = [*rig.ids(PROMPT), *outcome.ids, *rig.ids(" More")]
    assert rig.one(core, longer, Generate(3)).last.error is None


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_max_tokens_may_fall_inside_forced_text(letters: Rig, n) -> None:
    constraint = letters.compile("regex", "[ab]-forced-[cd]-more forced text")
    kind = Generate(n, SamplingParams(1.0, seed=2), constraint=constraint)
    outcome = letters.one(letters.core(), PROMPT, kind)
    assert len(outcome.ids) == n
    assert outcome.last.finish_reason == LENGTH
    assert re.match("[ab]", letters.text(outcome.ids))
    assert outcome.last.usage.forced_tokens == min(n - 1, 8)
    longer = letters.one(letters.core(), PROMPT, Generate(90, kind.params, constraint=constraint))
    assert longer.ids[:n] == outcome.ids


@pytest.mark.parametrize("more", [1, 0, -1])
def test_a_text_that_just_fits_has_ended(letters: Rig, more) -> None:
    constraint = letters.compile("regex", "[ab]-forced")
    outcome = letters.one(letters.core(), PROMPT, Generate(8 + more, constraint=constraint))
    assert outcome.last.finish_reason == (LENGTH if more < 0 else STOP)
    assert len(outcome.ids) == 8 + min(more, 0)


def test_a_full_context_may_fall_inside_forced_text(letters: Rig) -> None:
    constraint = letters.compile("regex", "[ab]" + "x" * 50)
    core = letters.core(max_context=len(PROMPT) + 20)
    outcome = letters.one(core, PROMPT, Generate(90, constraint=constraint))
    assert outcome.last.finish_reason == LENGTH
    assert len(outcome.ids) == 20


def test_a_forced_beginning_that_is_too_long_is_refused_at_once(letters: Rig) -> None:
    constraint = letters.compile("regex", "a" * 30 + "[ab]*")
    for options, n in (({}, 20), ({"max_context": len(PROMPT) + 10}, 100)):
        core = letters.core(**options)
        core.submit(letters.request(1, PROMPT, Generate(n, constraint=constraint)))
        (update,) = core.step()
        assert update.final
        assert update.error.code == pb.ERROR_CODE_INVALID_ARGUMENT
        assert "raise max_tokens or shorten the prompt" in update.error.message
        assert not core.has_work
        assert core.stats().counters.steps == 0
        core.flush_cache()
        assert core.stats().free_tokens == 4096


def test_what_never_ends_is_refused_or_cut(letters: Rig) -> None:
    core = letters.core()
    endless = letters.compile("grammar", 'start: "a" start')
    outcome = letters.one(core, PROMPT, Generate(20, constraint=endless))
    assert outcome.last.error is not None
    begun = letters.compile("grammar", 'start: /[xy]/ loop\nloop: "a" loop')
    outcome = letters.one(core, PROMPT, Generate(20, constraint=begun))
    assert (len(outcome.ids), outcome.last.finish_reason) == (20, LENGTH)


# Where a text may end


def test_a_stop_ends_a_text_only_where_it_is_whole(rig: Rig) -> None:
    n_stopped = 0
    for pattern, stop in ((r"\d{3}(?:,\d{3})*,?", ","), ("(?:[a-c]{2}\n)*[a-c]{2}\n?", "\n")):
        for seed in range(12):
            kind = Generate(
                40,
                SamplingParams(1.0, seed=seed),
                stop=Stops((stop,)),
                stop_ids=(rig.eos,),
                constraint=rig.compile("regex", pattern),
            )
            outcome = rig.one(rig.core(jumps=bool(seed % 2)), PROMPT, kind)
            text = said(rig, outcome)
            if outcome.last.matched:
                n_stopped += 1
                assert re.fullmatch(pattern, text[: text.rindex(stop)])
            elif outcome.last.finish_reason == STOP:
                assert re.fullmatch(pattern, text)
    assert n_stopped > 5


def test_a_stop_inside_what_is_not_whole_is_passed(rig: Rig) -> None:
    """Here the text before a comma never satisfies it."""
    for field, text in (
        ("json_schema", '{"type": "array", "items": {"enum": [1, 2]}, "minItems": 3}'),
        ("regex", r"\d,\d,\d;"),
    ):
        kind = Generate(
            60,
            SamplingParams(1.0, seed=3),
            stop=Stops((",", "1", "2")),
            stop_ids=(rig.eos,),
            constraint=rig.compile(field, text),
        )
        for jumps in (True, False):
            outcome = rig.one(rig.core(jumps=jumps), PROMPT, kind)
            assert not outcome.last.matched
            assert outcome.last.error is None
            if outcome.last.finish_reason == STOP:
                assert is_valid(field, text, said(rig, outcome))


def test_a_stop_may_lie_in_forced_text(letters: Rig) -> None:
    """Then what is forced behind it is not part of the text."""
    constraint = letters.compile("regex", "[ab](?:;tail)?")
    kind = Generate(40, SamplingParams(1.0, seed=5), stop=Stops((";t",)), constraint=constraint)
    outcomes = [
        letters.one(
            letters.core(),
            PROMPT,
            Generate(40, SamplingParams(1.0, seed=i), stop=kind.stop, constraint=constraint),
        )
        for i in range(8)
    ]
    texts = {(letters.text(o.ids), o.last.matched) for o in outcomes}
    assert {(text[1:], matched) for text, matched in texts} <= {("", ""), (";t", ";t")}
    assert any(matched for _, matched in texts)


def test_stop_ids_end_only_where_the_text_may(rig: Rig) -> None:
    """Though the model wants nothing else."""
    dot = rig.ids(".")[0]
    for stop_ids in ((rig.eos,), (dot,), (rig.eos, dot)):
        bias = tuple((i, 500.0) for i in stop_ids)
        kind = Generate(
            60,
            SamplingParams(1.0, seed=1, logit_bias=bias),
            stop_ids=stop_ids,
            constraint=rig.compile("regex", r"[a-z]{12,}"),
        )
        outcome = rig.one(rig.core(), PROMPT, kind)
        assert outcome.last.matched_id in stop_ids
        text = said(rig, outcome)
        assert re.fullmatch("[a-z]{12,}", text)
        assert len(text) < 12 + rig.tokenizer.longest_token_chars


def test_a_stop_id_that_the_text_needs_ends_it_first(rig: Rig) -> None:
    """A stop token is never text: what needs it goes another way or ends in an error."""
    dot = rig.ids(".")[0]
    kind = Generate(30, stop_ids=(dot,), constraint=rig.compile("regex", r"[a-z]{3}\.[a-z]"))
    outcome = rig.one(rig.core(jumps=False), PROMPT, kind)
    if outcome.last.error is None:
        assert outcome.last.finish_reason == LENGTH or re.fullmatch(
            r"[a-z]{3}\.[a-z]", said(rig, outcome)
        )


@pytest.mark.parametrize("stop_text", [".", "answer", " is"])
def test_a_stop_id_in_forced_text_ends_only_a_whole_text(rig: Rig, stop_text) -> None:
    """Forced text is made of tokens, and one of them may be a stop token."""
    text = "The answer is 42. So the answer is 43."
    for token in set(rig.ids(text)):
        if stop_text not in rig.vocabulary.tokens[token].decode("utf-8", "replace"):
            continue
        for jumps in (True, False):
            kind = Generate(
                60, stop_ids=(token, rig.eos), constraint=rig.compile("regex", re.escape(text))
            )
            outcome = rig.one(rig.core(jumps=jumps), PROMPT, kind)
            if outcome.last.error is None and outcome.last.finish_reason == STOP:
                assert said(rig, outcome) == text


def test_ignored_ends_are_no_way_out(rig: Rig) -> None:
    """Without stop ids a text goes on while it can, and ends where nothing can follow."""
    bounded = Generate(60, SamplingParams(1.0), constraint=rig.compile("regex", "[a-z]{2,30}"))
    outcome = rig.one(rig.core(), PROMPT, bounded)
    assert len(said(rig, outcome)) == 30
    assert outcome.last.finish_reason == STOP
    open_ = Generate(25, SamplingParams(1.0), constraint=rig.compile("regex", "[a-z]{2,}"))
    outcome = rig.one(rig.core(), PROMPT, open_)
    assert (len(outcome.ids), outcome.last.finish_reason) == (25, LENGTH)


def test_min_tokens_hold_ends_back(rig: Rig) -> None:
    bias = ((rig.eos, 500.0),)
    for n in (0, 1, 6, 13):
        kind = Generate(
            40,
            SamplingParams(1.0, seed=n, logit_bias=bias),
            min_tokens=n,
            stop_ids=(rig.eos,),
            constraint=rig.compile("regex", "[a-z]*"),
        )
        outcome = rig.one(rig.core(), PROMPT, kind)
        assert outcome.last.matched_id == rig.eos
        assert len(outcome.ids) == n + 1


@pytest.mark.parametrize("text", ["yes|no", "[ab]", "whole text"])
def test_min_tokens_of_what_is_over_before(rig: Rig, text) -> None:
    """It ends where nothing can follow; there is no way to go on."""
    for jumps in (True, False):
        kind = Generate(
            40, min_tokens=20, stop_ids=(rig.eos,), constraint=rig.compile("regex", text)
        )
        outcome = rig.one(rig.core(jumps=jumps), PROMPT, kind)
        assert outcome.last.error is None
        assert outcome.last.finish_reason == STOP
        assert re.fullmatch(text, said(rig, outcome))


def test_nothing_at_all(rig: Rig) -> None:
    """The empty text satisfies, and no other does."""
    for text in ("", "a{0}"):
        outcome = rig.one(rig.core(), PROMPT, Generate(9, constraint=rig.compile("regex", text)))
        assert (outcome.ids, outcome.last.finish_reason) == ([], STOP)
        assert outcome.last.error is None
    none = Generate(0, constraint=rig.compile("regex", "abc"))
    outcome = rig.one(rig.core(), PROMPT, none)
    assert (outcome.ids, outcome.last.finish_reason) == ([], LENGTH)


# Masks and what else decides


def test_bias_moves_only_what_is_allowed(rig: Rig) -> None:
    constraint = rig.compile("regex", "(?:cat|dog|bird)")
    no = rig.ids("x")[0]
    wanted = {"cat": "c", "dog": "d", "bird": "b"}
    for text, letter in wanted.items():
        starts = [
            i for i, t in enumerate(rig.vocabulary.tokens) if t and text.encode().startswith(t)
        ]
        assert any(rig.vocabulary.tokens[i] == letter.encode() for i in starts)
        bias = (*((i, 100.0) for i in starts), (no, 1000.0))
        params = SamplingParams(1.0, logit_bias=bias)
        outcome = rig.one(rig.core(), PROMPT, Generate(9, params, constraint=constraint))
        assert said(rig, outcome) == text


def test_bans_and_masks_together(rig: Rig) -> None:
    """A bias that rules a token out does not make it the way out; nor do penalties."""
    digits = {i: t for i, t in enumerate(rig.vocabulary.tokens) if re.fullmatch(rb"\d+", t)}
    bias = tuple((i, -1000.0) for i, t in digits.items() if t != b"7")
    params = SamplingParams(
        0.0, logit_bias=bias, frequency_penalty=2.0, presence_penalty=2.0, repetition_penalty=1.5
    )
    constraint = rig.compile("regex", r"\d{9}")
    outcome = rig.one(rig.core(), PROMPT, Generate(20, params, constraint=constraint))
    assert said(rig, outcome) == "7" * 9


@pytest.mark.parametrize("params", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}])
def test_filters_come_after_the_mask(rig: Rig, params) -> None:
    constraint = rig.compile("regex", "[xyz]{5}")
    drawn = Generate(9, SamplingParams(1.0, seed=4, **params), constraint=constraint)
    greedy = Generate(9, SamplingParams(0.0), constraint=constraint)
    outcomes = [rig.one(rig.core(), PROMPT, kind) for kind in (drawn, greedy)]
    assert outcomes[0].ids == outcomes[1].ids


# What goes wrong ends the one request


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """A vocabulary without the letter z."""
    alphabet = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - {"z"})
    backend = Backend(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|end|>"])
    folder = tmp_path_factory.mktemp("poor")
    backend.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = load_tokenizer(folder)
    return make_rig(tokenizer, Vocabulary(tokenizer, tokenizer.vocab_size))


@pytest.mark.parametrize("jumps", [True, False])
@pytest.mark.parametrize("pattern", ["[ab]z", "[ab]{2}[zZ]?z", "a+z", "(?:[ab]z)+", "[ab]zebra"])
def test_a_dead_end_is_an_error_of_its_own(poor: Rig, pattern, jumps) -> None:
    good = poor.compile("regex", "[ab]{4}")
    bad = poor.compile("regex", pattern)
    kinds = [
        Generate(30, SamplingParams(1.0, seed=i), constraint=(good, bad, None)[i % 3])
        for i in range(9)
    ]
    requests = [poor.request(i, PROMPT, kind) for i, kind in enumerate(kinds)]
    core = poor.core(jumps=jumps)
    outcomes = drive(core, requests)
    alone = drive(poor.core(jumps=jumps), [r for r in requests if r.id % 3 != 1])
    for i, outcome in outcomes.items():
        if i % 3 == 1:
            is_cut = pattern == "a+z" and outcome.last.finish_reason == LENGTH
            assert is_cut or outcome.last.error, poor.text(outcome.ids)
            assert is_cut or outcome.last.error.code == pb.ERROR_CODE_INVALID_ARGUMENT
            assert is_cut or "constraint" in outcome.last.error.message
        else:
            assert outcome.answer == alone[i].answer
    core.flush_cache()
    assert core.stats().free_tokens == 4096
    assert poor.one(core, PROMPT, Generate(3)).last.error is None


def test_a_beginning_that_no_token_says_is_refused(poor: Rig) -> None:
    """At once, or where it is tried."""
    for pattern in ("z", "z+a", "zebra"):
        for jumps in (True, False):
            with pytest.raises(ValueError, match="constraint"):
                tried(poor, pattern, jumps)


def tried(rig: Rig, pattern: str, jumps: bool) -> None:
    constraint = rig.compile("regex", pattern)
    outcome = rig.one(rig.core(jumps=jumps), PROMPT, Generate(9, constraint=constraint))
    if outcome.last.error is not None:
        raise ValueError(outcome.last.error.message)


@pytest.mark.parametrize("ends", [True, False])
def test_a_whole_text_that_no_token_goes_on_from_has_ended(poor: Rig, ends) -> None:
    constraint = poor.compile("regex", "[ab](?:z[0-9])?")
    stop_ids = (poor.eos,) if ends else ()
    for min_tokens in (0, 9):
        kind = Generate(20, min_tokens=min_tokens, stop_ids=stop_ids, constraint=constraint)
        outcome = poor.one(poor.core(), PROMPT, kind)
        assert outcome.last.error is None
        assert outcome.last.finish_reason == STOP
        assert re.fullmatch("[ab]", said(poor, outcome))


class Breaking:
    """A constraint that fails where it is told to."""

    def __init__(self, inner: Any, method: str, at: int) -> None:
        self._inner, self._method, self._at = inner, method, at

    def start(self, jumps: bool) -> Any:
        return _BreakingGuide(self._inner.start(jumps), self._method, self._at)


class _BreakingGuide:
    def __init__(self, inner: Any, method: str, at: int) -> None:
        self._inner, self._method, self._left = inner, method, at
        self._is_broken = False

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._left -= 1
            self._is_broken = self._is_broken or self._left < 0
        return getattr(self._inner, name)

    def write_mask(self, row: Any) -> None:
        _ = self.__getattr__("write_mask")
        if not self._is_broken:
            self._inner.write_mask(row)

    def check(self) -> None:
        if self._is_broken:
            raise ValueError("the constraint can be followed no further: too large")
        self._inner.check()


@pytest.mark.parametrize("method", ["take", "write_mask"])
def test_a_library_that_gives_up_ends_one_request(rig: Rig, method) -> None:
    inner = rig.compile("regex", "[a-z]{9,}")
    whole = Generate(20, SamplingParams(1.0), constraint=inner)
    core = rig.core()
    broken = [
        rig.request(
            i, PROMPT, Generate(20, SamplingParams(1.0), constraint=Breaking(inner, method, i))
        )
        for i in range(1, 6)
    ]
    outcomes = drive(core, [rig.request(0, PROMPT, whole), *broken])
    assert outcomes[0].answer == rig.one(rig.core(), PROMPT, whole).answer
    for i in range(1, 6):
        assert "followed no further" in outcomes[i].last.error.message
    core.flush_cache()
    assert core.stats().free_tokens == 4096


# Cancels


@pytest.mark.parametrize("pool", [160, 4096])
def test_cancels_at_every_stage_disturb_no_one(rig: Rig, requests, right, pool) -> None:
    rng = np.random.default_rng(pool)
    for round_ in range(4):
        core = rig.core(pool=pool, chunk_tokens=(5, 64)[round_ % 2], max_running=6)
        todo = [requests[i] for i in rng.permutation(len(requests))]
        gone: set[int] = set()
        outcomes = {r.id: Outcome() for r in todo}
        while todo or core.has_work:
            for r in todo[:2]:
                core.submit(r)
                if rng.random() < 0.1:  # before its first step
                    core.cancel(r.id)
                    gone.add(r.id)
            del todo[:2]
            if rng.random() < 0.3:
                i = int(rng.integers(0, len(requests)))
                if outcomes[i].last is None and all(r.id != i for r in todo):
                    core.cancel(i)
                    core.check()
                    gone.add(i)
            for update in core.step():
                assert update.id not in gone
                outcomes[update.id].ids += update.new_ids
                if update.final:
                    outcomes[update.id].last = update
        assert len(gone) > 3
        for i, outcome in outcomes.items():
            if i not in gone:
                assert outcome.answer == right[i]
        assert core.flush_cache() >= 0
        assert core.stats().free_tokens == pool


def test_a_step_that_fails_leaves_no_mask_behind(rig: Rig, requests, right) -> None:
    class Failing:
        def __init__(self, model: Any) -> None:
            self._model, self._n = model, 0

        def run(self, batch: Any) -> Any:
            self._n += 1
            if self._n == 4:
                raise RuntimeError("out of luck")
            return self._model.run(batch)

    core = rig.core(forward=Failing(rig.model(4096)), max_running=4)
    for r in requests:
        core.submit(r)
    outcomes = {r.id: Outcome() for r in requests}
    while core.has_work:
        try:
            updates = core.step()
        except RuntimeError:
            core.fail("a step failed")
            continue
        for update in updates:
            outcomes[update.id].ids += update.new_ids
            if update.final:
                outcomes[update.id].last = update
    failed = [i for i, outcome in outcomes.items() if outcome.last.error is not None]
    assert 0 < len(failed) <= 4
    for i, outcome in outcomes.items():
        if i not in failed:
            assert outcome.answer == right[i]
