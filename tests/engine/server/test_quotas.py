"""Limits of a token's clients: what fits, when it will, and token files that set them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sgc.errors import UsageError
from sgc.runtime.engine.server.accounts.quotas import Account, Quota, duration
from sgc.runtime.engine.server.accounts.token_files import read_tokens
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.engine.server.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_requests_a_minute_and_when_the_next_fits() -> None:
    clock = Clock()
    account = Account("a", Quota(requests_per_minute=2), clock)
    assert account.begin() is None
    assert account.begin() is None
    refusal = account.begin()
    assert refusal is not None
    assert (refusal.limit, refusal.retry_after_s) == ("requests", 30.0)
    assert account.headers()["x-ratelimit-remaining-requests"] == "0"
    assert account.headers()["x-ratelimit-reset-requests"] == "1m0s"
    clock.now += refusal.retry_after_s
    assert account.begin() is None
    assert account.refusals == {"requests": 1}
    assert account.n_running == 3


def test_at_once() -> None:
    account = Account("a", Quota(max_concurrent=1), Clock())
    assert account.begin() is None
    refusal = account.begin()
    assert refusal is not None
    assert refusal.limit == "concurrent"
    account.end(2.0)
    assert account.begin() is None


def test_tokens_are_taken_when_it_comes_and_settled_when_it_ends() -> None:
    clock = Clock()
    account = Account("a", Quota(tokens_per_minute=600), clock)
    assert account.reserve(400) is None
    refusal = account.reserve(400)
    assert refusal is not None
    assert (refusal.limit, refusal.retry_after_s) == ("tokens", 20.0)
    account.settle(400, 100)  # 300 of it were cached
    assert account.reserve(400) is None
    account.settle(400, 2500)  # it generated much
    refusal = account.begin()
    assert refusal is not None
    assert refusal.retry_after_s == pytest.approx(200.1)
    clock.now += 260
    assert account.reserve(10**6) is None  # more than a minute's, when the bucket is full


def test_other_limits_keep_what_was_used() -> None:
    clock = Clock()
    account = Account("a", Quota(requests_per_minute=10), clock)
    for _ in range(10):
        assert account.begin() is None
    account.change(Quota(requests_per_minute=12))
    assert account.headers()["x-ratelimit-remaining-requests"] == "2"
    account.change(Quota())
    assert account.begin() is None
    assert account.headers() == {}


@pytest.mark.parametrize(("s", "text"), [(0.02, "20ms"), (1, "1s"), (359.2, "6m0s"), (60, "1m0s")])
def test_durations_are_as_in_openais_headers(s: float, text: str) -> None:
    assert duration(s) == text


GOOD = f"""
[[token]]
name = "batch"
token = "one"
requests_per_minute = 600
tokens_per_minute = 200_000
max_concurrent = 32
priority = "low"

[[token]]
name = "chat"
sha256 = "{hashlib.sha256(b"two").hexdigest()}"
"""


def test_a_toml_file_gives_tokens_names_and_limits(tmp_path: Path) -> None:
    tokens = read_tokens(GOOD.encode(), "t.toml")
    batch, chat = tokens.caller_of(b"Bearer one"), tokens.caller_of(b"Bearer two")
    assert batch is not None
    assert chat is not None
    assert batch.account is not None
    assert batch.account.quota == Quota(600, 200_000, 32, -1, -1)
    assert chat.account is not None
    assert chat.account.name == "chat"
    assert len({batch.domain, chat.domain, b""}) == 3
    for wrong in (b"Bearer three", b"one", b"Basic one", b"", b"Bearer one "):
        assert tokens.caller_of(wrong) is None


def test_an_account_goes_on_when_its_file_is_read_again() -> None:
    tokens = read_tokens(GOOD.encode(), "t.toml")
    account = tokens.accounts[0]
    assert account.begin() is None
    tokens.replace(read_tokens(GOOD.replace('"one"', '"new"').encode(), "t.toml"))
    caller = tokens.caller_of(b"Bearer new")
    assert caller is not None
    assert caller.account is account
    assert tokens.caller_of(b"Bearer one") is None


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("", "no [[token]]"),
        ("token = 3", "no [[token]]"),
        ("token = ['SECRET']", "no [[token]]"),
        ("x = 1\n" + GOOD, "'x' is unknown"),
        ("[[token]]\nname='a'\ntoken='SECRET'\nrpm=1", "unknown key 'rpm'"),
        ("[[token]]\ntoken='SECRET'", "name must be"),
        ("[[token]]\nname='a b'\ntoken='SECRET'", "name must be"),
        ("[[token]]\nname='a'", "token or sha256"),
        ("[[token]]\nname='a'\ntoken=''", "token must be"),
        ("[[token]]\nname='a'\nsha256='SECRET'", "64 hexadecimal"),
        ("[[token]]\nname='a'\ntoken='SECRETé'", "printable ASCII"),
        ("[[token]]\nname='a'\ntoken='SECRET'\nmax_concurrent=0", "max_concurrent must be"),
        ("[[token]]\nname='a'\ntoken='SECRET'\ntokens_per_minute=true", "tokens_per_minute must"),
        ("[[token]]\nname='a'\ntoken='SECRET'\npriority=1", "priority must be one of"),
        ("[[token]]\nname='a'\ntoken='SECRET'\nmax_priority='low'", "is below priority"),
        ("[[token]]\nname='a'\ntoken='SECRET'\n" * 2, "equal tokens"),
        ("[[token]]\nname='a'\ntoken='SECRET'\n[[token]]\nname='a'\ntoken='SECRE'", "equal names"),
        ("[[token]]\nname='a'\ntoken='SECRET", "is not TOML (at"),
        ("[[token]]\nname='a'\ntoken=SECRET", "is not TOML (at line 3"),
    ],
)
def test_a_bad_file_is_told_without_its_tokens(file: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_tokens(file.encode(), "t.toml")
    assert words in str(caught.value)
    assert "SECRE" not in str(caught.value)


def test_plain_tokens_have_names_too() -> None:
    assert [account.name for account in Tokens(["a", "b"]).accounts] == ["token-1", "token-2"]


def test_clients_without_room_are_told_places_one_after_another() -> None:
    """At the rate at which requests end; and those who do not come back are forgotten."""
    clock = Clock()
    pace = Pace(clock)
    assert pace.next_place_s() == 1.0
    clock.now = 100.0
    for _ in range(64):
        clock.now += 0.5
        pace.ended()
    told = [pace.next_place_s() for _ in range(3)]
    assert told == pytest.approx([0.5, 1.0, 1.5], rel=0.05)
    # Who asks again and again takes no more places than end in the meantime.
    assert max(pace.next_place_s() for _ in range(1000)) == pytest.approx(64 * 0.5, rel=0.05)
    assert pace.own_place_s() == pytest.approx(0.5, rel=0.05)
    clock.now += 8 * 3600  # nothing was asked: it says nothing of how quickly requests end
    assert pace.next_place_s() == 1.0
    for _ in range(64):
        clock.now += 0.5
        pace.ended()
    assert pace.next_place_s() < 3.0
