"""Replies of providers that are kept or recorded: whose they are, what they cost, and no keys."""

from __future__ import annotations

import pytest
from providers.conftest import KEY

import sgc


@sgc.function
def triage(s, mail: str):
    s += sgc.user("Which?\n" + mail)
    s += sgc.assistant(sgc.gen("why", max_tokens=8, temperature=0))
    s += sgc.user("So?") + sgc.assistant(sgc.select("team", ["sales", "support"]))


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_what_is_kept_costs_nothing(serve, ask, tmp_path, model):
    server = serve()
    wanted = n_asked = None
    for number in range(3):
        with sgc.cached(ask(server, model), tmp_path) as endpoint:
            found = triage.compile(check=False).run("a mail", backend=endpoint)
        if number == 0:
            wanted, n_asked = found.text(), len(server.asks)
            assert found.stats.cost_usd > 0
        assert (found.text(), len(server.asks)) == (wanted, n_asked)
    assert (found.stats.cached_requests, found.stats.cost_usd) == (2, None)
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    elsewhere = serve()
    with sgc.cached(ask(elsewhere, model), tmp_path) as endpoint:
        triage.compile(check=False).run("a mail", backend=endpoint)
    assert len(elsewhere.asks) == n_asked


def test_a_recording_needs_no_key(serve, ask, tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    rows = [{"mail": f"mail {n % 3}"} for n in range(9)]
    with sgc.record(ask(serve(), "gpt-4o"), path) as endpoint:
        wanted = [state.text() for state in triage.run_batch(rows, backend=endpoint)]
    assert KEY not in path.read_text()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with sgc.replay(path) as endpoint:
        assert [state.text() for state in triage.run_batch(rows, backend=endpoint)] == wanted
        assert endpoint.backend.n_unused == 0
