"""Who is let in, and what clients are told when an engine is full, stops or dies."""

from __future__ import annotations

import asyncio
import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import openai
import pytest
from waiting import BOUND_S, until

from sgc.errors import UsageError
from sgc.runtime.engine.config import ServerConfig, check
from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.preparing.bounds import ServerLimits
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.shared import Shared
from sgc.runtime.engine.text.tokenizer import Tokenizer

ENDLESS = {"model": "fake", "prompt": "Endless", "max_tokens": 3900, "temperature": 0}


ENDLESS_BODY: Any = {"extra_body": {"ignore_eos": True}}


LONG = {**ENDLESS, "max_tokens": 800}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, http_engine: Any) -> Iterator[Any]:
    """An engine whose clients must present a token."""
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text("the-right-token\n")
    arguments = ["--http", "0", "--token-file", str(file), "--max-running", "1"]
    with EmbeddedEngine("fake", [*arguments, "--max-waiting", "2"]) as engine:
        yield type(http_engine)(engine)


def test_only_the_token_opens(guarded: Any) -> None:
    right = {"Authorization": "Bearer the-right-token"}
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "the-right-token"}):
        answer = guarded.ask("/v1/models", **given)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert guarded.ask("/nope").status == 401
    assert guarded.ask("/v1/models", **right).status == 200
    assert guarded.ask("/health").status == 200
    assert guarded.ask("/v1/models", Host="named.example", **right).status == 200


def test_the_client_says_what_was_wrong_with_its_key(guarded: Any) -> None:
    with guarded.client() as client, pytest.raises(openai.AuthenticationError):
        client.models.list()


def test_a_full_engine_says_when_to_come_again(guarded: Any) -> None:
    client = openai.OpenAI(
        base_url=guarded.url + "/v1", api_key="the-right-token", max_retries=0, timeout=30
    )
    create: Any = client.completions.create
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(create, **LONG, **ENDLESS_BODY) for _ in range(8)]
        refused = [error for each in asked if isinstance(error := each.exception(), Exception)]
    assert 0 < len(refused) < 8
    for error in refused:
        assert isinstance(error, openai.RateLimitError)
        assert error.response.headers["Retry-After"] == "1"


@pytest.mark.parametrize("http", ["0.0.0.0:0", "unix:/tmp/x", "host", "127.0.0.1:99999"])
def test_an_address_that_cannot_be_is_an_error(http: str) -> None:
    with pytest.raises(UsageError):
        check(ServerConfig(model="fake", listen="127.0.0.1:0", http=http))


def test_a_port_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match="in use"):
            check(ServerConfig(model="fake", listen="127.0.0.1:0", http=str(port)))


def test_without_the_option_nothing_of_http_is_imported() -> None:
    code = "import sgc.runtime.engine.serving, sys; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_with_a_certificate_it_speaks_tls(tmp_path: Path) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    arguments = ["--http", "localhost:0", "--tls-cert", cert, "--tls-key", key]
    with EmbeddedEngine("fake", arguments) as engine:
        url = next(x for x in engine.stderr_tail.splitlines() if x.startswith("HTTP on "))
        assert url.startswith("HTTP on https://localhost:")
        context = ssl.create_default_context(cafile=cert)
        connection = http.client.HTTPSConnection(
            "localhost", int(url.rpartition(":")[2]), context=context
        )
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200


def test_a_stream_is_told_that_the_engine_stops(http_engine: Any) -> None:
    with EmbeddedEngine("fake", ["--http", "0"]) as engine:
        client = type(http_engine)(engine).client()
        chunks = client.completions.create(**ENDLESS, **ENDLESS_BODY, stream=True)
        next(chunks)
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGTERM)
        with pytest.raises(openai.APIError, match="the engine is stopping"):
            list(chunks)


@pytest.mark.slow
def test_a_call_is_told_that_the_step_process_died(http_engine: Any) -> None:
    with EmbeddedEngine("fake", ["--http", "0"]) as engine, ThreadPoolExecutor(1) as threads:
        face = type(http_engine)(engine)
        client = face.client()
        chunks = client.completions.create(**ENDLESS, **ENDLESS_BODY, stream=True)
        next(chunks)  # it runs
        asked = threads.submit(client.completions.create, **ENDLESS, **ENDLESS_BODY)
        until(lambda: face.ask("/server_info").json["num_running_reqs"] == 2)
        children = Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        error = asked.exception(BOUND_S)
        assert isinstance(error, openai.InternalServerError)
        assert error.status_code == 503
        with pytest.raises(openai.APIError, match="worker process ended"):
            list(chunks)


def test_a_server_with_too_many_clients_says_so(tokenizer: Tokenizer) -> None:
    limits = ServerLimits(64, 64, 2048, max_sessions=0)
    shared = Shared(tokenizer, cast(Any, None), limits)

    async def main() -> None:
        with pytest.raises(HttpError, match="too many clients") as caught:
            await Runs(shared).finals([], Caller())
        assert caught.value.status == 429

    asyncio.run(main())
