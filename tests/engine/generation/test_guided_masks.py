"""What masks leave: biases, filters, dead ends."""

from __future__ import annotations

import json
import re

import pytest
from engine.core.conftest import drive
from engine.generation.conftest import Rig, make_rig
from engine.generation.guided import LENGTH, PROMPT, STOP, said
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.guides.guides import Vocabulary
from sgc.runtime.engine.requests.request import Generate, SamplingParams
from sgc.runtime.engine.text.tokenizer import load_tokenizer


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


@pytest.mark.sweep
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
