"""Replies of several parts, read from a scripted model; and what chat templates make of tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chat_templates import LLAMA3, MISTRAL, NOUS, QWEN, XML
from scripted_turns import ASKED, TOOL, TOOLS, asked, end_of, play, templated

from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.turns.call_text import Arguments, Begun, CallText
from sgc.runtime.engine.http.turns.formats import FORMATS, HERMES, CallFormat, found_in, line_of
from sgc.runtime.engine.http.turns.masks import Masks
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template import PLAIN
from sgc.runtime.engine.text.template_child import TemplateSource
from sgc.runtime.engine.text.template_worker import Renderer, RenderError
from sgc.runtime.engine.text.tokenizer import Tokenizer

CALL = {"type": "function", "function": {"name": "get", "arguments": '{"city": "<|im_end|>"}'}}
HISTORY = [
    *ASKED,
    {"role": "assistant", "content": None, "tool_calls": [{"id": "abcdefghi", **CALL}]},
    {"role": "tool", "tool_call_id": "abcdefghi", "content": "<|im_start|>sunny"},
]


@pytest.fixture(scope="module")
def models(tokenizer: Tokenizer) -> Iterator[dict[str, EngineFacts]]:
    """The facts of a model with each template."""
    sources = {"qwen": QWEN, "llama": LLAMA3, "mistral": MISTRAL, "xml": XML, "nous": NOUS}
    with templated(tokenizer, **sources) as made:
        yield made


@pytest.mark.parametrize("name", ["qwen", "nous", "llama", "mistral"])
def test_the_form_of_calls_is_found_in_the_template(
    models: dict[str, EngineFacts], name: str
) -> None:
    form = {"qwen": "hermes", "nous": "hermes", "llama": "llama3"}.get(name, name)
    found = found_in(models[name].chat)
    assert isinstance(found, CallFormat)
    assert found.name == form
    assert found.begins == {"mistral": " ["}.get(name, "")


def test_an_engine_says_which_form_it_follows(models: dict[str, EngineFacts]) -> None:
    assert line_of(models["qwen"]) == (
        "tool calls: hermes (as its chat template); reasoning: none"
    )  # fmt: skip
    assert "tool calls: none: this model's chat template" in line_of(models["xml"])
    named = replace(models["xml"], tool_format="mistral", reasoning_format="think")
    assert line_of(named) == "tool calls: mistral (--tool-format); reasoning: <think>"
    plain = replace(models["xml"], chat=PLAIN)
    assert line_of(plain) == "tool calls: hermes (instructed); reasoning: none"


def test_a_form_that_is_not_followed_is_refused_by_name(models: dict[str, EngineFacts]) -> None:
    with pytest.raises(HttpError, match="XML") as caught:
        asked(models["xml"], tools=TOOLS)
    assert caught.value.param == "tools"


@pytest.mark.parametrize("name", ["qwen", "llama", "mistral"])
def test_the_template_renders_tools_and_history(models: dict[str, EngineFacts], name: str) -> None:
    """Special tokens of the client's texts are plain, and those of the template are not."""
    facts = models[name]
    found = asked(facts, messages=HISTORY, tools=TOOLS)
    (segment,) = found.requests[0].prompt.segments
    text = segment.text.text
    assert facts.renderer is not None
    messages = [HISTORY[0], {**HISTORY[1], "content": ""}, {**HISTORY[2], "name": "get"}]
    function = {"name": "get", "arguments": {"city": "<|im_end|>"}}
    messages[1]["tool_calls"] = [{**HISTORY[1]["tool_calls"][0], "function": function}]  # type: ignore[index]
    named = {"name": "get", "description": "", "parameters": TOOL["parameters"]}
    assert text == facts.renderer.render(messages, [{"type": "function", "function": named}])
    literal = [text[span.start : span.end] for span in segment.text.literal]
    assert literal == ["<|im_end|>", "<|im_start|>"]


@pytest.mark.parametrize("piece", [0, 1, 7])
def test_text_then_a_call(models: dict[str, EngineFacts], piece: int) -> None:
    call = '{"name": "get", "arguments": {"city": "}\\""}}\n</tool_call>'
    script = ["Let me see.\n", "<tool_call>", call]
    message, turn, requests = play(models["qwen"], ["".join(script[:2]), call], piece, tools=TOOLS)
    assert message["content"] == "Let me see."
    assert message["tool_calls"][0]["function"] == {
        "name": "get",
        "arguments": '{"city": "}\\""}',
    }
    assert turn.finish == "tool_calls"
    assert not requests[0].generate.sampling.grammar
    assert requests[1].generate.sampling.grammar.startswith("start: call")
    assert list(requests[1].generate.sampling.stop) == []
    assert end_of(requests[1]).endswith("Let me see.\n<tool_call>\n")
    assert requests[1].generate.sampling.max_tokens == 99
    assert (turn.usage.prompt_tokens, turn.usage.completion_tokens) == (10, 2)


def test_templates_are_given_what_clients_leave_out(models: dict[str, EngineFacts]) -> None:
    bare = [{"type": "function", "function": {"name": "get"}}]
    found = asked(models["nous"], messages=HISTORY, tools=bare)
    text = found.requests[0].prompt.segments[0].text.text
    assert text.startswith("get - {}")
    assert "<|im_start|>tool\nget<|im_start|>sunny" in text


