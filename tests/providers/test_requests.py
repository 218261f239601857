"""What goes over the wire: each request's body as the server got it, against recorded ones.

SGC_BLESS=1 records them anew: `golden/requests.json`, to be read before it is kept.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from providers.pictures import GREEN, RED, VIDEO

import sgc
from sgc.runtime.executor.interface.backend import CacheMark, RoleMark, Sampling, TextRun
from sgc.runtime.executor.interface.media import media
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions

GOLDEN = Path(__file__).with_name("golden") / "requests.json"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


@sgc.function
def turns(s):
    s += sgc.system("Be brief.")
    s += sgc.user("One?") + sgc.assistant(sgc.gen("a", max_tokens=8, temperature=0))
    s += sgc.user("Two?") + sgc.assistant(sgc.gen("b", max_tokens=8, temperature=0, top_p=1))


@sgc.function
def begun(s):
    s += sgc.user("A tip?") + sgc.assistant("Sure: " + sgc.gen("a", max_tokens=8, temperature=0))


@sgc.function
def plain(s):
    s += "The capital of Peru is" + sgc.gen("a", max_tokens=8, stop=[" is", "\n"], temperature=0)


@sgc.function
def many_stops(s):
    s += "x" + sgc.gen("a", max_tokens=8, stop=["a", "b", "c", "d", "e"], temperature=0)


@sgc.function
def pictures(s):
    s += sgc.user("Look: " + sgc.image(RED) + " and " + sgc.image(GREEN))
    s += sgc.assistant(sgc.gen("a", max_tokens=8, temperature=0))


@sgc.function
def frames(s):
    s += sgc.user(sgc.image(media(VIDEO, "video/png-frames", 2)) + "What moves?")
    s += sgc.assistant(sgc.gen("a", max_tokens=8, temperature=0))


@sgc.function
def schema(s):
    s += "Text. " + sgc.gen("a", max_tokens=32, json_schema=json.dumps(PERSON), temperature=0)


@sgc.function
def typed(s):
    s += "How many? " + sgc.gen("a", max_tokens=8, dtype=int, temperature=0)


@sgc.function
def choice(s):
    s += "Is it so? " + sgc.select("a", ["yes", "no"])


@sgc.function
def tuned(s):
    s += "x" + sgc.gen("a", max_tokens=8, temperature=0.5, seed=7)
    s += sgc.gen("b", max_tokens=4, temperature=0, return_logprob=True, top_logprobs_num=2)


@sgc.function
def bare(s):
    s += "x" + sgc.gen("a", max_tokens=8)


CASES = [
    ("turns", turns, ["gpt-4o", "claude-haiku-4-5", "served"]),
    ("begun", begun, ["claude-haiku-4-5", "served", "gpt-4o?prefill=rewrite"]),
    ("plain", plain, ["gpt-4o", "claude-haiku-4-5", "gpt-3.5-turbo-instruct", "served"]),
    ("many_stops", many_stops, ["gpt-4o", "claude-haiku-4-5", "served"]),
    ("pictures", pictures, ["gpt-4o", "claude-haiku-4-5"]),
    ("frames", frames, ["gpt-4o", "claude-haiku-4-5"]),
    ("schema", schema, ["gpt-4o", "claude-haiku-4-5", "served"]),
    ("typed", typed, ["gpt-4o", "claude-haiku-4-5", "served"]),
    (
        "choice",
        choice,
        ["gpt-4o", "gpt-5", "claude-haiku-4-5", "claude-3-haiku", "gpt-4", "served"],
    ),
    ("tuned", tuned, ["gpt-4o"]),
    ("bare", bare, ["gpt-5", "claude-opus-5", "gpt-6-sol?effort=none", "claude-opus-5?effort=low"]),
]
RUNS = [(name, program, model) for name, program, models in CASES for model in models]


def reply(ask):
    if ask.schema is None:
        return "7" if "How many" in ask.text else "yes"
    if "value" in ask.schema["properties"]:
        return '{"value": 7}'
    return '{"name": "Ada", "age": 36}'


@pytest.mark.parametrize(("name", "program", "model"), RUNS, ids=lambda value: str(value))
def test_requests_are_as_recorded(serve, ask, name, program, model):
    server = serve(reply=reply, owned_by="vllm")
    model, _, query = model.partition("?")
    options = dict(pair.split("=") for pair in query.split("&")) if query else None
    endpoint = ask(server, model, **({"options": options} if options else {}))
    state = program.run(backend=endpoint, seed=3)
    state.sync()
    assert state.error() is None
    found = [_shown(each.raw.decode()) for each in server.asks]
    key = f"{name} {model}{'?' + query if query else ''}"
    compare(key, found)


def compare(key: str, found: list[str]) -> None:
    recorded = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("SGC_BLESS"):
        recorded[key] = found
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert found == recorded.get(key), "SGC_BLESS=1 records it anew"


def _shown(raw: str) -> str:
    """Pictures shortened, so that the recorded bodies can be read."""
    return re.sub(r"(iVBORw0KGgo)[A-Za-z0-9+/=]+", r"\1…", raw)


def test_pictures_are_sent_whole_and_never_fetched(serve, ask):
    server = serve()
    pictures.run(backend=ask(server, "gpt-4o")).sync()
    parts = server.bodies[0]["messages"][0]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    assert urls == [media(RED).data_url(), media(GREEN).data_url()]
    assert [part.get("text") for part in parts] == ["Look: ", None, " and ", None]


LONG = "All that is known of tea is told here, cup by cup. " * 120


@sgc.function
def kept(s, question: str):
    s += sgc.system(LONG)
    s += sgc.user("Read: " + LONG + "Now tell: " + question)
    for number, part in enumerate(s.fork(2)):
        part += sgc.user(f"Is it {number}?") + sgc.assistant(sgc.gen("a", max_tokens=8))


KEPT = [
    "claude-opus-5",
    "claude-opus-5?cache_ttl=1h",
    "claude-opus-5?cache=vendor",
    "claude-opus-5?cache=off",
    "gpt-5.6-sol",
    "gpt-5.6-sol?cache=vendor",
    "gpt-5.6-sol?cache=off",
    "gpt-5.2",
    "served",
]


@pytest.mark.sweep
@pytest.mark.parametrize("model", KEPT)
def test_planned_requests_are_as_recorded(serve, ask, model):
    """Two rows of a fork: marks where the rows part, and where the fork does."""
    server = serve()
    name, _, query = model.partition("?")
    options = dict([query.split("=")]) if query else None
    endpoint = ask(server, name, **({"options": options} if options else {}))
    for state in kept.run_batch([{"question": "who?"}, {"question": "when?"}], backend=endpoint):
        assert state.error() is None
    found = sorted(_of_any(each.raw.decode()).replace(LONG, "…") for each in server.asks)
    compare(f"kept {model}", found)


def _of_any(raw: str) -> str:
    """Without what differs between the first that asks, which is streamed, and the others."""
    options = ',"stream_options":{"include_usage":true}'
    return raw.replace('"stream":true,', "").replace(options, "")


def test_what_is_kept_for_an_hour_comes_first_and_the_last_four_marks_are_sent(serve, ask):
    """Whatever marks a program was given; a ttl that the model does not have is its default."""
    server = serve()
    text = "USER:abcdefgh\nASSISTANT:"
    roles = (RoleMark(0, 5, "user", True), RoleMark(13, 14, "user", False),
             RoleMark(14, 24, "assistant", True))  # fmt: skip
    ttls = ("5m", "", "", "1h", "30m", "5m")
    marks = tuple(CacheMark(6 + at, ttl) for at, ttl in enumerate(ttls))
    _generate(ask(server, "claude-opus-5"), (TextRun(text, roles=roles, cache_marks=marks),))
    parts = server.bodies[0]["messages"][0]["content"]
    assert "".join(part["text"] for part in parts) == "abcdefgh"
    controls = [part.get("cache_control", {}) for part in parts]
    assert [control.get("ttl") for control in controls] == [
        None,
        None,
        "1h",
        "1h",
        None,
        None,
        None,
    ]
    assert sum(map(bool, controls)) == 4


def test_cache_marks_become_breakpoints(serve, ask):
    server = serve()
    text = "USER:long text, and a question\nASSISTANT:"
    for model in ("claude-opus-5", "gpt-5.6-sol", "gpt-4o"):
        endpoint = ask(server, model)

        @sgc.function
        def program(s):
            s += sgc.user("long text, and a question") + sgc.assistant(sgc.gen("a"))

        prompt = program.run_once({}, RunOptions(), endpoint).requests[0].prompt
        assert prompt[0].text == text
        marked = (TextRun(text, roles=prompt[0].roles, cache_marks=(CacheMark(14),)),)
        assert marked == prompt  # a hint, and no part of the request
        _generate(endpoint, marked)
    contents = [body["messages"][0]["content"] for body in server.bodies[1::2]]
    assert contents[0] == [
        {"type": "text", "text": "long text", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": ", and a question"},
    ]
    assert contents[1][0]["prompt_cache_breakpoint"] == {"mode": "explicit"}
    assert contents[2] == "long text, and a question"


def _generate(endpoint, prompt):
    return shared.run(endpoint.backend.generate(prompt, Sampling(max_tokens=4)))
