"""What is known of providers' models: a dated table, `models.json`, and how an entry is found.

Data only. What is unknown has its provider's default, which is conservative: what a model might
refuse is refused here, with the program's line, before it is asked. Nothing here asks anybody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.providers.prices import Prices, prices_of

PREFILLS = ("continue", "trailing", "rewrite", "none")
CACHES = ("plan", "vendor", "off")
SELECTS = ("choice", "regex", "structured", "logit_bias", "echo", "check")


@dataclass(frozen=True, slots=True)
class Caching:
    """A provider's prompt cache, in its own tokens; what it costs is in the prices.

    kind: automatic (nothing can be marked), marks (only what is marked) or both (marked, else a
    mark that the provider puts near the prompt's end). min_tokens: of the shortest prefix kept;
    step: of automatic ones. breakpoints: written by a request; look_back: how far behind a mark an
    entry is found, in blocks where only marks are kept, else in marks. ttl: for how long, the first
    by default. readable_after: when others can read what a request writes. key_rpm: requests a
    minute with one key and beginning before they go to a machine that has not seen it; 0: unknown.
    """

    kind: str = "automatic"
    min_tokens: int = 0
    step: int = 0
    breakpoints: int = 0
    look_back: int = 0
    ttl: tuple[str, ...] = ()
    readable_after: str = ""
    key_rpm: int = 0

    @property
    def explicit(self) -> bool:
        """Whether a request can say what is to be kept."""
        return self.kind != "automatic"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a model takes and does.

    api: chat, completions or messages; limit_name: the API's name of max_tokens; params: our names
    of sampling parameters to the API's, for those it takes; ranges: of their values; sends_neutral:
    those sent even where neutral, since a server may have other defaults; one_of: those of which
    only one is taken. max_stops: None for any number; blank_stops: white space alone is taken;
    tells_stop: it says which one ended a text. structured: replies that keep to a JSON schema, of
    schema_words (None: of all), with patterns or without, with every property required or not.
    regex, choice, ebnf: where a request has these, a path. prefill: how a begun assistant message
    is gone on with. select: how a choice is asked for, the first way that fits; max_tokens of a
    model that reasons include its reasoning. cache: who says what is kept of prompts, the
    program's plan, the vendor's own rule, or nobody; cache_ttl: for how long, "" the default.
    bytes_per_token, tokens_a_message: of English text and around it, as far as anybody can guess.
    """

    provider: str
    model: str
    api: str = "chat"
    limit_name: str = "max_tokens"
    params: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sends_neutral: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    max_stops: int | None = 4
    blank_stops: bool = True
    tells_stop: bool = False
    n: bool = False
    seed: bool = False
    logit_bias: bool = False
    top_logprobs: int = 0
    structured: bool = False
    patterns: bool = False
    schema_words: tuple[str, ...] | None = None
    all_required: bool = False
    regex: str = ""
    choice: str = ""
    ebnf: str = ""
    prefill: str = "none"
    select: tuple[str, ...] = ("check",)
    encoding: str = ""
    images: bool = False
    image_tokens: int = 0
    context: int = 2**31 - 1
    max_output: int = 2**31 - 1
    reasoning: bool = False
    efforts: tuple[str, ...] = ()
    effort: str = ""
    stream_usage: bool = False
    streams: bool = False
    roles: tuple[str, ...] = ("system", "user", "assistant")
    caching: Caching | None = None
    cache: str = "plan"
    cache_ttl: str = ""
    prices: Prices | None = None
    bytes_per_token: float = 4.0
    tokens_a_message: int = 4


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user says of a model, instead of the table; None leaves it to the table.

    like: another model whose entry counts; server: of a compatible server, its kind.
    """

    api: str | None = None
    prefill: str | None = None
    select: str | None = None
    effort: str | None = None
    like: str | None = None
    server: str | None = None
    stream: str | None = None
    cache: str | None = None
    cache_ttl: str | None = None


def parse_choices(given: Mapping[str, str]) -> Choices:
    """Raises UsageError for a name or a value that there is not."""
    known = {row.name for row in fields(Choices)}
    for name in given:
        if name not in known:
            raise UsageError(
                f"unknown option {name!r} of a model",
                hint=f"use one of: {', '.join(sorted(known))}",
            )
    choices = Choices(**given)
    _check_one_of("api", choices.api, ("chat", "completions"))
    _check_one_of("prefill", choices.prefill, PREFILLS)
    _check_one_of("select", choices.select, SELECTS)
    _check_one_of("stream", choices.stream, ("auto", "always"))
    _check_one_of("cache", choices.cache, CACHES)
    _check_one_of("server", choices.server, tuple(_table()["compatible"]["servers"]))
    return choices


def facts_for(provider: str, model: str, choices: Choices, owned_by: str = "") -> Facts:
    """What is known of a model of `openai`, `anthropic` or a `compatible` server.

    owned_by: who serves it, as a compatible server says. Raises UsageError where the user's
    choices do not fit the model.
    """
    rows = _rows(provider, choices.like or model, choices.server, owned_by)
    facts = _facts(provider, model, rows)
    if model.startswith("ft:") and choices.like is None:
        facts = replace(facts, prices=None)  # tuned models cost more than their base
    if choices.effort is not None:
        facts = _with_effort(facts, choices.effort, rows)
    if choices.api is not None:
        facts = _with_api(facts, choices.api, rows)
    if choices.prefill is not None:
        facts = replace(facts, prefill=choices.prefill)
    if choices.select is not None:
        facts = replace(facts, select=(choices.select,))
    ttls = () if facts.caching is None else facts.caching.ttl
    _check_one_of(f"cache_ttl of {model}", choices.cache_ttl, ttls)
    return replace(
        facts,
        streams=choices.stream == "always",
        cache=choices.cache or "plan",
        cache_ttl=choices.cache_ttl or "",
    )


def as_of() -> str:
    """The date of the table."""
    return str(_table()["as_of"])


@cache
def _table() -> Mapping[str, Any]:
    text = Path(__file__).with_name("models.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def _rows(provider: str, model: str, server: str | None, owned_by: str) -> dict[str, Any]:
    """The table's fields for a model: the default's, its family's and its own."""
    table = _table()[provider]
    servers = table.get("servers", {})
    kind = server or next(
        (name for name, row in servers.items() if owned_by in row["owned_by"]), ""
    )
    name = model.removeprefix("ft:").partition(":")[0] if model.startswith("ft:") else model
    own: Mapping[str, Any] = next(
        (row for row in table["models"] if fnmatchcase(name, row["match"])), {}
    )
    family = table.get("families", {}).get(own.get("is", ""), {})
    layers = (table["default"], servers.get(kind, {}), family, own)
    rows: dict[str, Any] = {name: value for layer in layers for name, value in layer.items()}
    caching = {name: v for layer in layers for name, v in layer.get("caching", {}).items()}
    return {**rows, "caching": caching} if caching else rows


_TABLE_ONLY = {"match", "is", "owned_by", "without_reasoning", "completions_select"}


def _facts(provider: str, model: str, rows: Mapping[str, Any]) -> Facts:
    given = {name: _frozen(value) for name, value in rows.items() if name not in _TABLE_ONLY}
    if isinstance(rows.get("caching"), Mapping):
        given["caching"] = Caching(**{k: _frozen(v) for k, v in rows["caching"].items()})
    if "prices" in rows:
        given["prices"] = prices_of(rows["prices"], f"the table's prices of {model}")
    given["ranges"] = {k: (v[0], v[1]) for k, v in rows.get("ranges", {}).items()}
    return Facts(provider=provider, model=model, **given)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _with_effort(facts: Facts, effort: str, rows: Mapping[str, Any]) -> Facts:
    _check_one_of(f"effort of {facts.model}", effort, facts.efforts)
    if effort == "none" and rows.get("without_reasoning"):
        facts = _facts(facts.provider, facts.model, {**rows, **rows["without_reasoning"]})
        facts = replace(facts, reasoning=False)
    return replace(facts, effort=effort)


def _with_api(facts: Facts, api: str, rows: Mapping[str, Any]) -> Facts:
    if facts.api == "messages":
        raise UsageError(f"{facts.model} has no API but messages; api={api} is for OpenAI's")
    if api == facts.api:
        return facts
    select = tuple(rows.get("completions_select", ("check",))) if api == "completions" else None
    limit = "max_tokens" if api == "completions" else facts.limit_name
    return replace(facts, api=api, select=select or facts.select, limit_name=limit)


def _check_one_of(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        listed = ", ".join(known) or "none that is known"
        raise UsageError(f"{name} must be one of {listed}; found {value!r}")
