"""How an HTTP request counts for its client's account."""

from __future__ import annotations

import pytest

from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.running import _counted
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.quotas import Account, Quota
from sgc.runtime.engine.server.ledger import Ended, Ledger
from sgc.runtime.engine.server.tally import Tally


def test_a_request_that_was_let_in_keeps_its_place_over_all_its_parts():
    account = Account("a", Quota(requests_per_minute=2, max_concurrent=1), clock=lambda: 0.0)
    one, other = Caller(account=account), Caller(account=account)
    with _counted(one):
        for _ in range(3):  # its parts, one after another
            with _counted(one):
                assert account.n_running == 1
            assert account.n_running == 1
            with pytest.raises(HttpError, match="at most 1 request at once"), _counted(other):
                pass
    assert account.n_running == 0
    with _counted(other), _counted(other):  # the second request of the minute
        assert account.n_running == 1
        with _counted(one):  # goes on with what was let in, and is refused for nothing
            assert account.n_running == 2
    assert account.n_running == 0
    with (
        pytest.raises(HttpError, match="at most 2 requests a minute"),
        _counted(Caller(account=account)),
    ):
        pass
    assert account.n_running == 0


def test_who_watches_fails_nothing(caplog):
    def observe(ended: Ended) -> None:
        raise RuntimeError("no collector")

    seen: list[Ended] = []
    tally = Tally()
    Ledger(tally, Caller(), False, [observe, seen.append]).cancelled(1, None)
    assert (tally.cancelled, len(seen)) == (1, 1)
    assert "telling how a request ended failed" in caplog.text
