"""Constraints that an API does not hold to: what the model is told, and that nobody else is."""

from __future__ import annotations

import json

import pytest

import sgc
from sgc.predict.bounds.requests import LONGEST_REFUSED, longest_note
from sgc.runtime.executor.backends.providers.backend import request_size
from sgc.runtime.executor.backends.providers.choose import lowered_select, select_sampling
from sgc.runtime.executor.backends.providers.models.models import Choices, facts_for
from sgc.runtime.executor.backends.providers.wire.lower import lower
from sgc.runtime.executor.interface.backend import RoleMark, Sampling, TextRun
from sgc.runtime.executor.patterns.checked_constraints import EXCERPT, MAX_TRIES
from sgc.runtime.executor.run.options import DTYPES, RunOptions

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
WANTED = {
    "regex": (sgc.gen("a", regex="x(?=y)y[0-9]+"), "x(?=y)y[0-9]+", "xy7"),
    "int": (sgc.gen("a", dtype=int), DTYPES["int"][0], "42"),
    "str": (sgc.gen("a", dtype=str), DTYPES["str"][0], '"a word"'),
    "words": (sgc.gen("a", regex="(yes|no)"), '["yes", "no"]', "yes"),
    "schema": (sgc.gen("a", json_schema=SCHEMA), SCHEMA, '{"a": 1}'),
    "choices": (sgc.select("a", ["yes", "no"]), '["yes", "no"]', "no"),
}
CHATS = ["claude-3-haiku", "gpt-4", "served", "gpt-4o"]
BAD = ["maybe", 'per"haps' + "x" * 500, 'per"haps' + "x" * 500]


def program(body):
    @sgc.function
    def run(s):
        s += "How is it? " + body + "."

    return run


def replies(good):
    return lambda ask: [*BAD, good][ask.number]


def check_tries(server, state, good, wanted, is_told_first):
    """Four tries, no two alike, each told what is wanted and what the one before said."""
    assert state.error() is None
    assert state["a"] == good
    assert state.text() == f"How is it? {good}."
    texts = [ask.text for ask in server.asks]
    assert len(set(texts)) == MAX_TRIES
    assert [wanted in text for text in texts] == [is_told_first, True, True, True]
    for number, (text, said) in enumerate(zip(texts[1:], BAD, strict=True), start=2):
        shown = said if len(said) <= EXCERPT else said[:EXCERPT] + "…"
        assert json.dumps(shown, ensure_ascii=False) in text
        assert f"Try {number} of {MAX_TRIES}" in text
        assert "x" * (EXCERPT + 1) not in text


@pytest.mark.parametrize(
    ("model", "kind"),
    [(m, k) for m in CHATS for k in WANTED if (m, k) != ("gpt-4o", "int")],
)
def test_a_chat_is_told_from_the_first_try_on(serve, ask, model, kind):
    body, wanted, good = WANTED[kind]
    server = serve(reply=replies(good), prefer=lambda ask, choices: replies(good)(ask))
    if model == "gpt-4o":  # its API holds to all but look-ahead and quotes
        is_told = kind in ("regex", "str")
        server.prefer = lambda ask, choices: replies(good)(ask)
        server.reply = lambda ask: _wrapped(ask, replies(good)(ask))
    else:
        is_told = True
    state = program(body).run(backend=ask(server, model))
    check_tries(server, state, good, wanted, is_told)
    for each in server.bodies:
        assert each["messages"][0]["content"].startswith("How is it? ")


def _wrapped(ask, said):
    if ask.schema is None or "value" not in ask.schema["properties"]:
        return said
    return json.dumps({"value": said})


@pytest.mark.parametrize("kind", ["regex", "int", "schema", "choices"])
def test_text_that_is_completed_is_left_alone_once(serve, ask, kind):
    """Then the note stands before it, so that it is gone on with where it ended."""
    body, wanted, good = WANTED[kind]
    server = serve(reply=replies(good))
    options = {"select": "check"}
    endpoint = ask(server, "gpt-3.5-turbo-instruct", options=options)
    check_tries(server, program(body).run(backend=endpoint), good, wanted, False)
    assert server.asks[0].text == "How is it? "
    assert all(each.text.endswith(")\n\nHow is it? ") for each in server.asks[1:])


def test_a_message_that_has_begun_is_gone_on_with(serve, ask):
    server = serve(reply=replies("42"))

    @sgc.function
    def begun(s):
        s += sgc.user("How many?") + sgc.assistant("About " + sgc.gen("a", dtype=int))

    state = begun.run(backend=ask(server, "claude-haiku-4-5"))
    assert state.messages()[1]["content"] == "About 42"
    for body in server.bodies:
        user, assistant = body["messages"]
        assert user["content"].startswith("How many?\n\nWhat you add to your last message must be")
        assert assistant == {"role": "assistant", "content": "About"}


def test_what_an_api_holds_to_in_part_is_told(serve, ask):
    """Claude's structured output knows no lengths; of what it does know nothing is said."""
    for words, is_told in (({}, False), ({"maxLength": 5}, True), ({"title": "Name"}, False)):
        schema = json.loads(SCHEMA)
        schema["properties"]["a"] = {"type": "string", **words}
        server = serve(reply=lambda ask: '{"a": "b"}')
        body = sgc.gen("a", json_schema=json.dumps(schema))
        program(body).run(backend=ask(server, "claude-opus-5")).sync()
        assert ("JSON schema" in server.asks[0].text) is is_told


