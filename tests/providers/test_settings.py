"""What a caller gives an endpoint by name: it arrives, or it is named in an error."""

from __future__ import annotations

import json

import httpx2
import pytest
from providers.conftest import KEY
from providers.provider_server import Fault

import sgc
from sgc.errors import UnsupportedParameter, UsageError
from sgc.runtime.executor.backends.providers.wire.settings import sort_settings


@sgc.function
def program(s):
    s += "x" + sgc.gen("a", max_tokens=8, temperature=0)


MODELS = ["gpt-4o", "claude-haiku-4-5", "served"]


@pytest.mark.parametrize("model", MODELS)
def test_what_the_sdk_takes_reaches_the_server(serve, ask, model):
    server = serve()
    endpoint = ask(
        server,
        model,
        default_headers={"X-Team": "tea"},
        default_query={"api-version": "2026"},
        extra_headers={"X-Row": "7"},
        extra_query={"trace": "on"},
        extra_body={"metadata": {"job": "nightly"}, "service_tier": "flex"},
        timeout=30,
    )
    assert program.run(backend=endpoint).error() is None
    (asked,) = server.asks
    assert (asked.headers["x-team"], asked.headers["x-row"]) == ("tea", "7")
    assert (asked.query["api-version"], asked.query["trace"]) == ("2026", "on")
    assert asked.body["metadata"] == {"job": "nightly"}
    assert asked.body["service_tier"] == "flex"
    assert endpoint.backend.limits.settings.request_timeout_s == 30


def test_an_organization_that_is_given_goes_where_it_is_given(serve, ask, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    server = serve()
    endpoint = ask(server, "gpt-4o", organization="org-given", project="proj")
    program.run(backend=endpoint).sync()
    headers = server.asks[0].headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-given", "proj")


@pytest.mark.parametrize("model", MODELS)
def test_a_callers_own_http_client_is_the_one_that_asks(serve, ask, model):
    asked = []

    async def see(request):
        asked.append(request.url.path)

    client = httpx2.AsyncClient(event_hooks={"request": [see]})
    server = serve()
    program.run(backend=ask(server, model, http_client=client)).sync()
    assert len(server.asks) == 1
    assert asked[-1] in ("/v1/chat/completions", "/v1/messages")


WRONG = [
    ({"max_concurency": 3}, "no 'max_concurency'", "is it max_concurrency"),
    ({"default_header": {}}, "no 'default_header'", "is it default_headers"),
    ({"nonsense": 1}, "no 'nonsense'", "extra_body"),
    ({"temperature": 0.5}, "no 'temperature'", "give it to the run"),
    ({"max_retries": 3}, "no 'max_retries'", "tried again"),
    ({"extra_body": {"messages": []}}, "'messages'", "no words for"),
    ({"extra_body": {"n": 3}}, "'n'", "no words for"),
    ({"extra_body": {"a": {1}}}, "no JSON", ""),
    ({"extra_body": "a"}, "must be a mapping", ""),
    ({"default_headers": {"a": 1}}, "to texts", ""),
    ({"default_headers": [("a", "b")]}, "must be a mapping", ""),
    ({"timeout": 3, "request_timeout_s": 3}, "are the same", "leave one out"),
    ({"timeout": "3"}, "number of seconds", ""),
    ({"timeout": -3}, "above 0", ""),
    ({"max_concurrency": "3"}, "a whole number", ""),
    ({"max_concurrency": 2.5}, "a whole number", ""),
    ({"rpm": True}, "a number above 0", ""),
    ({"tpm": float("nan")}, "above 0", ""),
    ({"rpm": float("inf")}, "above 0", ""),
    ({"prices": {"gpt-4o": {}}}, "a file's name", ""),
    ({"http_client": "none"}, "does not take", ""),
    ({"http_client": httpx2.Client()}, "does not take", ""),
]


def _make(how, url, given):
    if how == "class":
        return sgc.OpenAI("gpt-4o", base_url=url, api_key=KEY, **given)
    return sgc.connect(f"openai+{url}#served", **given)


@pytest.mark.parametrize(("given", "words", "hint"), WRONG, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("how", ["class", "address"])
def test_what_nobody_takes_is_named(serve, given, words, hint, how):
    server = serve()
    url = server.url + "/v1"
    with pytest.raises(UsageError) as told:
        _make(how, url, given)
    assert words in told.value.message
    assert hint in told.value.hint


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (5, {}, "no model is named"),
        ("gpt-4o", {"api_key": 5}, "an API key must be"),
        ("gpt-4o", {"options": {"like": 5}}, "like must be a text"),
        ("gpt-4o", {"options": {"typo": "5"}}, "unknown option 'typo'"),
        ("gpt-4o", {"base_url": 5}, "must be a URL"),
    ],
)
def test_what_is_of_another_kind_is_told(model, given, words):
    with pytest.raises(UsageError, match=words):
        sgc.OpenAI(model, **{"api_key": KEY, **given})


def test_only_openai_has_organizations():
    with pytest.raises(UsageError, match="no 'organization'"):
        sgc.Anthropic("claude-opus-5", api_key=KEY, organization="org")


def test_a_field_is_not_said_twice(serve, ask):
    """Neither of the two is dropped."""
    server = serve()
    error = program.run(backend=ask(server, "gpt-4o", extra_body={"temperature": 1})).error()
    assert isinstance(error, UnsupportedParameter)
    assert "temperature by the program and by extra_body" in str(error)
    assert server.asks == []


def test_replies_with_other_settings_are_kept_apart(serve, ask, tmp_path):
    server = serve()
    for given in ({}, {"extra_body": {"metadata": {"a": "1"}}}, {"extra_body": {"metadata": {}}},
                  {"default_query": {"v": "2"}}, {"default_headers": {"x-beta": "1"}}):  # fmt: skip
        before = len(server.asks)
        for _ in range(2):
            with sgc.cached(ask(server, "gpt-4o", **given), tmp_path) as endpoint:
                program.run(backend=endpoint).sync()
        assert len(server.asks) == before + 1
    keyed = {"default_headers": {"X-Auth-Token": "changes-every-hour"}, "max_concurrency": 3}
    with sgc.cached(ask(server, "gpt-4o", **keyed), tmp_path) as endpoint:
        program.run(backend=endpoint).sync()
    assert len(server.asks) == 5


@pytest.mark.parametrize("model", MODELS)
def test_secrets_in_headers_are_struck_out(serve, ask, model):
    secret = "helicone-7f3a"
    said = Fault("status", 400, body={"error": {"message": f"odd header {secret}"}})
    server = serve(fault=lambda each: said)
    endpoint = ask(server, model, default_headers={"Helicone-Auth": secret})
    error = program.run(backend=endpoint).error()
    assert secret not in str(error)
    assert "odd header ***" in str(error)
    long = Fault("status", 400, body={"error": {"message": "x" * 494 + secret}})
    server.fault = lambda each: long
    assert str(program.run(backend=endpoint).error()).endswith("x***")  # no half of it
    _, sdk = sort_settings("openai", {"default_headers": {"Helicone-Auth": secret}})
    assert secret not in repr(sdk) + sdk.scope + json.dumps(repr(endpoint.backend))
