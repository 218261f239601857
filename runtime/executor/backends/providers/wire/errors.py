"""A provider's failures as typed errors without secrets, and when to retry."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from unicodedata import category

from sgc.errors import BackendError, ContextExceeded, EngineUnavailable, Overloaded

_CONTEXT_WORDS = (
    "context_length_exceeded", "maximum context length", "prompt is too long", "context window",
)  # fmt: skip
_SECRET = re.compile(r"\bsk-[\w*.-]{6,}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TITLE = re.compile(r"<title>([^<]*)</title>", re.IGNORECASE)
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
MAX_HTML = 10_000
ADDRESS = "is the address right? most end in /v1"
LONGEST_TOLD_S = 1e6
_LATER = frozenset({408, 409, 425, 429})
# The headers of OpenAI and Anthropic that say when limits reset, used without a retry-after.
_RESETS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")
_RESET_TIMES = ("requests", "tokens", "input-tokens", "output-tokens")


class RateLimited(Overloaded):
    """The provider has no room now. retry_after_s: when to retry, None if it does not say."""

    retry_after_s: float | None = None


class ProviderUnavailable(EngineUnavailable):
    """The provider failed, took too long, or the connection was cut."""

    retry_after_s: float | None = None


class MalformedReply(BackendError):
    """A reply or stream is not as the API specifies, or ends too early."""

    retryable = True
    retry_after_s: float | None = None


class WrongServer(MalformedReply):
    """What answers is no server of this API, or not for such requests: it is not asked again."""

    retryable = False


class ContentRefused(BackendError):
    """The model, or a filter of the provider's, refused to reply."""


class NotFound(BackendError):
    """The provider has nothing of this name."""


class KeyRefused(BackendError):
    """The provider does not accept the API key."""


def status_error(
    status: int,
    body: Any,
    headers: Mapping[str, str],
    provider: str,
    secrets: Iterable[str],
    model: str,
) -> BackendError:
    """The error for an HTTP status, with the provider's own message."""
    message = message_of(body, secrets)
    error = _status_error(status, body, message, provider, model)
    if isinstance(error, (RateLimited, ProviderUnavailable)):
        # All replies have rate-limit headers; only a 429 is about them.
        error.retry_after_s = retry_after_s(headers, with_limits=status == 429)
    return error


def _status_error(status: int, body: Any, message: str, provider: str, model: str) -> BackendError:
    said = f"{provider} said {status}: {message}"
    if status in (401, 403):
        return KeyRefused(said, hint="check the API key, and what it may be used for")
    if status in (404, 410):
        hint = f"is there a model {model!r}?" if model else ADDRESS
        return NotFound(said, hint=hint)
    if status == 429 and "insufficient_quota" in (_told(body, "code"), _told(body, "type")):
        return BackendError(said, hint="the account has no money left for it")
    if status in (400, 413, 422) and _is_context(body, message):
        return ContextExceeded(said)
    if status in _LATER:
        return RateLimited(said)
    if status >= 500:
        return ProviderUnavailable(said)
    return BackendError(said)


def stream_error(body: Any, provider: str, secrets: Iterable[str]) -> BackendError:
    """The error for an event of a stream, by its type, as the HTTP status was 200."""
    message = f"{provider} ended the stream: {message_of(body, secrets)}"
    kind = _told(body, "type")
    if kind in ("rate_limit_error", "rate_limit_exceeded"):
        return RateLimited(message)
    if kind in ("invalid_request_error", "authentication_error", "permission_error"):
        return BackendError(message)
    return ProviderUnavailable(message)


def message_of(body: Any, secrets: Iterable[str] = ()) -> str:
    """The provider's message, from {"error": {"message": …}} or the like, up to 500 characters; of
    a page in HTML its title. It may be shown."""
    while isinstance(body, Mapping):
        inner = next((body[k] for k in ("error", "message", "detail") if body.get(k)), None)
        if inner is None:
            break
        body = inner
    text = str(body).strip() if body else "(no message)"
    # Cut off after the keys are removed: half of a key would no longer be seen to be one.
    return redacted(page_of(text) or text[:MAX_HTML], secrets)[:500]


def page_of(text: str) -> str:
    """What to say of a page in HTML, of a proxy or of no API; "" if the text is none."""
    text = text.lstrip()
    if not text[:20].lower().startswith(("<!doctype html", "<html")):
        return ""
    title = _TITLE.search(text[:MAX_HTML])
    return "a page in HTML" + (f", {' '.join(title[1].split())[:100]!r}" if title else "")


def redact(error: BackendError, secrets: Iterable[str]) -> None:
    """Makes an error's message one that may be shown."""
    error.message = redacted(error.message, secrets)
    error.args = (error.message,)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """What a provider says, as it may be shown: without keys, unprintable characters escaped."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return printable(_SECRET.sub("***", text))


def printable(text: str) -> str:
    """The text with its control characters escaped, and those that change the order of others: a
    provider's words must not look like a terminal's commands or another line of a log."""
    return "".join(
        each.encode("unicode_escape").decode() if category(each) in _UNPRINTABLE else each
        for each in text
    )


def _told(body: Any, name: str) -> str:
    """A field of an error body."""
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    return str(inner.get(name)) if isinstance(inner, Mapping) else ""


def _is_context(body: Any, message: str) -> bool:
    text = f"{_told(body, 'code')} {message}".lower()
    return any(words in text for words in _CONTEXT_WORDS)


def retry_after_s(headers: Mapping[str, str], with_limits: bool = True) -> float | None:
    """The seconds to wait according to the headers, retry-after first; None if they do not say.

    with_limits: without a retry-after, wait until the first rate limit resets.
    """
    told_s = _told_s(headers, with_limits)
    # A longer wait is a wait all the same: nobody is asked again at once.
    return None if told_s is None else min(told_s, LONGEST_TOLD_S)


def _told_s(headers: Mapping[str, str], with_limits: bool) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    plain = headers.get("retry-after")
    if plain:
        seconds = _number(plain)
        return seconds if seconds is not None else _until_date(plain, headers.get("date"))
    if not with_limits:
        return None
    spans = [_span(headers.get(name)) for name in _RESETS]
    times = [_until(headers.get(f"anthropic-ratelimit-{name}-reset")) for name in _RESET_TIMES]
    known = [seconds for seconds in (*spans, *times) if seconds is not None]
    # The headers do not tell which limit was hit: the shortest wait never waits too long.
    return min(known, default=None)


def _number(text: str | None) -> float | None:
    """A number in digits; one of too many digits is infinite."""
    return float(text) if text and re.fullmatch(r"\s*[0-9]+(\.[0-9]*)?\s*", text) else None


def _until_date(text: str, now: str | None) -> float | None:
    """Seconds until an HTTP date, by the server's clock if it is known: ours may be wrong."""
    when = _date(text)
    if when is None:
        return None
    return max((when - (_date(now or "") or datetime.now(UTC))).total_seconds(), 0.0)


def _date(text: str) -> datetime | None:
    """Parses any of HTTP's three date forms, one of which has no time zone; all are in UTC."""
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _until(text: str | None) -> float | None:
    """Seconds until a time such as 2026-11-21T12:00:00Z."""
    try:
        when = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.0)


def _span(text: str | None) -> float | None:
    """Seconds of a span such as 6m0.5s."""
    if not text or not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", text):
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    return float(sum(float(n) * _UNITS[unit] for n, unit in parts))