@pytest.mark.parametrize("said", ['{"value": "seven"}', "seven", "[]", '{"other": 7}', "7"])
def test_a_structured_reply_of_another_shape_is_asked_for_again(serve, ask, said):
    """It was billed, so it counts; what is right as it is, is taken."""
    server = serve(reply=lambda ask: said if ask.number == 0 else '{"value": 7}')
    result = program(sgc.gen("a", dtype=int)).run_once({}, RunOptions(), ask(server, "gpt-4o"))
    assert result["a"] == "7"
    n_tries = 1 if said == "7" else 2
    assert len(server.asks) == len(result.requests) == n_tries
    if n_tries == 2:
        assert json.dumps(said) in server.asks[1].text
    usages = [server._usage(each, [(r.reply.text, None)])
              for each, r in zip(server.asks, result.requests, strict=True)]  # fmt: skip
    assert result.stats.prompt_tokens == sum(usage["prompt_tokens"] for usage in usages)
    assert result.stats.cost_usd == pytest.approx(sum(r.usage.cost_usd for r in result.requests))


def test_a_text_that_max_tokens_cuts_off_says_so(serve, ask):
    from providers.test_lowering import failure

    server = serve(reply=lambda ask: '{"a": ')
    whole = server._answer

    async def cut_off(request, ask):
        response = await whole(request, ask)
        response.text = response.text.replace(
            '"finish_reason": "stop"', '"finish_reason": "length"'
        )
        return response

    server._answer = cut_off
    error = failure(ask(server, "gpt-4o"), "x", sgc.gen("a", max_tokens=3, json_schema=SCHEMA))
    assert "cut off by max_tokens=3" in str(error)


def test_logs_caches_and_recordings_hold_every_try(serve, ask, tmp_path):
    """Each asks nothing again, and gives the same text; tries that differ have keys that differ."""
    body, _, good = WANTED["regex"]
    run = program(body)

    def endpoint():
        return ask(serve(reply=replies(good)), "claude-3-haiku")

    def asks_nothing(given, **more):
        state = run.run(backend=given, temperature=0, seed=1, **more)
        assert state.error() is None
        assert state["a"] == good

    silent = serve(fault=lambda ask: 1 / 0)  # type: ignore[arg-type,return-value]
    with sgc.RunLog.open(str(tmp_path / "log")) as log:
        asks_nothing(endpoint(), log=log)
    with sgc.RunLog.open(str(tmp_path / "log")) as log:
        asks_nothing(ask(silent, "claude-3-haiku"), log=log)
    first = endpoint()
    with sgc.cached(first, tmp_path / "cache") as kept:
        asks_nothing(kept)
        asks_nothing(kept)
    with sgc.record(endpoint(), tmp_path / "rec") as recorded:
        asks_nothing(recorded)
    with sgc.replay(tmp_path / "rec") as replayed:
        asks_nothing(replayed)
        assert replayed.backend.n_unused == 0
    assert silent.asks == []


NASTY = ["\0" * (EXCERPT + 1), "€" * EXCERPT + "…", "\U0001f600" * EXCERPT + "…", '"' * EXCERPT]
USER = TextRun("USER:Hi\nASSISTANT:", roles=(
    RoleMark(0, 5, "user", True), RoleMark(7, 8, "user", False), RoleMark(8, 18, "assistant", True),
))  # fmt: skip


@pytest.mark.parametrize("said", NASTY, ids=["controls", "wide", "wider", "quotes"])
@pytest.mark.parametrize("model", ["claude-3-haiku", "gpt-4o", "gpt-3.5-turbo-instruct", "gpt-5"])
def test_no_try_is_longer_than_its_ceiling(model, said):
    provider = "anthropic" if model.startswith("claude") else "openai"
    facts = facts_for(provider, model, Choices())
    plain = request_size(lower((USER,), Sampling(8), facts), facts)
    for constraint in ({"regex": "é(?=a).*"}, {"regex": "(yes|no)"}, {"json_schema": SCHEMA},
                       *({"regex": pattern} for pattern, _ in DTYPES.values())):  # fmt: skip
        for number in range(MAX_TRIES):
            sampling = Sampling(8, refused=(said,) * number, **constraint)
            lowered = lower((USER,), sampling, facts)
            n_schema = len(str(lowered.shape.schema)) if lowered.shape else 0
            n_bytes, fixed = request_size(lowered, facts)
            assert n_bytes - n_schema <= plain[0] + longest_note(sampling)
            assert fixed == plain[1]
    choices = ("yes", "no")
    for number in range(MAX_TRIES):
        sampling = select_sampling(choices, facts, (said,) * number)
        lowered = lowered_select("check", (USER,), choices, facts, sampling)
        most = plain[0] + len('["yes", "no"]') + 96 + LONGEST_REFUSED
        assert request_size(lowered, facts)[0] <= most
