"""gpt-oss's replies: messages in channels, read from a scripted model, and from a small one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_templates import GPT_OSS
from scripted_turns import ASKED, TOOL, TOOLS, asked, templated

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.openai.response_items import Response
from sgc.runtime.engine.http.openai.response_requests import response_of
from sgc.runtime.engine.http.token_texts import TokenTexts
from sgc.runtime.engine.http.turns.formats import form_of, line_of
from sgc.runtime.engine.http.turns.harmony import MAX_MESSAGES, turn_of
from sgc.runtime.engine.http.turns.turn import message_of
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.tokenizer import Tokenizer, load_tokenizer

SPECIAL = ["start", "channel", "message", "end", "constrain", "call", "return"]
FORMAT = {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "get", "arguments": '{"city": "Oslo"}'}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sgc-tiny with the template, and with its last tokens as the special ones."""
    found: Path = tmp_path_factory.mktemp("models") / "oss"
    shutil.copytree(DEFAULT_FOLDER, found)
    (found / "chat_template.jinja").write_text(GPT_OSS, encoding="utf-8")
    spec = json.loads((found / "tokenizer.json").read_text(encoding="utf-8"))
    vocab = spec["model"]["vocab"]
    last = sorted(vocab, key=vocab.get)[-len(SPECIAL) :]
    spec["model"]["merges"] = [
        pair for pair in spec["model"]["merges"] if not {*pair, "".join(pair)} & {*last}
    ]
    for old, name in zip(last, SPECIAL, strict=True):
        content, number = f"<|{name}|>", vocab.pop(old)
        vocab[content] = number
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        spec["added_tokens"].append({"id": number, "content": content, "special": True, **flags})
    (found / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def special(folder: Path) -> Tokenizer:
    return load_tokenizer(folder)


@pytest.fixture(scope="module")
def facts(special: Tokenizer) -> Iterator[EngineFacts]:
    with templated(special, oss=GPT_OSS) as made:
        yield made["oss"]


def play(facts: EngineFacts, script: list[tuple[str, str]], **more: Any) -> Any:
    """The message, the turn and its requests, for a model that says each text and then the special
    token with that name; "length" for none. Texts come in pieces of two characters."""
    found = asked(facts, **more)
    turn = turn_of(found.plan, found.requests[0])
    request, requests, deltas = turn.ask(), [], []
    for text, end in script:
        assert request is not None
        requests.append(request)
        for i in range(0, len(text), 2):
            turn.take(pb.Reply(delta=pb.Delta(text=text[i : i + 2])))
            deltas += turn.deltas()
        special = facts.tokenizer.backend.token_to_id(f"<|{end}|>")
        generated = pb.Generated(
            text=text, tail=text, matched_id=-1 if special is None else special
        )
        generated.usage.completion_tokens = 1
        is_cut = end == "length"
        generated.finish_reason = pb.FINISH_REASON_LENGTH if is_cut else pb.FINISH_REASON_STOP
        request = turn.take(pb.Reply(generated=generated))
        deltas += turn.deltas()
    assert request is None
    return message_of(deltas), turn, requests


def prompt_of(request: pb.Request) -> str:
    return "".join(segment.text.text for segment in request.prompt.segments)


def test_the_form_is_found_and_named(facts: EngineFacts, tokenizer: Tokenizer) -> None:
    assert line_of(facts) == "tool calls: harmony; reasoning: its channel analysis"
    with templated(tokenizer, oss=GPT_OSS) as made:  # whose tokenizer lacks the special tokens
        assert "<|channel|>" in str(form_of(made["oss"]))
        assert "serve it with its own tokenizer" in str(form_of(made["oss"]))


def test_reasoning_a_preamble_and_a_call(facts: EngineFacts) -> None:
    script = [
        ("analysis", "message"), ("Hm.\n", "end"),
        ("commentary", "message"), ("One moment.", "end"),
        ("commentary to=functions.get", "constrain"), ('{"city": "}"}', "call"),
    ]  # fmt: skip
    message, turn, requests = play(facts, script, tools=TOOLS)
    assert (message["reasoning_content"], message["content"]) == ("Hm.", "One moment.")
    (call,) = message["tool_calls"]
    assert call["function"] == {"name": "get", "arguments": '{"city": "}"}'}
    assert (turn.finish, turn.usage.completion_tokens, turn.n_reasoning) == ("tool_calls", 6, 1)
    header = r"analysis|final|commentary|commentary\ to=functions\.(get)"
    assert [each.generate.sampling.regex for each in requests[::2]] == [header] * 3
    assert json.loads(requests[-1].generate.sampling.json_schema)["type"] == "object"
    assert prompt_of(requests[-1]).endswith(
        "<|start|>assistant<|channel|>analysis<|message|>Hm.\n<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.get <|constrain|>json<|message|>"
    )


def test_a_text_under_a_schema(facts: EngineFacts) -> None:
    """Reasoning is free, and cannot be the end."""
    script = [("analysis", "message"), ("Hm", "return"), ("final", "message"), ("{}", "return")]
    message, turn, requests = play(
        facts, script, response_format=FORMAT, stop=["x"], ignore_eos=True
    )
    assert (message["content"], message["reasoning_content"], turn.finish) == ("{}", "Hm", "stop")
    samplings = [each.generate.sampling for each in requests]
    assert [bool(each.json_schema) for each in samplings] == [False, False, False, True]
    assert [list(each.stop) for each in samplings] == [[], [], [], ["x"]]
    assert samplings[0].regex == "analysis|final"
    assert [each.ignore_eos for each in samplings] == [False, False, False, True]


def test_a_call_that_must_be_made(facts: EngineFacts) -> None:
    calls = r"commentary\ to=functions\.(get)"
    script = [*[("analysis", "message"), ("Hm", "end")] * MAX_MESSAGES,
              ("commentary to=functions.get", ""), ("{}", "")]  # fmt: skip
    message, _, requests = play(facts, script, tools=TOOLS, tool_choice="required")
    assert requests[0].generate.sampling.regex == f"analysis|{calls}"
    assert requests[-2].generate.sampling.regex == calls
    assert message["content"] is None
    assert message["reasoning_content"].count("Hm") == MAX_MESSAGES


def test_what_is_cut_off_says_so(facts: EngineFacts) -> None:
    assert play(facts, [("ana", "length")])[1].finish == "length"
    message, turn, _ = play(facts, [("final", "message"), ("Some", "length")])
    assert (message["content"], turn.finish) == ("Some", "length")


def test_a_message_ends_where_the_next_one_begins(facts: EngineFacts) -> None:
    """No mark of harmony is text: what it separates would run together."""
    script = [
        ("analysis", "message"), ("Hm.\n", "channel"),
        ("analysis", "message"), ("So", "start"),
        ("final", "message"), ("Sun", "channel"),
    ]  # fmt: skip
    message, turn, requests = play(facts, script)
    assert (message["reasoning_content"], message["content"]) == ("Hm.\n\nSo", "Sun")
    ends = [facts.tokenizer.backend.token_to_id(f"<|{x}|>") for x in ("end", "start", "channel")]
    assert list(requests[1].generate.sampling.stop_token_ids) == ends
    assert prompt_of(requests[-1]).count("<|end|><|start|>assistant<|channel|>") == 3
    assert turn.finish == "stop"


def test_reasoning_that_is_not_split_off(facts: EngineFacts) -> None:
    facts = replace(facts, reasoning_format="off")
    assert line_of(facts) == "tool calls: harmony; reasoning: none"
    script = [("analysis", "message"), ("Hm", "end"), ("final", "message"), ("Sun", "return")]
    message, _, _ = play(facts, script)
    assert message["content"] == "Hm\n\nSun"
    assert "reasoning_content" not in message
    _, _, requests = play(facts, script[2:], response_format=FORMAT)
    assert requests[0].generate.sampling.regex == "final"


@pytest.mark.parametrize("streams", [False, True])
def test_items_of_a_response_have_their_own(facts: EngineFacts, streams: bool) -> None:
    """Each message has its own log-probabilities, and no break before its text."""
    tool = {"type": "function", **TOOL}
    asked = {"model": "m", "input": "Weather?", "tools": [tool], "stream": streams}
    logprobs = {"top_logprobs": 0, "include": ["message.output_text.logprobs"]}
    response = Response(response_of({**asked, **logprobs}, facts), "m", TokenTexts(facts.tokenizer))
    response.begin()
    more: pb.Request | None = None
    for text in ("commentary", "One", "analysis", "Hm", "analysis", "So", "final", "Sun"):
        ids = facts.tokenizer.encode_continuation(text)
        is_said = text in ("One", "Sun")
        rows = [pb.TokenLogprob(id=x, logprob=-1) for x in ids] if is_said else []
        if streams:
            response.follow(pb.Reply(delta=pb.Delta(text=text, logprobs=rows[:-1])))
        end = facts.tokenizer.backend.token_to_id("<|return|>" if text == "Sun" else "<|end|>")
        generated = pb.Generated(text=text, logprobs=rows, matched_id=end)
        generated.finish_reason = pb.FINISH_REASON_STOP
        more = response.follow(pb.Reply(generated=generated))
    assert more is None
    parts = [item["content"][0] for item in response.whole()["output"]]
    assert [part["text"] for part in parts] == ["One", "Hm\n\nSo", "Sun"]
    told = ["".join(row["token"] for row in part.get("logprobs", ())) for part in parts]
    assert told == ["One", "", "Sun"]
    for event in response.events():
        if event["type"] == "response.output_text.delta" and streams:
            assert event["delta"].startswith("".join(row["token"] for row in event["logprobs"]))


def test_history_is_the_template_s(facts: EngineFacts) -> None:
    said = {"role": "assistant", "content": None, "reasoning_content": "Hm", "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c", "content": "Sun <|end|>"}
    found = asked(facts, messages=[*ASKED, said, result], tools=TOOLS)
    turn = turn_of(found.plan, found.requests[0])
    text = prompt_of(turn.ask())
    assert text.endswith(
        "<|start|>assistant<|channel|>analysis<|message|>Hm<|end|>"
        "<|start|>assistant to=functions.get<|channel|>commentary json<|message|>"
        '{"city": "Oslo"}<|call|>'
        '<|start|>functions.get to=assistant<|channel|>commentary<|message|>"Sun <|end|>"<|end|>'
        "<|start|>assistant<|channel|>"
    )
    (segment,) = found.requests[0].prompt.segments
    assert [text[x.start : x.end] for x in segment.text.literal] == ["<|end|>"]


def test_a_text_is_gone_on_with(facts: EngineFacts) -> None:
    more = {"continue_final_message": True, "add_generation_prompt": False}
    messages = [*ASKED, {"role": "assistant", "content": "Sure:"}]
    found = asked(facts, messages=messages, **more)
    request = turn_of(found.plan, found.requests[0]).ask()
    assert prompt_of(request).endswith("<|channel|>final<|message|>Sure:")
    assert not request.generate.sampling.regex


@pytest.mark.slow
def test_a_small_model_is_held_to_it(folder: Path, http_engine: Any) -> None:
    city = {"type": "object", "properties": {"city": {"enum": ["Lisbon", "Oslo"]}}}
    function = {"name": "weather", "parameters": {**city, "required": ["city"]}}
    tools = [{"type": "function", "function": function}]
    with EmbeddedEngine(str(folder), ["--http", "0", "--check"]) as engine:
        served = type(http_engine)(engine)
        model = served.ask("/v1/models").json["data"][0]["id"]
        body = {"model": model, "messages": ASKED, "max_tokens": 120, "seed": 3, "tools": tools}
        forced = {**body, "tool_choice": "required", "temperature": 1.0, "logprobs": True}
        for seed in range(6):
            found = served.ask("/v1/chat/completions", {**forced, "seed": seed})
            assert found.status == 200, found.text
            (choice,) = found.json["choices"]
            if choice["finish_reason"] == "tool_calls":
                (call,) = choice["message"]["tool_calls"]
                assert json.loads(call["function"]["arguments"])["city"] in ("Lisbon", "Oslo")
            events = served.ask("/v1/chat/completions", {**forced, "seed": seed, "stream": True})
            deltas = [event["choices"][0]["delta"] for event in events.events]
            streamed = message_of([each for each in deltas if "role" not in each])
            for name in ("content", "reasoning_content"):
                assert streamed.get(name) == choice["message"].get(name)
