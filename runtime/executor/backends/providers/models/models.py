"""Facts about providers' models: a dated table, `models.json`, and the lookup in it.

For models in the table at their own vendor, unsupported parameters are known, and are refused
before any request, with the program's line. An unknown model or server gets all that the program
says (`open` in the table). This module makes no requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from sgc.errors import UnsupportedParameter, UsageError
from sgc.runtime.executor.backends.providers.models.prices import Prices, prices_of

PREFILLS = ("continue", "trailing", "rewrite", "none")
CACHES = ("plan", "vendor", "off")
SELECTS = ("choice", "regex", "structured", "logit_bias", "echo", "check")


@dataclass(frozen=True, slots=True)
class Caching:
    """The rules of a provider's prompt cache, in its own tokens; its prices are in `Prices`.

    kind: automatic (nothing can be marked), marks (only marked prefixes are cached) or both (marked
    ones, else the provider itself marks near the prompt's end). min_tokens: of the shortest cached
    prefix; step: of automatic ones. breakpoints: the most that a request writes; look_back: how far
    before a mark an entry is found, in blocks for kind marks, else in marks. ttl: the lifetimes,
    the first by default. readable_after: when other requests can read an entry. key_rpm: requests
    per minute with one key and prefix before others go to another machine; 0: unknown.
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
        """Whether a request can mark what to cache."""
        return self.kind != "automatic"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a model accepts and does.

    api: chat, completions or messages; limit_name: the API's name of max_tokens; params: maps our
    names of the accepted sampling parameters to the API's; ranges: of their values; sends_neutral:
    parameters sent even if neutral, since a server may have other defaults; one_of: parameters of
    which only one is accepted. max_stops: None for any number; blank_stops: whether stop strings of
    white space are accepted; tells_stop: whether the reply says which stop string ended it. seed:
    whether seeds are accepted; own_seed: whether at least a program's own are. is_known: whether
    the model's behaviour is known; if not, replies are checked, and only what the program says is
    sent. structured: whether replies can follow a schema, with the keywords schema_words (None:
    all), with or without patterns, with or without all properties required. regex, choice, ebnf:
    paths of these fields in a request. prefill: how a begun assistant message is continued. select:
    the ways to take a choice, best first. reasoning: max_tokens include the model's reasoning.
    cache: who decides what is cached: the program's plan, the vendor's own rule, or nobody;
    cache_ttl: the lifetime, "" for the default. batch_price: of a request in a batch, as a share of
    its price at once. bytes_per_token, tokens_a_message: estimates for
    English text, and for what surrounds a message.
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
    own_seed: bool = False
    logit_bias: bool = False
    top_logprobs: int = 0
    is_known: bool = True
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
    batch_price: float = 1.0
    bytes_per_token: float = 4.0
    tokens_a_message: int = 4


@dataclass(frozen=True, slots=True)
class Choices:
    """A user's options for a model, which override the table; None leaves it to the table.

    like: another model whose entry is used; server: the kind of a compatible server.
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
    """Parses options of a model; raises UsageError for an unknown name or value."""
    known = {row.name for row in fields(Choices)}
    for name in given:
        if name not in known:
            raise UsageError(
                f"unknown option {name!r} of a model",
                hint=f"use one of: {', '.join(sorted(known))}",
            )
        if not isinstance(given[name], str):
            raise UsageError(f"the option {name} must be a text, found {given[name]!r}")
    choices = Choices(**given)
    _check_one_of("api", choices.api, ("chat", "completions"))
    _check_one_of("prefill", choices.prefill, PREFILLS)
    _check_one_of("select", choices.select, SELECTS)
    _check_one_of("stream", choices.stream, ("auto", "always"))
    _check_one_of("cache", choices.cache, CACHES)
    _check_one_of("server", choices.server, tuple(_table()["compatible"]["servers"]))
    return choices


def refusal(facts: Facts, what: str, hint: str = "") -> UnsupportedParameter:
    default = "leave it out, or run on a model that can; parameters are never dropped"
    return UnsupportedParameter(f"{facts.model} {what}", hint=hint or default)


def facts_for(
    provider: str, model: str, choices: Choices, owned_by: str = "", is_vendor: bool = True
) -> Facts:
    """The facts about a model of `openai`, `anthropic` or a `compatible` server.

    owned_by: as a compatible server reports it. is_vendor: requests go to the provider itself, not
    to another server with its API. Raises UsageError if the user's options do not fit the model.
    """
    rows = _rows(provider, model, choices, owned_by, is_vendor and provider != "compatible")
    facts = _facts(provider, model, rows)
    if model.startswith("ft:") and choices.like is None:
        facts = replace(facts, prices=None)  # tuned models cost more than their base
    if provider == "compatible":
        facts = replace(facts, batch_price=1.0)  # nobody knows what its batches cost
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


def model_names(provider: str) -> list[str]:
    """The names of the table's models, as far as they are told apart."""
    vendor = _table()["openai" if provider == "compatible" else provider]
    return [row["match"].rstrip("*-") for row in vendor["models"]]


@cache
def _table() -> Mapping[str, Any]:
    text = Path(__file__).with_name("models.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def _rows(
    provider: str, model: str, choices: Choices, owned_by: str, is_vendor: bool
) -> dict[str, Any]:
    """The table's fields for a model, with its `open` ones: see `_facts`.

    The entry of a known kind of server takes precedence over the model's name.
    """
    servers = _table()["compatible"]["servers"]
    kind = choices.server
    if kind is not None and (is_vendor or provider == "anthropic"):
        raise UsageError(f"server={kind} is for a server like OpenAI's, and {model} is on another")
    if kind is not None and choices.like is not None:
        raise UsageError(f"server={kind} and like={choices.like} exclude each other")
    if kind is None and provider == "compatible":
        kind = next((name for name, row in servers.items() if owned_by in row["owned_by"]), None)
    if kind is not None and choices.like is None:
        return _merged(_table()["compatible"]["default"], servers[kind])
    vendor = _table()["openai" if provider == "compatible" else provider]
    own = _entry(vendor, choices.like or model)
    if own is None and choices.like is not None:
        raise UsageError(
            f"like={choices.like}: the table has no such model",
            hint=f"use one of: {', '.join(row['match'].rstrip('*') for row in vendor['models'])}",
        )
    if own is None:
        is_named = is_vendor or provider == "anthropic"
        table = vendor if is_named else _table()["compatible"]
        return _merged(table["default"]) | {"open": table["open"]}
    found = _merged(vendor["default"], vendor["families"].get(own.get("is", ""), {}), own)
    is_known = is_vendor or choices.like is not None
    return found if is_known else found | {"open": vendor["open"]}


def _entry(table: Mapping[str, Any], model: str) -> Mapping[str, Any] | None:
    """A model's entry; for a fine-tuned model that of its base."""
    name = model.removeprefix("ft:").partition(":")[0] if model.startswith("ft:") else model
    return next((row for row in table["models"] if fnmatchcase(name, row["match"])), None)


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merges layers; later ones override fields, and the fields of caching one by one."""
    found = {name: value for layer in layers for name, value in layer.items()}
    caching = {name: v for layer in layers for name, v in layer.get("caching", {}).items()}
    return {**found, "caching": caching} if caching else found


_TABLE_ONLY = {"match", "is", "owned_by", "without_reasoning", "completions_select", "open"}


def _facts(provider: str, model: str, rows: Mapping[str, Any]) -> Facts:
    """The facts from a table's fields; those under `open` override the others."""
    rows = {**rows, **rows.get("open", {})}
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
    if facts.is_known:
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
