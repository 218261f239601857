"""A run, or the rows of a job, as a page draws them: requests, prompts, streams, times, money."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sgc.runtime.executor.interface.backend import sum_costs
from sgc.viewer.asked import Asked, Called, Span, generated_spans
from sgc.viewer.prompt_tree import Part, prompt_tree
from sgc.viewer.texts import cut, plain

MAX_REQUESTS = 50_000
MAX_CHARS = 32 << 20  # characters of all prompts' parts and replies
_MAX_PART = 20_000


@dataclass(slots=True)
class Collected:
    """At most MAX_REQUESTS requests and calls; n_left_out: how many others there are."""

    requests: list[Asked] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    n_left_out: int = 0

    def add(self, found: Iterable[Asked | Called], n_all: int) -> None:
        """n_all: the length of `found`; items that do not fit are not read."""
        before = len(self.requests) + len(self.calls)
        for each in islice(found, MAX_REQUESTS - before):
            if isinstance(each, Asked):
                self.requests.append(each)
            else:
                self.calls.append(each)
        self.n_left_out += n_all - (len(self.requests) + len(self.calls) - before)


def run_data(found: Collected, about: Mapping[str, Any]) -> dict[str, Any]:
    """about: facts of the whole run: its program, model, seed, options."""
    requests, spans = _with_spans(found.requests)
    starts = [each.start_s for each in requests] + [each.start_s for each in found.calls]
    begin_s = min(starts, default=0.0)
    tree = prompt_tree(requests)
    texts, settings = _Texts(), _Settings()
    shown = [
        _request(each, end, begin_s, texts, settings)
        for each, end in zip(requests, tree.ends, strict=True)
    ]
    return {
        "about": dict(about),
        "requests": shown,
        "settings": list(settings.numbers),
        "calls": [_call(each, begin_s) for each in found.calls],
        "parts": [
            _part(part, tree.parts[part.parent].depth, requests, spans, texts)
            for part in tree.parts
        ],
        "totals": _totals(requests),
        "left_out": found.n_left_out,
        "cut_texts": texts.n_cut,
    }


def _with_spans(requests: Sequence[Asked]) -> tuple[list[Asked], list[tuple[Span, ...]]]:
    by_row: dict[str, list[Asked]] = {}
    for each in requests:
        by_row.setdefault(each.row, []).append(each)
    pairs = [pair for row in by_row.values() for pair in generated_spans(row)]
    pairs.sort(key=lambda pair: pair[0].start_s)
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


class _Texts:
    """Cuts texts, and all that follow once the page holds enough of them."""

    def __init__(self) -> None:
        self._left = MAX_CHARS
        self.n_cut = 0

    def cut(self, text: str, most: int = _MAX_PART) -> str:
        most = max(100, min(most, self._left))
        self.n_cut += len(text) > most
        self._left = max(0, self._left - min(len(text), most))
        return cut(text, most)


def _request(
    asked: Asked, part: int, begin_s: float, texts: _Texts, settings: _Settings
) -> dict[str, Any]:
    """Fields that say nothing are left out: a page may hold 50,000 of these."""
    usage = asked.usage
    found = {
        "row": asked.row,
        "path": asked.path,
        "kind": asked.kind,
        "name": asked.name,
        "line": asked.line,
        "part": part,
        "text": None if asked.text is None else texts.cut(asked.text),
        "start": round(asked.start_s - begin_s, 6),
        "took": round(asked.end_s - asked.start_s, 6),
        "prefill": round(usage.prefill_s, 6),
        "decode": round(usage.decode_s, 6),
        "prompt": usage.prompt_tokens,
        "cached": usage.cached_tokens,
        "completion": usage.completion_tokens,
        "settings": settings.number(asked),
    }
    more = {
        "choices": [cut(choice, 200) for choice in asked.choices[:100]],
        "seed": str(asked.settings.get("seed", "")),
        "cost": usage.cost_usd,
        "finish": asked.finish,
        "from": _from(asked),
        "is_cut": asked.is_cut,
    }
    return found | {
        name: value for name, value in more.items() if value not in (None, "", [], False)
    }


class _Settings:
    """The parameters of requests without seeds, as JSON; most are the same."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, asked: Asked) -> int:
        own = {name: value for name, value in asked.settings.items() if name != "seed"}
        text = cut(json.dumps(own, default=repr), 2_000) if own else ""
        return self.numbers.setdefault(text, len(self.numbers))


def _from(asked: Asked) -> str:
    """The source of a reply that did not cost its tokens."""
    usage = asked.usage
    if usage.from_shared:
        return "an equal request"
    if usage.from_cache:
        return "the result cache"
    return "an earlier reply" if usage.from_ahead else ""


def _call(call: Called, begin_s: float) -> dict[str, Any]:
    return {
        "row": call.row,
        "path": call.path,
        "kind": "tool",
        "name": call.name,
        "line": call.line,
        "start": round(call.start_s - begin_s, 6),
        "took": round(call.end_s - call.start_s, 6),
        "arguments": plain(call.arguments),
        "value": plain(call.value),
        "error": cut(call.error, 2_000),
    }


def _part(
    part: Part, start: int, requests: Sequence[Asked], spans: Sequence[tuple[Span, ...]],
    texts: _Texts,
) -> dict[str, Any]:  # fmt: skip
    """A part of prompts; `model`: the places in its text that a model wrote."""
    if not part.depth:
        return {"parent": 0, "text": "", "requests": part.requests, "tokens": 0, "computed": 0}
    text = requests[part.sample].prompt[start : part.depth]
    found = {
        "parent": part.parent,
        "text": texts.cut(text),
        "requests": part.requests,
        "tokens": round(part.tokens, 1),
        "computed": round(part.computed, 1),
    }
    written = [
        [max(first, start) - start, min(last, part.depth) - start]
        for first, last in spans[part.sample]
        if first < part.depth and last > start
    ]
    if written and found["text"] == text:
        found["model"] = written
    return found


def _totals(requests: Sequence[Asked]) -> dict[str, Any]:
    spent = [each.usage for each in requests if each.is_spent]
    asked = [usage for usage in spent if not usage.from_ahead]
    return {
        "requests": len(asked),
        "not_asked": len(requests) - len(asked),
        "prompt": sum(usage.prompt_tokens for usage in spent),
        "cached": sum(usage.cached_tokens for usage in spent),
        "completion": sum(usage.completion_tokens for usage in spent),
        "cost": sum_costs(usage.cost_usd for usage in spent),
    }