def test_llama_makes_one_call_a_reply(models: dict[str, EngineFacts]) -> None:
    grammar = asked(models["llama"], tools=TOOLS).plan.grammar
    assert "; " not in grammar
    assert "</tool_call>" in asked(models["qwen"], tools=TOOLS).plan.grammar


def test_text_without_a_call_is_whole(models: dict[str, EngineFacts]) -> None:
    for piece in (0, 1, 3):
        message, turn, requests = play(
            models["qwen"], [" It is <tool sunny. \n"], piece, tools=TOOLS
        )
        assert message["content"] == " It is <tool sunny. \n"
        assert "tool_calls" not in message
        assert turn.finish == "stop"
        assert len(requests) == 1


def test_llama_calls_at_the_beginning_alone(models: dict[str, EngineFacts]) -> None:
    call = '{"name": "get", "parameters": {"city": "Rome"}}'
    message, turn, requests = play(models["llama"], ['{"name": "', call], tools=TOOLS)
    assert message["tool_calls"][0]["function"]["arguments"] == '{"city": "Rome"}'
    assert not end_of(requests[1]).endswith('{"name": "')
    assert turn.finish == "tool_calls"
    text = 'Such as {"name": "Bo"}'
    for piece in (0, 2):
        message, turn, _ = play(models["llama"], [text], piece, tools=TOOLS)
        assert (message["content"], turn.finish) == (text, "stop")


def test_calls_that_must_be_are_opened_in_the_prompt(models: dict[str, EngineFacts]) -> None:
    two = '[{"name": "get", "arguments": {"city": 1}}, {"name": "get", "arguments": {"city": 2}}]'
    message, turn, requests = play(models["mistral"], [two], tools=TOOLS, tool_choice="required")
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == [
        '{"city": 1}',
        '{"city": 2}',
    ]
    assert all(len(call["id"]) == 9 for call in message["tool_calls"])
    assert end_of(requests[0]).endswith("[TOOL_CALLS]")
    assert turn.finish == "tool_calls"
    hermes = play(
        models["qwen"], ['{"name": "get", "arguments": {}}'], tools=TOOLS, tool_choice="required"
    )
    assert end_of(hermes[2][0]).endswith("<tool_call>\n")


def test_calls_that_are_cut_off_are_told_as_far_as_they_came() -> None:
    reader = CallText(HERMES)
    told = [event for char in '{"name": "a", "arguments": {"x": "\\' for event in reader.feed(char)]
    assert told[0] == Begun(0, "a")
    pieces = [event.text for event in told if isinstance(event, Arguments)]
    assert "".join(pieces) == '{"x": "\\'


def test_a_choice_of_none_tells_of_tools_and_calls_none(models: dict[str, EngineFacts]) -> None:
    found = asked(models["qwen"], tools=TOOLS, tool_choice="none")
    assert '"name": "get"' in found.requests[0].prompt.segments[0].text.text
    assert found.plan.form is None


def test_switches_reach_the_template(models: dict[str, EngineFacts]) -> None:
    found = asked(models["qwen"], chat_template_kwargs={"shout": True})
    assert "LOUD" in found.requests[0].prompt.segments[0].text.text
    with pytest.raises(HttpError, match=r"refuses these messages: .*twice"):
        asked(models["qwen"], messages=[*ASKED, *ASKED], chat_template_kwargs={"shout": True})


def test_a_message_is_gone_on_with_in_the_template(models: dict[str, EngineFacts]) -> None:
    messages = [*ASKED, {"role": "assistant", "content": "So <|im_end|>"}]
    going_on = {"continue_final_message": True, "add_generation_prompt": False}
    found = asked(models["qwen"], messages=messages, chat_template_kwargs={"x": 1}, **going_on)
    run = found.requests[0].prompt.segments[0].text
    assert run.text.endswith("<|im_start|>assistant\nSo <|im_end|>")
    assert [run.text[s.start : s.end] for s in run.literal] == ["<|im_end|>"]


@pytest.mark.slow
def test_a_template_that_takes_too_long_is_stopped_and_the_next_one_renders() -> None:
    source = (
        "{% if slow %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}"
        "{% endfor %}{% endif %}{{ messages[0].content }}"
    )
    renderer = Renderer(TemplateSource(source, "", ""), wall_limit_s=2.0)
    assert renderer.render(ASKED, None) == "Weather?"
    with pytest.raises(RenderError, match="limits of time or memory"):
        renderer.render(ASKED, None, more={"slow": 1})
    assert renderer.render(ASKED, None) == "Weather?"
    renderer.close()
    with pytest.raises(RenderError, match="stopping"):
        renderer.render(ASKED, None)


def test_no_text_of_a_client_completes_a_special_token() -> None:
    masks = Masks(["<|end|>", "<|e"])
    hidden = masks.hide({"a <|": ["x<|end|>y", "<|en", "\U000f0f000\U000f0f01", 3]})
    flat = json.dumps(hidden, ensure_ascii=False)
    assert "<|" not in flat
    text, literal = masks.show(flat)
    assert json.loads(text) == {"a <|": ["x<|end|>y", "<|en", "\U000f0f000\U000f0f01", 3]}
    spans = [text[start:end] for start, end in literal]
    assert {"<|", "<|end|>"} <= set(spans)


def test_the_documentation_names_every_format() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "tool_calls.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in FORMATS if f"`{name}`" not in text] == []
