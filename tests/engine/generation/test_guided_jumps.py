"""Forced text, ends and bounds of constrained generations."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from engine.core.conftest import drive
from engine.generation.conftest import Rig, make_rig
from engine.generation.guided import (
    CONSTRAINTS,
    LENGTH,
    PERSON,
    PROMPT,
    STOP,
    answers,
    is_valid,
    said,
)
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.guides.guides import Vocabulary
from sgc.runtime.engine.requests.request import Generate, SamplingParams, Stops
from sgc.runtime.engine.text.tokenizer import load_tokenizer


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


@pytest.mark.sweep
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


@pytest.mark.slow
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


@pytest.mark.sweep
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
