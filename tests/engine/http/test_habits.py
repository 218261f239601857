"""What clients of vLLM's and SGLang's servers send beside OpenAI's, and look for on the port."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.text.tokenizer import Text, Tokenizer

HELLO = [{"role": "user", "content": "Hello"}]
PERSON = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 9, "minimum": 0}}}
BODY = {"model": "fake", "max_tokens": 60, "temperature": 1.0, "seed": 4}
Ask = Callable[..., Any]


def chat(ask: Ask, **more: Any) -> Any:
    return ask("/v1/chat/completions", {**BODY, "messages": HELLO, **more})


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("asked", "is_held"),
    [
        ({"guided_json": PERSON}, lambda text: isinstance(json.loads(text), dict)),
        ({"guided_json": json.dumps(PERSON)}, lambda text: isinstance(json.loads(text), dict)),
        ({"guided_regex": "[ab]{4}"}, lambda text: re.fullmatch("[ab]{4}", text)),
        ({"guided_choice": ["yes", 'n"o']}, lambda text: text in ("yes", 'n"o')),
        ({"guided_grammar": 'root ::= "x" | "y"'}, lambda text: text in ("x", "y")),
        ({"structured_outputs": {"choice": ["a b"]}}, lambda text: text == "a b"),
        ({"structured_outputs": {"regex": "[0-9]{2}"}}, str.isdigit),
        ({"structured_outputs": {"json": PERSON}}, lambda text: "{" in text),
        ({"structured_outputs": {"grammar": 'start: "z"'}}, lambda text: text == "z"),
        ({"structured_outputs": {"json_object": True}}, lambda text: text.startswith("{")),
    ],
)
def test_constraints_have_vllm_s_names(ask: Ask, asked: Any, is_held: Any) -> None:
    assert is_held(chat(ask, **asked).json["choices"][0]["message"]["content"])
    completed = ask("/v1/completions", {**BODY, "prompt": "x", **asked}).json
    assert is_held(completed["choices"][0]["text"])


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("chat/completions", {"guided_json": 3}, "guided_json", "an object"),
    ("chat/completions", {"guided_regex": 3}, "guided_regex", "a text"),
    ("chat/completions", {"guided_choice": []}, "guided_choice", "list of texts"),
    ("chat/completions", {"guided_choice": ["a", ""]}, "guided_choice", "none of them empty"),
    ("chat/completions", {"guided_choice": [1]}, "guided_choice", "list of texts"),
    ("chat/completions", {"guided_choice": ["a"] * 2000}, "guided_choice", "at most 1024"),
    ("chat/completions", {"guided_grammar": {}}, "guided_grammar", "a text"),
    ("chat/completions", {"structured_outputs": []}, "structured_outputs", "an object"),
    ("chat/completions", {"structured_outputs": {"x": 1}}, "structured_outputs.x", "not a param"),
    (
        "chat/completions",
        {"structured_outputs": {"regex": "a", "json_object": True}},
        "structured_outputs.json_object",
        "one constraint",
    ),
    ("chat/completions", {"guided_regex": "a", "regex": "b"}, "guided_regex", "one constraint"),
    (
        "chat/completions",
        {"guided_whitespace_pattern": " "},
        "guided_whitespace_pattern",
        "x-guidance",
    ),
    ("chat/completions", {"best_of": 2}, "best_of", "ask for n"),
    ("completions", {"best_of": 2, "n": 3}, "best_of", "n asks for 3"),
    ("completions", {"best_of": 2, "stream": True}, "best_of", "known at the end"),
    ("completions", {"best_of": 1000}, "best_of", "from 1 to 128"),
]


@pytest.mark.parametrize(("path", "asked", "param", "said"), BAD)
def test_bad_input_is_refused_by_name(
    ask: Ask, path: str, asked: Any, param: str, said: str
) -> None:
    given = {"messages": HELLO} if "chat" in path else {"prompt": "x"}
    answer = ask(f"/v1/{path}", {**BODY, **given, **asked})
    assert answer.status == 400, answer.text
    assert answer.error["param"] == param
    assert said in answer.error["message"]


def test_the_best_of_several_completions_are_the_likeliest(ask: Ask) -> None:
    asked = {**BODY, "prompt": ["a", "b"], "max_tokens": 6}
    all_of_them = ask("/v1/completions", {**asked, "n": 5, "logprobs": 0}).json["choices"]

    def likelihood(choice: Any) -> float:
        values = choice["logprobs"]["token_logprobs"]
        return float(sum(values) / max(1, len(values)))

    best = [sorted(all_of_them[i : i + 5], key=likelihood)[:-3:-1] for i in (0, 5)]
    found = ask("/v1/completions", {**asked, "n": 2, "best_of": 5}).json
    assert [each["text"] for each in found["choices"]] == [x["text"] for two in best for x in two]
    assert [each["index"] for each in found["choices"]] == [0, 1, 2, 3]
    assert found["choices"][0]["logprobs"] is None
    assert found["usage"]["completion_tokens"] > 4 * 6 - 1


def test_texts_become_tokens_and_tokens_texts(ask: Ask, tokenizer: Tokenizer) -> None:
    text = "The quick <|im_end|> fox"
    found = ask("/tokenize", {"model": "fake", "prompt": text, "return_token_strs": True}).json
    assert found["tokens"] == tokenizer.encode_prompt([Text(text)])
    assert found["count"] == len(found["tokens"]) == len(found["token_strs"])
    assert found["max_model_len"] == 4096
    back = ask("/detokenize", {"tokens": found["tokens"], "skip_special_tokens": False}).json
    assert back["prompt"] == back["text"] == text
    assert "<|im_end|>" not in ask("/v1/detokenize", {"tokens": found["tokens"]}).json["text"]


def test_a_conversation_s_tokens_are_those_of_its_prompt(ask: Ask) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    for more in ({}, {"tools": [tool]}):
        n = ask("/tokenize", {"messages": HELLO, **more}).json["count"]
        usage = chat(ask, **more, max_tokens=1).json["usage"]
        assert n == usage["prompt_tokens"]


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "said"),
    [
        ("tokenize", {}, 400, "prompt", "must be given"),
        ("tokenize", {"prompt": ["x"]}, 400, "prompt", "a text"),
        ("tokenize", {"prompt": "x", "messages": HELLO}, 400, "prompt", "not a parameter"),
        ("tokenize", {"prompt": "x", "model": "gpt"}, 404, "model", "no model"),
        ("tokenize", {"prompt": "x", "add_special_tokens": 1}, 400, "add_special_tokens", "true"),
        ("tokenize", {"messages": 3}, 400, "messages", "a list"),
        ("detokenize", {}, 400, "tokens", "missing"),
        ("detokenize", {"tokens": "x"}, 400, "tokens", "list of token ids"),
        ("detokenize", {"tokens": [10**6]}, 400, "tokens", "ids are below"),
        ("detokenize", {"tokens": [1], "skip_special_tokens": 1}, 400, "skip_special_tokens", "t"),
    ],
)
def test_bad_tokens_are_refused_by_name(
    ask: Ask, path: str, body: Any, status: int, param: str | None, said: str
) -> None:
    answer = ask(f"/{path}", body)
    assert (answer.status, answer.error["param"]) == (status, param)
    assert said in answer.error["message"]


def test_the_version_and_the_metrics_are_on_the_port(ask: Ask) -> None:
    assert ask("/version").json["version"]
    chat(ask)
    metrics = ask("/metrics").text
    assert 'sgc_pool_tokens{state="free"}' in metrics


def test_the_routes_are_described(ask: Ask) -> None:
    found = ask("/openapi.json").json
    assert found["openapi"].startswith("3.")
    assert {"/v1/chat/completions", "/metrics", "/v1/models/{name}"} <= found["paths"].keys()
    chats = found["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
    assert "tools" in chats["application/json"]["schema"]["properties"]
    for path, methods in found["paths"].items():
        has_parameter = any("parameters" in each for each in methods.values())
        assert has_parameter == ("{" in path)


def test_every_reply_carries_a_request_id(ask: Ask) -> None:
    def id_of(path: str, body: Any = None, **headers: str) -> str:
        return str(ask(path, body, **headers).headers["X-Request-Id"])

    assert id_of("/version", X_Request_Id="my-id.7") == "my-id.7"
    made = [
        id_of("/version", X_Request_Id='a "b" \t'),
        id_of("/version", X_Request_Id="x" * 200),
        id_of("/version"),
        id_of("/no-such-path"),
        id_of("/v1/completions", b"not JSON"),
    ]
    assert all(each.startswith("req-") for each in made)
    assert len(set(made)) == len(made)
    stream = {**BODY, "messages": HELLO, "stream": True}
    assert id_of("/v1/chat/completions", stream, X_Request_Id="s-1") == "s-1"


def test_a_model_has_the_name_that_it_is_served_by(http_engine: Any) -> None:
    with EmbeddedEngine("fake", ["--http", "0", "--served-model-name", "our/model"]) as engine:
        ask = type(http_engine)(engine).ask
        assert [each["id"] for each in ask("/v1/models").json["data"]] == ["our/model"]
        assert chat(ask, model="our/model").json["model"] == "our/model"
        assert chat(ask).status == 404


def test_a_name_that_cannot_be_sent_is_refused() -> None:
    from sgc.errors import UsageError
    from sgc.runtime.engine.config import ServerConfig, check

    for name in ("", " a", "a\n", "x" * 201):
        with pytest.raises(UsageError, match="--served-model-name"):
            check(ServerConfig(model="fake", listen="127.0.0.1:0", served_model_name=name))
