"""What is known of providers' models: a dated table, `models.json`, and how an entry is found.

Data only. What a model refuses is known of models of the table at their vendor's, and is refused
here, with the program's line, before anything is asked. A model or a server that nobody knows gets
what the program says (`open` in the table). Nothing here asks anybody.
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
from sgc.runtime.executor.backends.providers.models.prices import Prices, prices_of

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
    tells_stop: it says which one ended a text. seed: it takes seeds; own_seed: at least those that
    a program gives itself. is_known: what it does is known; else what comes back is looked at, and
    nothing is asked for that a program does not say. structured: replies that keep to a schema, of
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


def facts_for(
    provider: str, model: str, choices: Choices, owned_by: str = "", is_vendor: bool = True
) -> Facts:
    """What is known of a model of `openai`, `anthropic` or a `compatible` server.

    owned_by: who serves it, as a compatible server says. is_vendor: the provider itself is asked,
    and not a server that stands in for it. Raises UsageError where the user's choices do not fit
    the model.
    """
    rows = _rows(provider, model, choices, owned_by, is_vendor and provider != "compatible")
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


def _rows(
    provider: str, model: str, choices: Choices, owned_by: str, is_vendor: bool
) -> dict[str, Any]:
    """The table's fields for a model, and what lies `open`: see `_facts`.

    What a server that is known can do counts more than what a model is called.
    """
    servers = _table()["compatible"]["servers"]
    kind = choices.server
    if kind is not None and (is_vendor or provider == "anthropic"):
        raise UsageError(f"server={kind} is for a server like OpenAI's, and {model} is on another")
    if kind is not None and choices.like is not None:
        raise UsageError(f"server={kind} and like={choices.like} each say all; leave one out")
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
    """A model's; of a tuned one that of its base."""
    name = model.removeprefix("ft:").partition(":")[0] if model.startswith("ft:") else model
    return next((row for row in table["models"] if fnmatchcase(name, row["match"])), None)


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the later layers count; of caching, each by itself."""
    found = {name: value for layer in layers for name, value in layer.items()}
    caching = {name: v for layer in layers for name, v in layer.get("caching", {}).items()}
    return {**found, "caching": caching} if caching else found


_TABLE_ONLY = {"match", "is", "owned_by", "without_reasoning", "completions_select", "open"}


def _facts(provider: str, model: str, rows: Mapping[str, Any]) -> Facts:
    """What lies open of the rows is laid over them."""
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
