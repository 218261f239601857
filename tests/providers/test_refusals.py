"""Who refuses what: a model of the table at its vendor's, and nobody else.

A table of addresses, models and sampling parameters; nobody is asked but the last test's server.
"""

from __future__ import annotations

import pytest
from aiohttp import web
from providers.conftest import KEY
from providers.provider_server import ProviderServer

import sgc
from sgc.errors import BackendError, UnsupportedParameter, UsageError
from sgc.runtime.executor.backends.providers.anthropic import wire as anthropic_wire
from sgc.runtime.executor.backends.providers.backend import capabilities_of
from sgc.runtime.executor.backends.providers.connect import parse_target, target
from sgc.runtime.executor.backends.providers.models.models import Choices, facts_for
from sgc.runtime.executor.backends.providers.openai import wire as openai_wire
from sgc.runtime.executor.backends.providers.wire.lower import lower
from sgc.runtime.executor.interface.backend import LogprobsAsked, Sampling, TextRun

PROMPT = (TextRun("Once"),)
# What a program gives, and what is sent of it.
GIVEN = {
    "temperature": (0.5, 0.5),
    "top_p": (0.5, 0.5),
    "top_k": (3, 3),
    "min_p": (0.5, 0.5),
    "frequency_penalty": (2.5, 2.5),
    "presence_penalty": (-2.5, -2.5),
    "repetition_penalty": (1.5, 1.5),
    "min_tokens": (2, 2),
    "stop_token_ids": ((7, 8), [7, 8]),
    "ignore_eos": (True, True),
    "logit_bias": (((7, 1.0),), {"7": 1.0}),
    "logprobs": (LogprobsAsked(top=21), True),
    "own_seed": (7, 7),
    "stop": (("a", "b"), ["a", "b"]),
    "max_tokens": (900_000, 900_000),
}
ALL = frozenset(GIVEN)
TEXT = {"temperature", "top_p", "logit_bias", "own_seed", "stop"}
# What a known model takes of it at its vendor's; the stops of one that reasons are looked for here,
# and a seed that nobody takes is let go.
TAKEN = {
    "gpt-5": {"stop", "own_seed"},
    "gpt-4o-mini-2024-07-18": TEXT,
    "ft:gpt-4o:me::1": TEXT,
    "claude-haiku-4-5": {"temperature", "top_p", "top_k", "stop", "own_seed"},
    "claude-opus-5-20260401": {"stop", "own_seed"},
}
MODELS = [
    *(("openai", model) for model in TAKEN if not model.startswith("claude")),
    *(("anthropic", model) for model in TAKEN if model.startswith("claude")),
    ("openai", "meta-llama/Llama-3.1-8B-Instruct"),
    ("openai", "openai/gpt-5"),
    ("openai", "gpt-99"),
    ("openai", "ft:my-base:me::1"),
    ("openai", "claude-opus-5"),
    ("anthropic", "claude-99"),
    ("anthropic", "org/name"),
]
OWN = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
WRONG = r"base_url, or OPENAI_BASE_URL|no password"
OTHER = "http://10.0.0.1:8000/v1"


@pytest.fixture(params=["none", "argument", "environment", "own argument", "own environment"])
def found(request, monkeypatch):
    """Makes (is it the vendor's, the target): where the address comes from, five ways."""
    for provider in OWN:
        monkeypatch.delenv(f"{provider.upper()}_BASE_URL", raising=False)

    def make(provider, model):
        is_own = "own" in request.param or request.param == "none"
        url = OWN[provider] if is_own else OTHER
        if "environment" in request.param:
            monkeypatch.setenv(f"{provider.upper()}_BASE_URL", url)
        given = url if "argument" in request.param else None
        return is_own, target(provider, model, {}, given, KEY)

    return make


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_only_known_models_at_their_vendors_refuse(found, provider, model):
    is_own, at = found(provider, model)
    facts = at.facts()
    taken = TAKEN.get(model, ALL) if is_own else ALL
    if facts.api == "messages":  # which has no words for them, whoever serves it
        taken = taken - {"logprobs"}
    for name, (value, sent) in GIVEN.items():
        sampling = Sampling(**{"max_tokens": 8, name: value})
        if name not in taken:
            with pytest.raises(UnsupportedParameter):
                lower(PROMPT, sampling, facts)
            continue
        lowered = lower(PROMPT, sampling, facts)
        wire = anthropic_wire if facts.api == "messages" else openai_wire
        body = wire.body_of(lowered, facts, is_streamed=False)
        if name == "max_tokens":
            assert body[facts.limit_name] == value
        elif name == "stop":
            is_sent = facts.max_stops != 0
            assert body.get("stop", body.get("stop_sequences")) == (sent if is_sent else None)
            assert lowered.local_stop == (() if is_sent and facts.is_known else value)
        elif name == "own_seed":
            assert body.get("seed") == (sent if facts.seed or facts.own_seed else None)
        else:
            assert body[name] == sent


