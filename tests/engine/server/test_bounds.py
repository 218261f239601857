"""Every bound of a request is checked, and says what was found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.preparing.bounds import RequestError, ServerLimits
from sgc.runtime.engine.preparing.prepare import Prepared, prepare_all
from sgc.runtime.engine.text.tokenizer import Tokenizer

LIMITS = ServerLimits(max_context=100, pool_tokens=80, vocab_size=2048)
GOOD = {"max_tokens": 5, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0}


def prompt(text: str = "Hello there", spans: tuple[tuple[int, int], ...] = ()) -> pb.Prompt:
    literal = [pb.Span(start=a, end=b) for a, b in spans]
    return pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text=text, literal=literal))])


def generate(**changes: Any) -> pb.Request:
    sampling = pb.Sampling(**{**GOOD, **changes})
    return pb.Request(id=1, prompt=prompt(), generate=pb.Generate(sampling=sampling))


def outcome(request: pb.Request, tokenizer: Tokenizer) -> Prepared | RequestError:
    (result,) = prepare_all([request], tokenizer, LIMITS)
    return result


BAD = {
    "min_tokens (6) is larger": generate(min_tokens=6),
    "temperature must be in [0, 100], found nan": generate(temperature=math.nan),
    "temperature must be in [0, 100], found inf": generate(temperature=math.inf),
    "temperature must be in [0, 100], found -1": generate(temperature=-1),
    "top_p must be in (0, 1], found 0": generate(top_p=0),
    "top_p must be in (0, 1], found 1.5": generate(top_p=1.5),
    "min_p must be in [0, 1]": generate(min_p=2),
    "top_k must be -1 (off) or at least 1, found 0": generate(top_k=0),
    "frequency_penalty must": generate(frequency_penalty=3),
    "presence_penalty must": generate(presence_penalty=-3),
    "repetition_penalty must be in [0.001, 100], found 0": generate(repetition_penalty=0),
    "stop strings: 65": generate(stop=["x"] * 65),
    "a stop string is empty": generate(stop=["a", ""]),
    "bytes in a stop string: 4098": generate(stop=["é" * 2049]),
    "stop_token_ids: token id 2048": generate(stop_token_ids=[2048]),
    "leave one of them out": generate(heal=True, logprobs=pb.Logprobs(stream=True)),
    "no kind": pb.Request(id=1, prompt=prompt()),
    "no content": pb.Request(prompt=pb.Prompt(segments=[pb.Segment()]), commit=pb.Commit()),
    "prompt is empty": pb.Request(generate=generate().generate),
    "literal span [3, 2)": pb.Request(prompt=prompt(spans=((3, 2),)), commit=pb.Commit()),
    "literal span [0, 12)": pb.Request(prompt=prompt(spans=((0, 12),)), commit=pb.Commit()),
    "prompt: token id 2048": pb.Request(
        prompt=pb.Prompt(segments=[pb.Segment(tokens=pb.TokenRun(ids=[2048]))]),
        commit=pb.Commit(),
    ),
    "no choices": pb.Request(prompt=prompt(), score=pb.Score()),
    "choice 1 is empty": pb.Request(prompt=prompt(), score=pb.Score(choices=["a", ""])),
    "choices: 4097": pb.Request(prompt=prompt(), score=pb.Score(choices=["a"] * 4097)),
    "characters to tokenize": pb.Request(
        prompt=prompt("a" * 100_000), score=pb.Score(choices=["a"] * 400)
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_what_can_never_succeed_is_an_invalid_argument(message: str, shipped: Tokenizer) -> None:
    result = outcome(BAD[message], shipped)
    assert isinstance(result, RequestError)
    assert result.code == pb.ERROR_CODE_INVALID_ARGUMENT
    assert message in result.message


def test_one_bad_request_does_not_touch_the_others(shipped: Tokenizer) -> None:
    results = prepare_all([generate(), generate(top_p=0), generate()], shipped, LIMITS)
    assert [isinstance(result, Prepared) for result in results] == [True, False, True]


def test_context_is_bounded_by_the_smaller_of_context_and_pool(shipped: Tokenizer) -> None:
    ids = pb.TokenRun(ids=[50] * 80)
    long = pb.Prompt(segments=[pb.Segment(tokens=ids)])
    request = pb.Request(prompt=long, generate=generate().generate)
    result = outcome(request, shipped)
    assert isinstance(result, RequestError)
    assert result.code == pb.ERROR_CODE_CONTEXT_EXCEEDED
    assert "81 tokens" in result.message
    del long.segments[0].tokens.ids[79:]
    assert isinstance(
        outcome(pb.Request(prompt=long, generate=generate().generate), shipped), Prepared
    )


def test_end_of_sequence_stops_unless_ignored(shipped: Tokenizer) -> None:
    result = outcome(generate(stop_token_ids=[7, 0]), shipped)
    assert isinstance(result, Prepared)
    assert list(result.work.generate.stop_token_ids) == [7, 0, 2]
    result = outcome(generate(stop_token_ids=[7], ignore_eos=True), shipped)
    assert isinstance(result, Prepared)
    assert list(result.work.generate.stop_token_ids) == [7]


def test_end_of_sequence_ids_outside_the_vocabulary_are_left_out(shipped: Tokenizer) -> None:
    result = prepare_all([generate()], shipped, replace(LIMITS, vocab_size=1))[0]
    assert isinstance(result, Prepared)
    assert list(result.work.generate.stop_token_ids) == [0]


def test_a_prompt_that_fills_the_context_may_ask_for_no_token(shipped: Tokenizer) -> None:
    ids = pb.TokenRun(ids=[50] * 80)
    long = pb.Prompt(segments=[pb.Segment(tokens=ids)])
    request = pb.Request(prompt=long, generate=generate(max_tokens=0).generate)
    assert isinstance(outcome(request, shipped), Prepared)
