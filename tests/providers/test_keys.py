"""Keys: where they come from, where they go, and that nothing shows them."""

from __future__ import annotations

import traceback

import pytest
from providers.clocks import JumpingClock
from providers.conftest import KEY
from providers.provider_server import Fault

import sgc
from sgc.errors import UsageError
from sgc.runs.providers import ProviderEndpoint
from sgc.runtime.executor.backends.providers.connect import is_trusted, parse_target, target
from sgc.runtime.executor.backends.providers.models import models
from sgc.runtime.executor.backends.providers.wire import addresses
from sgc.runtime.executor.backends.providers.wire.errors import redacted


@sgc.function
def program(s):
    s += "x" + sgc.gen("a", max_tokens=8)


ECHOES = [
    Fault("status", 401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
    Fault("status", 400, body={"error": {"message": f"odd header Bearer {KEY}"}}),
    Fault("status", 400, body=f"plain {KEY}"),
    Fault("status", 500, body={"error": {"message": f"crashed on {KEY}"}}),
]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
@pytest.mark.parametrize("fault", ECHOES, ids=lambda fault: str(fault.status))
def test_errors_do_not_show_a_key_that_the_server_says(serve, ask, model, fault):
    endpoint = ask(serve(fault=lambda ask: fault), model)
    endpoint.backend.limits.clock = JumpingClock()
    error = program.run(backend=endpoint).error()
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))
    assert KEY not in shown
    assert "***" in shown


def test_runs_and_logs_do_not_hold_the_key(serve, ask, tmp_path):
    server = serve()
    for model in ("gpt-4o", "claude-haiku-4-5"):
        path = tmp_path / f"{model}.log"
        endpoint = ask(server, model)
        with sgc.RunLog.open(str(path)) as log:
            state = program.run(backend=endpoint, log=log)
            assert state.error() is None
        assert "reply 1" in path.read_text()
        assert KEY not in path.read_text()
        shown = repr(endpoint) + repr(endpoint.backend) + repr(vars(endpoint.backend))
        assert KEY not in shown + repr(vars(endpoint))
    assert server.asks[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.asks[1].headers["authorization"] == f"Bearer {KEY}"


def test_a_missing_key_is_told_before_anything_runs(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        sgc.OpenAI("gpt-4o")
    with pytest.raises(UsageError, match="set ANTHROPIC_API_KEY"):
        sgc.connect("anthropic:claude-opus-5")
    with pytest.raises(UsageError, match="printable"):
        sgc.OpenAI("gpt-4o", api_key="sk\n1")


def test_the_environment_names_key_and_server(serve, monkeypatch):
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    with sgc.connect("openai:gpt-4o") as endpoint:
        program.run(backend=endpoint).sync()
    assert server.asks[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.asks[0].headers["openai-organization"] == "org-mine"


def test_other_servers_do_not_get_openais_key(serve, monkeypatch):
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.delenv("SGC_TOKEN", raising=False)
    with sgc.connect(f"openai+{server.url}/v1#served") as endpoint:
        program.run(backend=endpoint).sync()
    headers = server.asks[0].headers
    assert headers["authorization"] == "Bearer no-key"
    assert "openai-organization" not in headers
    monkeypatch.setenv("SGC_TOKEN", "mine")
    assert parse_target("openai+http://h/v1#m").key == "mine"
    assert "mine" not in repr(parse_target("openai+http://h/v1#m"))


def test_another_provider_with_openais_api_does_not_get_the_organization(serve, monkeypatch):
    server = serve()
    monkeypatch.setitem(addresses.OWN, "acme", "https://api.acme.example/v1")
    monkeypatch.setitem(models._table(), "acme", models._table()["openai"])
    monkeypatch.setenv("ACME_API_KEY", KEY)
    monkeypatch.setenv("ACME_BASE_URL", server.url + "/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    with ProviderEndpoint(target("acme", "anvil", {})) as endpoint:
        program.run(backend=endpoint).sync()
    headers = server.asks[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "openai-organization" not in headers


@pytest.mark.parametrize("how", ["sgc", "sglang"])
def test_a_base_url_gets_the_providers_key_only_if_the_environment_names_it(
    serve, monkeypatch, how
):
    from sgc.compat.sglang.backends import providers as sglang

    server = serve()
    url = server.url + "/v1"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("SGC_TOKEN", raising=False)
    make = sgc.OpenAI if how == "sgc" else sglang.OpenAI

    def sent() -> dict[str, str]:
        with make("gpt-4o", base_url=url) as endpoint:
            program.run(backend=endpoint).sync()
        return server.asks[-1].headers

    assert sent()["authorization"] == "Bearer no-key"
    assert "openai-organization" not in sent()
    monkeypatch.setenv("SGC_TOKEN", "mine")
    assert sent()["authorization"] == "Bearer mine"
    monkeypatch.delenv("SGC_TOKEN")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/elsewhere")
    assert sent()["authorization"] == f"Bearer {KEY}"


def test_whose_an_address_is():
    assert is_trusted("openai", None)
    assert is_trusted("openai", "https://eu.api.openai.com/v1")
    for url in (
        "http://api.openai.com/v1", "https://openai.com.example.net/v1", "https://api.anthropic.com"
    ):  # fmt: skip
        assert not is_trusted("openai", url)


def test_what_looks_like_a_key_is_not_shown():
    assert redacted("key sk-abc123***xyz is", ()) == "key *** is"


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("openai:", "no model is named"),
        ("openai:gpt-4o?typo=1", "unknown option 'typo'"),
        ("openai:gpt-4o?api", "OPTION=VALUE"),
        ("openai:gpt-4o?api=chat&api=completions", "twice"),
        ("openai:gpt-4o?api=chat&effort=none&x", "OPTION=VALUE"),
        ("openai+http://u:p@h/v1#m", "no password"),
        ("openai+http:///v1#m", "address of a server"),
        ("openai+http://h:99999/v1#m", "address of a server"),
        ("openai+http://[h/v1#m", "address of a server"),
        ("openai+http://h/v1?m", "address of a server"),
        ("openai+http://h/v1#m?server=typo", "server must be one of vllm"),
    ],
)
def test_wrong_addresses_are_told(monkeypatch, uri, words):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(UsageError, match=words):
        parse_target(uri)