def test_what_no_api_has_a_word_for_is_refused_everywhere():
    for model in ("gpt-4o", "org/name"):
        facts = facts_for("openai", model, Choices(), is_vendor=False)
        assert capabilities_of(facts).refuses >= {"heal", "stop_regex", "ebnf"}


def test_a_name_says_how_to_ask_and_not_what_is_refused():
    """Elsewhere a model of the table is asked as at its vendor's, others as servers in general."""
    named = facts_for("openai", "gpt-5", Choices(), is_vendor=False)
    assert (named.limit_name, named.structured) == ("max_completion_tokens", True)
    other = facts_for("openai", "org/name", Choices(), is_vendor=False)
    assert (other.limit_name, other.structured) == ("max_tokens", False)
    assert other.sends_neutral == ("temperature", "top_p")
    assert not capabilities_of(other).offers_logprobs


def test_what_the_user_says_of_a_model_counts_anywhere():
    for where in (True, False):
        like = facts_for("openai", "my-model", Choices(like="gpt-5"), is_vendor=where)
        with pytest.raises(UnsupportedParameter, match="cannot honour temperature"):
            lower(PROMPT, Sampling(8, temperature=0.5), like)
    with pytest.raises(UsageError, match="no such model"):
        facts_for("openai", "my-model", Choices(like="gpt-99"))
    with pytest.raises(UsageError, match="no such model"):
        facts_for("compatible", "my-model", Choices(like="claude-opus-5"))
    with pytest.raises(UsageError, match="on another"):
        facts_for("openai", "gpt-4o", Choices(server="vllm"))
    served = facts_for("openai", "my-model", Choices(server="vllm"), is_vendor=False)
    assert served.regex == "structured_outputs.regex"
    bare = facts_for("openai", "gpt-6-sol", Choices(effort="none"), is_vendor=False)
    assert "top_k" in bare.params


def test_a_server_of_a_known_kind_says_more_than_a_models_name():
    served = facts_for("compatible", "gpt-4o", Choices(), owned_by="ollama")
    assert "top_k" not in served.params
    assert facts_for("compatible", "gpt-4o", Choices()).params["top_k"] == "top_k"
    assert parse_target("openai+https://api.openai.com/v1#gpt-5", KEY).facts().params == {}


@pytest.mark.parametrize("how", ["argument", "environment", "address", "sglang"])
def test_an_unknown_servers_model_gets_what_the_program_says(serve, monkeypatch, how):
    from sgc.compat.sglang.backends import providers as sglang

    server = serve()
    url, model = server.url + "/v1", "meta-llama/Llama-3.1-8B-Instruct"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    if how == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    given = {} if how == "environment" else {"base_url": url}
    make = sglang.OpenAI if how == "sglang" else sgc.OpenAI
    at = sgc.connect(f"openai+{url}#{model}") if how == "address" else make(model, **given)

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=8, temperature=0.3, top_k=5, seed=7, stop="\n")

    with at as endpoint:
        assert program.run(backend=endpoint).error() is None
    body = server.bodies[0]
    assert (body["temperature"], body["top_k"], body["seed"]) == (0.3, 5, 7)
    assert (body["stop"][0], body["max_tokens"], body["model"]) == ("\n", 8, model)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://h/v1", "http://", "http://u:p@h/v1"])
