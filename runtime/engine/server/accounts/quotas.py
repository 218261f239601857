"""What the clients of one token may use: requests and tokens a minute, and requests at once.

A bucket holds a minute's worth and fills evenly over a minute. So after a pause a client may use a
minute's worth at once, and no two minutes in a row hold more than three.

A request is one HTTP request, or one request of a gRPC stream. Its tokens are those that the model
computes for it: of its prompt, those that are not cached, and those it generates. When it comes,
its whole prompt must fit the bucket, or the bucket must be full; when it has ended, its cached
tokens are given back and its generated tokens are taken, so the bucket may fall below zero.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgc.errors import counted

if TYPE_CHECKING:  # not needed before the step process has started
    from sgc.proto import engine_pb2 as pb

MINUTE_S = 60.0
FIRST_SECONDS = 1.0  # the assumed duration of a request before one has ended
REQUESTS, TOKENS, CONCURRENT = "requests", "tokens", "concurrent"  # names of limits
PRIORITIES = {"low": -1, "normal": 0, "high": 1}


@dataclass(frozen=True, slots=True)
class Quota:
    """None: no limit. priority: what requests have if they do not say; max_priority: the highest
    that they may have."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_concurrent: int | None = None
    priority: int = 0
    max_priority: int = 0

    def priority_of(self, asked: int | None) -> int:
        """The priority of a request that asks for `asked`."""
        return self.priority if asked is None else min(asked, self.max_priority)

    def __bool__(self) -> bool:
        limits = (self.requests_per_minute, self.tokens_per_minute, self.max_concurrent)
        return any(limit is not None for limit in limits)


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class QuotaRefusal:
    """limit: its name; retry_after_s: when the request will fit, if nothing else comes before."""

    limit: str
    message: str
    retry_after_s: float


class Bucket:
    """per_minute: its capacity, and the amount that flows in within a minute."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._level, self._at = per_minute, clock()

    @property
    def level(self) -> float:
        now = self._clock()
        flowed = (now - self._at) * self.per_minute / MINUTE_S
        self._level, self._at = min(self.per_minute, self._level + flowed), now
        return self._level

    @property
    def full_in_s(self) -> float:
        return (self.per_minute - self.level) * MINUTE_S / self.per_minute

    def wait_s(self, amount: float) -> float:
        """Seconds until the amount fits, or the bucket is full; 0 if it does now."""
        short = min(amount, self.per_minute) - self.level
        return max(0.0, short) * MINUTE_S / self.per_minute

    def take(self, amount: float) -> None:
        """Takes an amount, even if the bucket has less; a negative amount is given back."""
        self._level = min(self.per_minute, self.level - amount)

    def changed(self, per_minute: float) -> Bucket:
        """A bucket of another size that lacks the same amount."""
        found = Bucket(per_minute, self._clock)
        found.take(self.per_minute - self.level)
        return found


class Account:
    """What the clients of a token use. name: the token's, for messages; never the token.

    outcomes, refusals: how its requests ended, and which limits refused them. prompt_tokens and the
    others: of those that finished.
    """

    def __init__(
        self, name: str, quota: Quota = NO_QUOTA, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self.quota = name, quota
        self._clock = clock
        self._requests = _bucket(quota.requests_per_minute, clock)
        self._tokens = _bucket(quota.tokens_per_minute, clock)
        self.n_running = 0
        self._mean_s = FIRST_SECONDS
        self.outcomes: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.prompt_tokens = self.cached_tokens = self.generated_tokens = 0

    @property
    def counts_tokens(self) -> bool:
        return self._tokens is not None

    def change(self, quota: Quota) -> None:
        """Gives it other limits; what was used before still counts."""
        self.quota = quota
        self._requests = _changed(self._requests, quota.requests_per_minute, self._clock)
        self._tokens = _changed(self._tokens, quota.tokens_per_minute, self._clock)

    def begin(self) -> QuotaRefusal | None:
        """Counts a request that begins, unless a limit refuses it."""
        refusal = self._refusal_of_request()
        if refusal is not None:
            self.refusals[refusal.limit] += 1
            return refusal
        self.n_running += 1
        if self._requests is not None:
            self._requests.take(1)
        return None

    def go_on(self) -> None:
        """Counts that a request that was let in goes on, with another part."""
        self.n_running += 1

    def end(self, took_s: float) -> None:
        """Counts the end of a request that has begun."""
        self.n_running -= 1
        self._mean_s += (took_s - self._mean_s) / 16

    def reserve(self, n_tokens: int) -> QuotaRefusal | None:
        """Takes a prompt's tokens, unless they do not fit."""
        refusal = self._refusal_of_tokens(n_tokens)
        if refusal is not None:
            self.refusals[refusal.limit] += 1
        elif self._tokens is not None:
            self._tokens.take(n_tokens)
        return refusal

    def settle(self, n_reserved: int, n_used: int) -> None:
        """Replaces the tokens reserved for a request by those that it used."""
        if self._tokens is not None:
            self._tokens.take(n_used - n_reserved)

    def count(self, usage: pb.Usage) -> None:
        """Adds up a request that has finished."""
        self.prompt_tokens += usage.prompt_tokens
        self.cached_tokens += usage.cached_tokens
        self.generated_tokens += usage.completion_tokens

    def headers(self) -> dict[str, str]:
        """The limits and what is left of them, as OpenAI's clients know them."""
        found: dict[str, str] = {}
        for name, bucket in ((REQUESTS, self._requests), (TOKENS, self._tokens)):
            if bucket is not None:
                found[f"x-ratelimit-limit-{name}"] = str(int(bucket.per_minute))
                found[f"x-ratelimit-remaining-{name}"] = str(max(0, int(bucket.level)))
                found[f"x-ratelimit-reset-{name}"] = duration(bucket.full_in_s)
        return found

    def _refusal_of_request(self) -> QuotaRefusal | None:
        most = self.quota.max_concurrent
        if most is not None and self.n_running >= most:
            why = f"at most {counted(most, 'request')} at once"
            return self._refusal(CONCURRENT, why, max(0.01, self._mean_s / most))
        if self._requests is not None and (wait_s := self._requests.wait_s(1)):
            return self._refusal(
                REQUESTS, f"at most {self._requests.per_minute:g} requests a minute", wait_s
            )
        return self._refusal_of_tokens(1)

    def _refusal_of_tokens(self, n_tokens: int) -> QuotaRefusal | None:
        if self._tokens is None or not (wait_s := self._tokens.wait_s(n_tokens)):
            return None
        return self._refusal(TOKENS, f"at most {self._tokens.per_minute:g} tokens a minute", wait_s)

    def _refusal(self, limit: str, what: str, wait_s: float) -> QuotaRefusal:
        message = f"the limit of {self.name} is reached: {what}; try again in {duration(wait_s)}"
        return QuotaRefusal(limit, message, wait_s)


def _bucket(per_minute: float | None, clock: Callable[[], float]) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute, clock)


def _changed(
    bucket: Bucket | None, per_minute: float | None, clock: Callable[[], float]
) -> Bucket | None:
    if bucket is None or per_minute is None:
        return _bucket(per_minute, clock)
    return bucket if bucket.per_minute == per_minute else bucket.changed(per_minute)


def duration(seconds: float) -> str:
    """As OpenAI's headers have it: 20ms, 1s, 6m0s."""
    if seconds < 1:
        return f"{int(seconds * 1000)}ms"
    whole = int(seconds + 0.999)
    minutes, left = divmod(whole, 60)
    return f"{minutes}m{left}s" if minutes else f"{left}s"
