"""Fixtures of tests of logs, and of clients of SGLang's API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from executor.log.logged_runs import DONE
from sglang_server import ScriptedServer

from sgc.runtime.executor.backends.sglang import http as sglang_http


@pytest.fixture
def nothing_done():
    """No tool of the agent has been called."""
    DONE.clear()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.log"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ScriptedServer]:
    with ScriptedServer(model="Qwen/Qwen2.5-7B-Instruct", chunk_tokens=2) as server:
        yield server


@pytest.fixture
def server(shared_server: ScriptedServer) -> ScriptedServer:
    shared_server.reset()
    shared_server.fail_on, shared_server.cut_stream_after = (), None
    shared_server.delay_s, shared_server.pads_first_logprob = 0.0, True
    return shared_server


@pytest.fixture
def short_backoff(monkeypatch):
    """Clients of SGLang's API ask again at once."""
    monkeypatch.setattr(sglang_http, "RETRIES", replace(sglang_http.RETRIES, first_wait_s=0.001))