def test_a_wrong_address_is_told_whoever_names_it(monkeypatch, url):
    with pytest.raises(UsageError, match=WRONG):
        target("openai", "m", {}, url, KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UsageError, match=WRONG):
        target("openai", "m", {}, None, KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert target("openai", "m", {}, None, KEY).is_vendors


# -- what an unknown server does -----------------------------------------------------------------


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_stop_that_a_server_does_not_heed_ends_the_text_all_the_same(serve, is_streamed):
    server = serve()
    server._completion = lambda ask: ("one\ntwo", None)

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=8, stop="\n") + "|"

    with sgc.OpenAI("m", base_url=server.url + "/v1", api_key=KEY) as endpoint:
        state = program.run(backend=endpoint, stream=is_streamed)
        assert "".join(state.text_iter()) == state.text() == "xone|"
    assert server.bodies[0]["stop"] == ["\n"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [("eos", "stop"), ("eos_token", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"),
     ("model_length", "length")],
)  # fmt: skip
def test_other_servers_words_for_an_end_are_known(said, reason):
    choice = {"message": {"content": "a"}, "finish_reason": said}
    assert openai_wire.reply_of(choice).finish_reason.value == reason


def test_an_effort_of_an_unknown_model_is_sent():
    facts = facts_for("openai", "gpt-99", Choices(effort="most"))
    assert lower(PROMPT, Sampling(8), facts).params["reasoning_effort"] == "most"


def test_log_probabilities_that_nobody_tells_are_missed(serve):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=8, return_logprob=True)

    server = serve()
    with sgc.OpenAI("m", base_url=server.url + "/v1", api_key=KEY) as endpoint:
        error = program.run(backend=endpoint).error()
    assert "returned no log-probabilities" in str(error)
    assert server.bodies[0]["logprobs"] is True


@pytest.mark.parametrize("body", [[{"id": "m"}], "text", 7, {"data": None}, {"data": [{"id": 3}]}])
def test_a_list_of_models_may_be_any_thing(body):
    class Odd(ProviderServer):
        async def _models(self, request):
            return web.json_response(body)

    with Odd() as server:
        with sgc.connect(f"openai+{server.url}/v1#mine") as endpoint:
            assert endpoint.model_info == {"model_path": "mine"}
        with pytest.raises(BackendError, match="#MODEL"):
            sgc.connect(f"openai+{server.url}/v1")


# -- seeds ------------------------------------------------------------------------------------


@sgc.function
def seeded(s):
    s += "x" + sgc.gen("a", max_tokens=8, seed=7)
    s += sgc.gen("b", max_tokens=8, seed=0, temperature=0)
    s += sgc.gen("c", max_tokens=8) + sgc.gen("d", max_tokens=8, temperature=0)


def test_a_programs_own_seed_is_sent_as_it_is(serve, ask):
    """Derived ones stay derived, and go only to who is known to take them."""
    server = serve()
    seeded.run(backend=ask(server, "gpt-4o"), seed=3).sync()
    seeded.run(backend=ask(server, "served"), seed=3).sync()
    seeded.run(backend=ask(server, "gpt-5"), seed=3).error()
    seeds = [body.get("seed") for body in server.bodies]
    assert seeds[:2] == seeds[4:6] == [7, 0]
    assert seeds[2] > 2**32
    assert seeds[3] is None
    assert seeds[6:] == [None, None, None]


def test_further_texts_of_one_seed_have_their_own(serve, ask):
    @sgc.function
    def three(s):
        s += "x" + sgc.gen("a", max_tokens=8, seed=7, n=3)

    server = serve()
    three.run(backend=ask(server, "gpt-4o")).sync()
    three.run(backend=ask(server, "served")).sync()
    seeds = [body["seed"] for body in server.bodies]
    assert seeds[0] == 7
    assert len(set(seeds[1:])) == 3
    assert 7 in seeds[1:]


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1])
def test_a_seed_that_no_api_takes_is_refused(seed):
    facts = facts_for("openai", "gpt-4o", Choices())
    with pytest.raises(UnsupportedParameter, match="64 bits"):
        lower(PROMPT, Sampling(8, own_seed=seed), facts)
