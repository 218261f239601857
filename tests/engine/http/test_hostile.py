"""What no client should send: each is refused with a reason, and the engine goes on."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import BOUND_S, cpu_below, cpu_s

Ask = Callable[..., Any]
CHAT: dict[str, Any] = {
    "model": "fake",
    "messages": [{"role": "user", "content": "x"}],
    "max_tokens": 1,
}
COMPLETION: dict[str, Any] = {"model": "fake", "prompt": "x", "max_tokens": 1}
GENERATE: dict[str, Any] = {"text": "x", "sampling_params": {"max_new_tokens": 1}}
BASES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": COMPLETION,
    "/generate": GENERATE,
}
NUMBERS = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty")
SAMPLING: dict[str, list[Any]] = {
    **{name: ["1", True, [], {}, 10**400, 1e9] for name in NUMBERS},
    "repetition_penalty": ["1", 0, -1, 1e-320, 1e-40, 101],
    "top_k": [1.5, "1", -2, 2**31],
    "stop": [1, [1], {}, ["x"] * 65, "x" * 5000],
    "stop_token_ids": ["1", [-1], [1.0], [True], [2**32], [10**6]],
    "stop_regex": [1, [1], "(", "a|", "(?=x)"],
    "ignore_eos": [1, "yes"],
    "logit_bias": [[], {"a": 1}, {"-1": 1}, {"1": "x"}, {"1": 1e9}, {"99999999999": 1}],
    "regex": [1, "(", "(?=x)"],
    "json_schema": [1, "{", [], '{"not": {}}'],
    "ebnf": [1, "", "root ::= ("],
}
OPENAI: dict[str, list[Any]] = {
    **SAMPLING,
    "model": [1, "", "nope"],
    "n": [0, -1, 1.0, "1", 129],
    "seed": [1.0, "1", 2**64],
    "max_tokens": [-1, "1", 2**32],
    "min_tokens": [-1, 2],
    "stream": [1, "yes"],
    "stream_options": [1, {"include_usage": True}],
    "response_format": [1, {"type": "xml"}, {"type": "json_schema", "json_schema": 1}],
    "cache_salt": [1, "x" * 65],
    "best_of": [0, "x", 999],
    "tools": [[{}]],
    "tool_choice": ["required", {"type": "function"}],
    "unheard_of": [1, "x"],
}
FIELDS: dict[str, dict[str, list[Any]]] = {
    "/v1/chat/completions": {
        **OPENAI,
        "messages": [1, [], [1], [{}], [{"role": "user"}], [{"role": "king", "content": "x"}]],
        "max_completion_tokens": [0, 2, "1"],
        "logprobs": [1, "yes"],
        "top_logprobs": [1, "1", -1],
        "modalities": [["audio"]],
        "continue_final_message": [1, "yes", True],  # the last message is the user's
        "add_generation_prompt": [0, False],
    },
    "/v1/completions": {
        **OPENAI,
        "prompt": [1, {}, [], [1.5], ["x", 1], [[1], "x", None], [-1], [2**32], [10**6], [True]],
        "echo": [1, "yes"],
        "logprobs": [True, "1", -1, 101],
        "suffix": ["x"],
    },
    "/generate": {
        "text": [1, {}, [], [1], ["x", 1]],
        "input_ids": [[1]],
        "sampling_params": [1, [], [{}], "x"],
        "stream": [1],
        "rid": [1],
        "return_logprob": [1, [True]],
        "logprob_start_len": ["1"],
        "image_data": ["http://example.org/x.png"],
        "lora_path": ["x"],
        "token_ids_logprob": [[1]],
        "unheard_of": [1],
    },
}
PARAMS: dict[str, list[Any]] = {
    **SAMPLING,
    "max_new_tokens": [-1, "1", 1.0],
    "min_new_tokens": [2],
    "n": [0, 129, "1"],
    "sampling_seed": ["1"],
    "skip_special_tokens": [False],
    "unheard_of": [1],
}


def cases() -> Iterator[Any]:
    for path, fields in FIELDS.items():
        for name, values in fields.items():
            for value in values:
                yield pytest.param(path, {**BASES[path], name: value}, id=f"{path} {name}")
    for name, values in PARAMS.items():
        for value in values:
            params = {"max_new_tokens": 1, name: value}
            yield pytest.param("/generate", {"text": "x", "sampling_params": params}, id=name)


EXTREMES = [-0.0, 5e-324, 1e-40, 1.7e308, -1, 2**31 - 1, -(2**63), 2**64]
WHOLE = ("n", "top_k")


@pytest.mark.parametrize("path", ["/v1/completions", "/generate"])
def test_a_number_at_its_extreme_is_used_or_refused(ask: Ask, path: str) -> None:
    own = ("max_new_tokens", "min_new_tokens", "sampling_seed")
    others = ("max_tokens", "min_tokens", "seed", "logprobs")
    for name in (*NUMBERS, "repetition_penalty", *WHOLE, *(own if path == "/generate" else others)):
        for value in EXTREMES:
            changed = {name: value, "stop": " "}
            body = {**BASES[path], **changed}
            if path == "/generate":
                params = {**GENERATE["sampling_params"], **changed}
                body = {**GENERATE, "sampling_params": params}
            assert ask(path, body).status in (200, 400), (name, value)


@pytest.mark.sweep
@pytest.mark.parametrize(("path", "body"), list(cases()))
def test_a_wrong_field_is_a_400_or_a_404_that_says_why(ask: Ask, path: str, body: Any) -> None:
    answer = ask(path, body)
    assert answer.status in (400, 404), answer.text
    assert answer.error["message"]
    assert "internal" not in answer.text


@pytest.mark.parametrize("path", BASES)
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"temperature": NaN}', 400),
        (b'{"temperature": Infinity}', 400),
        (b'{"n": ' + b"9" * 5000 + b"}", 400),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"a": ' + b"[" * 80 + b"]" * 80 + b"}", 400),
        (b" " * (17 * 1024 * 1024), 413),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(
    ask: Ask, path: str, data: bytes, status: int
) -> None:
    assert ask(path, data).status == status


@pytest.mark.parametrize("path", BASES)
@pytest.mark.parametrize(
    "twice", ['"stop": "a", "stop": null', '"x": [{"stop": 1, "b": 2, "stop": 1}]']
)
def test_a_name_that_is_there_twice_is_refused(ask: Ask, path: str, twice: str) -> None:
    body = json.dumps(BASES[path])[:-1] + f", {twice}}}"
    answer = ask(path, body.encode())
    assert (answer.status, answer.error["param"]) == (400, "stop")
    assert "'stop' twice" in answer.error["message"]


def test_a_token_that_is_biased_twice_is_refused(ask: Ask) -> None:
    path = "/v1/completions"
    answer = ask(path, {**BASES[path], "logit_bias": {"5": 1, "05": 2}})
    assert (answer.status, answer.error["param"]) == (400, "logit_bias")
    assert "token 5 is there twice" in answer.error["message"]


@pytest.mark.parametrize("path", BASES)
def test_lone_surrogates_are_refused_wherever_they_are(ask: Ask, path: str) -> None:
    for more in ({"user": "\ud800"}, {"stop": ["\udfff"]}, {"metadata": {"\ud800": 1}}):
        answer = ask(path, {**BASES[path], **more})
        assert answer.status == 400
        assert "surrogate" in answer.error["message"]


def test_a_body_in_chunks_is_bounded_too(http_engine: Any) -> None:
    connection = http.client.HTTPConnection(http_engine.host, timeout=BOUND_S)
    chunks = (b" " * 1024 * 1024 for _ in range(17))
    connection.request("POST", "/generate", chunks, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_log_probabilities_are_bounded_over_all_completions(ask: Ask) -> None:
    params = {"max_new_tokens": 1, "ignore_eos": True}
    asked = {"return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 100}
    texts = ["ab " * 700] * 3
    body = {"text": texts, "sampling_params": params, **asked}
    answer = ask("/generate", body)
    assert answer.status == 400
    assert "all completions together" in answer.error["message"]
    assert ask("/generate", {**body, "text": texts[:1]}).status == 200


def test_parameters_that_ask_for_nothing_are_taken(ask: Ask) -> None:
    harmless = {
        "user": "me", "store": True, "metadata": {"a": "b"}, "service_tier": "auto", "tools": [],
        "tool_choice": "none", "functions": None, "prompt_cache_key": "k", "modalities": ["text"],
    }  # fmt: skip
    assert ask("/v1/chat/completions", {**CHAT, **harmless}).status == 200


def test_other_paths_and_methods_are_refused_in_json(ask: Ask) -> None:
    assert ask("/nope").error["type"] == "not_found_error"
    assert ask("/v1/chat/completions").status == 405
    assert ask("/v1/models/nope").status == 404
    assert ask("/flush_cache").status == 405  # a page could make a browser GET it


def test_a_compressed_body_is_not_unpacked(ask: Ask) -> None:
    assert ask("/generate", b"\x1f\x8b", Content_Encoding="gzip").status == 415


def test_images_are_refused_and_never_fetched(ask: Ask) -> None:
    part = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}}
    answer = ask(
        "/v1/chat/completions", {**CHAT, "messages": [{"role": "user", "content": [part]}]}
    )
    assert answer.status == 400
    assert answer.error["param"] == "messages[0].content[0].type"


def test_more_completions_than_a_session_holds_are_refused(http_engine: Any, ask: Ask) -> None:
    assert ask("/generate", {**GENERATE, "text": ["x"] * 1025}).status == 400
    assert ask("/v1/completions", {**COMPLETION, "prompt": ["x"] * 9, "n": 128}).status == 400
    with cpu_below(5, lambda: cpu_s(http_engine.engine.pid)):
        assert ask("/generate", {**GENERATE, "text": ["x"] * 250_000}).status == 400
        assert ask("/generate", {**GENERATE, "text": ["x"] * 1_000_000}).status == 413


@pytest.mark.parametrize("path", BASES)
def test_what_is_copied_for_each_completion_is_bounded(ask: Ask, path: str) -> None:
    schema = json.dumps({"const": "x" * 1_000_000})
    if path == "/generate":
        body: Any = {"text": ["x"] * 1024, "sampling_params": {"json_schema": schema}}
    else:
        body = {**BASES[path], "json_schema": schema, "n": 128}
    assert ask(path, body).status == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": "localhost:9"}, 200),
        ({}, 200),
    ],
)
def test_pages_of_others_are_refused(ask: Ask, headers: Any, status: int) -> None:
    assert ask("/v1/models", **headers).status == status


def test_a_page_of_its_own_origin_is_served(http_engine: Any) -> None:
    assert http_engine.ask("/v1/models", Origin=http_engine.url).status == 200


def test_a_body_that_never_comes_stops_nobody(http_engine: Any, ask: Ask) -> None:
    head = b"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    with socket.create_connection(http_engine.address) as slow:
        slow.sendall(head)
        assert ask("/generate", GENERATE).status == 200


def test_garbage_instead_of_http_is_answered_and_hung_up_on(http_engine: Any) -> None:
    with socket.create_connection(http_engine.address, timeout=BOUND_S) as other:
        other.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        found = b""
        while data := other.recv(4096):
            found += data
    assert found.startswith(b"HTTP/1.")
    assert b" 400 " in found.split(b"\r\n")[0]


def test_a_reader_that_does_not_read_is_no_burden(http_engine: Any, ask: Ask) -> None:
    asked = {"max_new_tokens": 2000, "ignore_eos": True}
    body = json.dumps({"text": ["x"] * 4, "stream": True, "sampling_params": asked}).encode()
    head = f"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(http_engine.address) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        deaf.sendall(head.encode() + body)
        assert ask("/generate", GENERATE).status == 200
