"""A model whose own chat template takes tools, served whole: sgc-tiny with Qwen's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_templates import MISTRAL, QWEN

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER

ASKED = [{"role": "user", "content": "What is the weather in Lisbon?"}]
CITIES = {"type": "object", "properties": {"city": {"enum": ["Lisbon", "Oslo"]}}}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "weather", "parameters": {**CITIES, "required": ["city"]}},
    }
]
CALL = {"id": "abcdefghi", "type": "function"}
HISTORY = [
    *ASKED,
    {
        "role": "assistant",
        "tool_calls": [
            {**CALL, "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "abcdefghi", "content": "Sunny <|im_end|>"},
]


@pytest.fixture(
    scope="module",
    params=[pytest.param(("qwen", QWEN), marks=pytest.mark.slow), ("mistral", MISTRAL)],
    ids=lambda x: x[0],
)
def ask(
    request: pytest.FixtureRequest, http_engine: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("models") / request.param[0]
    shutil.copytree(DEFAULT_FOLDER, folder)
    (folder / "chat_template.jinja").write_text(request.param[1], encoding="utf-8")
    with EmbeddedEngine(str(folder), ["--http", "0"]) as engine:
        served = type(http_engine)(engine)
        model = served.ask("/v1/models").json["data"][0]["id"]

        def asking(path: str, **more: Any) -> Any:
            body = {"model": model, "messages": ASKED, "temperature": 0, "tools": TOOLS, **more}
            return served.ask(path, body)

        yield asking


def test_calls_are_made_in_the_template_s_form(ask: Any) -> None:
    found = ask("/v1/chat/completions", tool_choice="required", parallel_tool_calls=False).json
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"])["city"] in ("Lisbon", "Oslo")
    assert found["choices"][0]["finish_reason"] == "tool_calls"


def test_a_conversation_goes_on(ask: Any) -> None:
    found = ask("/v1/chat/completions", messages=HISTORY, max_tokens=8)
    assert found.status == 200, found.text
    assert found.json["usage"]["prompt_tokens"] > 40


def test_what_the_template_refuses_is_a_fault_of_the_messages(
    ask: Any, request: pytest.FixtureRequest
) -> None:
    call = {**CALL, "id": "x", "function": {"name": "weather", "arguments": "{}"}}
    wrong = [*ASKED, {"role": "assistant", "tool_calls": [call]}]
    found = ask("/v1/chat/completions", messages=wrong, max_tokens=8)
    refuses = request.node.callspec.params["ask"][0] == "mistral"
    assert (found.status == 200) == (not refuses)
    if refuses:
        assert (found.status, found.error["param"]) == (400, "messages")
        assert "length 9" in found.error["message"]
