"""SGLang's native face: `/generate` and what stands around it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import sgc
from sgc.runtime.engine.text.tokenizer import Tokenizer

Ask = Callable[..., Any]
TEXT = "The quick brown fox jumps"


def generate(ask: Ask, text: Any = TEXT, **more: Any) -> Any:
    """sampling_params by their names; a name that ends in _ stands beside them."""
    params = {"max_new_tokens": 12, "temperature": 0.0}
    body: dict[str, Any] = {} if text is None else {"text": text}
    for name, value in more.items():
        if name.endswith("_"):
            body[name[:-1]] = value
        else:
            params[name] = value
    return ask("/generate", {**body, "sampling_params": params})


def test_a_reply_has_its_text_and_meta_info(ask: Ask) -> None:
    found = generate(ask, rid_="mine").json
    meta = found["meta_info"]
    assert found["text"]
    assert meta["id"] == "mine"
    assert meta["finish_reason"]["type"] in ("length", "stop")
    assert meta["completion_tokens"] == len(found["output_ids"])
    assert meta["cached_tokens"] < meta["prompt_tokens"]


def test_lists_and_draws_come_back_in_order(ask: Ask) -> None:
    texts = ["One", "Two", "Three"]
    alone = [generate(ask, text).json["text"] for text in texts]
    assert [each["text"] for each in generate(ask, texts).json] == alone
    twice = generate(ask, texts, n=2).json
    assert [each["text"] for each in twice] == [text for text in alone for _ in range(2)]
    lengths = [{"max_new_tokens": n, "ignore_eos": True} for n in (1, 2, 3)]
    found = ask("/generate", {"text": texts, "sampling_params": lengths}).json
    assert [each["meta_info"]["completion_tokens"] for each in found] == [1, 2, 3]


def test_ids_are_the_same_prompt_as_their_text(ask: Ask, tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_continuation(TEXT)
    assert generate(ask, None, input_ids_=ids).json["text"] == generate(ask).json["text"]
    batch = generate(ask, None, input_ids_=[ids, ids]).json
    assert [each["text"] for each in batch] == [generate(ask).json["text"]] * 2


def test_streamed_texts_grow_to_the_whole(ask: Ask) -> None:
    long = {"max_new_tokens": 1500, "ignore_eos": True}  # a busy machine sends many tokens at once
    whole = generate(ask, **long).json
    events = generate(ask, **long, stream_=True).events
    texts = [event["text"] for event in events]
    assert len(texts) > 1
    assert all(b.startswith(a) for a, b in pairwise(texts))
    assert texts[-1] == whole["text"]
    assert [e["meta_info"]["finish_reason"] for e in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1]["meta_info"]["finish_reason"] == whole["meta_info"]["finish_reason"]


def test_streams_of_a_batch_are_told_apart(ask: Ask) -> None:
    events = generate(ask, ["One", "Two"], stream_=True).events
    last = {event["index"]: event["text"] for event in events}
    assert last == {i: generate(ask, text).json["text"] for i, text in enumerate(["One", "Two"])}


@pytest.mark.parametrize(
    ("constraint", "pattern"),
    [
        ({"regex": r"\d{3}-\d{4}"}, r"\d{3}-\d{4}"),
        ({"json_schema": '{"enum": ["a", "b"]}'}, r'"[ab]"'),
        ({"json_schema": {"enum": ["a", "b"]}}, r'"[ab]"'),
        ({"ebnf": 'root ::= "yes" | "no"'}, "yes|no"),
    ],
)
def test_constraints_hold(ask: Ask, constraint: Any, pattern: str) -> None:
    assert re.fullmatch(pattern, generate(ask, max_new_tokens=40, **constraint).json["text"])


def test_what_a_stop_pattern_matched_stays_and_a_stop_string_does_not(ask: Ask) -> None:
    whole = generate(ask, max_new_tokens=40, ignore_eos=True).json["text"]
    stop = whole[20:22]
    before = whole[: whole.index(stop)]
    asked = {"max_new_tokens": 40, "ignore_eos": True}
    for more, text, matched in [
        ({"stop": stop}, before, stop),
        ({"stop": [stop], "no_stop_trim": True}, before + stop, stop),
        ({"stop_regex": re.escape(stop)}, before + stop, re.escape(stop)),
    ]:
        found = generate(ask, **asked, **more).json
        assert found["text"] == text
        assert found["meta_info"]["finish_reason"] == {"type": "stop", "matched": matched}


def test_a_prefill_generates_nothing_and_is_cached(ask: Ask) -> None:
    text = "A text that is only there to be computed, and then found again"
    found = generate(ask, text, max_new_tokens=0).json
    assert found["text"] == ""
    assert found["output_ids"] == []
    assert found["meta_info"]["finish_reason"] == {"type": "length", "length": 0}
    meta = generate(ask, text).json["meta_info"]
    assert meta["cached_tokens"] == meta["prompt_tokens"] - 1


def test_a_salted_prompt_shares_with_its_own_salt_only(ask: Ask) -> None:
    text = "A text under a salt, which nobody else has"
    cached = [
        generate(ask, text, extra_key_=key).json["meta_info"]["cached_tokens"] > 0
        for key in ("one", "two", "one")
    ]
    assert cached == [False, False, True]


def test_log_probabilities_of_output_and_prompt(ask: Ask, tokenizer: Tokenizer) -> None:
    asked = {"return_logprob_": True, "return_text_in_logprobs_": True, "top_logprobs_num_": 2}
    found = generate(ask, logprob_start_len_=0, **asked).json
    meta, ids = found["meta_info"], tokenizer.encode_continuation(TEXT)
    rows = meta["input_token_logprobs"]
    assert [row[1] for row in rows] == ids
    assert "".join(row[2] for row in rows) == TEXT
    assert rows[0][0] is None
    assert all(row[0] < 0 for row in rows[1:])
    assert meta["input_top_logprobs"][0] is None
    assert [row[1] for row in meta["output_token_logprobs"]] == found["output_ids"]
    tops = meta["output_top_logprobs"]
    assert [top[0] for top in tops] == meta["output_token_logprobs"]  # greedy
    assert {len(top) for top in tops} == {2}


def test_rows_begin_after_the_start(ask: Ask, tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_continuation(TEXT)
    for start, expected in [(None, []), (-1, []), (2, ids[3:]), (len(ids) + 5, [])]:
        found = generate(ask, return_logprob_=True, logprob_start_len_=start).json["meta_info"]
        assert [row[1] for row in found["input_token_logprobs"]] == expected
    scored = generate(ask, max_new_tokens=0, return_logprob_=True).json["meta_info"]
    assert [row[1] for row in scored["input_token_logprobs"]] == ids
    assert scored["output_token_logprobs"] == []


def test_a_prefill_tells_the_alternatives_of_the_next_place(ask: Ask) -> None:
    asked = {"return_logprob_": True, "top_logprobs_num_": 3}
    meta = generate(ask, max_new_tokens=0, **asked).json["meta_info"]
    drawn = generate(ask, max_new_tokens=1, **asked).json["meta_info"]
    assert meta["output_top_logprobs"] == drawn["output_top_logprobs"]
    assert meta["completion_tokens"] == 0


@pytest.mark.parametrize("path", ["/get_model_info", "/model_info"])
def test_the_model_is_told(ask: Ask, path: str) -> None:
    assert ask(path).json["model_path"] == "fake"


@pytest.mark.parametrize("path", ["/get_server_info", "/server_info"])
def test_the_server_is_told(ask: Ask, path: str) -> None:
    assert ask(path).json["tokenizer_path"] == "fake"


def test_health_is_answered(ask: Ask) -> None:
    assert [ask(path).status for path in ("/health", "/health_generate")] == [200, 200]


def test_flushing_empties_the_cache(ask: Ask) -> None:
    generate(ask)
    assert ask("/flush_cache", method="POST").status == 200
    assert generate(ask).json["meta_info"]["cached_tokens"] == 0


def test_our_own_client_of_this_face_runs_programs_on_it(http_engine: Any) -> None:
    @sgc.function
    def program(s: Any) -> None:
        s += TEXT + sgc.gen("a", max_tokens=8) + " It is " + sgc.select("b", ["red", "dark blue"])

    endpoint = sgc.RuntimeEndpoint(http_engine.url)
    try:
        streamed = program.run(backend=endpoint, temperature=0, stream=True)
        state = program.run(backend=endpoint, temperature=0)
        assert "".join(streamed.text_iter()) == state.text()
        assert state["b"] in ("red", "dark blue")
    finally:
        endpoint.shutdown()
