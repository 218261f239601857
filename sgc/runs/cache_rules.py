"""Places cache marks in compiled programs for a provider's cache, by its rules and expected runs.

A run on a provider whose model has cache rules gets the program with marks
(`hints/place_caches.py`). For a batch, the number of runs that begin alike is known in advance.
Single runs are counted: the second within the lifetime of a cache entry is planned as one of
several. Other backends, runs at -O0 and programs that have marks get the program unchanged.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sgc.errors import UsageError
from sgc.ir.graph import Graph
from sgc.passes.base import Pass
from sgc.passes.hints.caching.rules import CacheRules, Expected
from sgc.passes.hints.place_caches import for_rules
from sgc.passes.pipeline import run_pass
from sgc.runtime.executor.interface.wrapping import Wrapping

if TYPE_CHECKING:
    from sgc.runtime.executor.backends.providers.models.models import Facts
    from sgc.runtime.executor.interface.backend import Backend

MAX_PLANS = 64  # kept for one backend
ROWS_SEEN = 4  # the least number of runs to plan for once a second one has come
MOST_ROWS = 1024
CHARS_A_TOKEN = 4
_VARIES = object()


def rules_of(facts: Facts) -> CacheRules | None:
    """The cache rules of a model for placing marks; None if marks gain nothing or no rules are
    known."""
    caching, prices = facts.caching, facts.prices
    is_asked = facts.cache == "plan" and facts.api != "completions"
    if caching is None or prices is None or not is_asked or prices.input <= 0:
        return None
    write = prices.cache_write_1h if facts.cache_ttl == "1h" else prices.cache_write_5m
    return CacheRules(
        write=write / prices.input if caching.explicit else 1.0,
        read=prices.cached / prices.input,
        min_tokens=caching.min_tokens,
        breakpoints=caching.breakpoints if caching.explicit else None,
        is_implicit=caching.kind == "both",
        n_in_one=facts.n,
        ttl=facts.cache_ttl,
    )


def passes_for(uri: str, rows: int = 1) -> tuple[Pass, ...]:
    """The passes for `anthropic:MODEL` or `openai:MODEL`, with options as in `parse_target`.

    Raises UsageError for anything else, and for a model whose cache cannot be planned for.
    """
    from sgc.runtime.executor.backends.providers.connect import facts_of

    facts = facts_of(uri)
    rules = rules_of(facts)
    if rules is None:
        raise UsageError(
            f"nothing is known of a prompt cache of {facts.model}, or it is turned off",
            hint="?like=MODEL names one that is alike",
        )
    return (for_rules(rules, Expected(rows)),)


@dataclass(slots=True)
class _Seen:
    """The runs of one graph. announced: runs of a batch that have not started yet."""

    graph: Graph
    n: int = 0
    announced: int = 0
    is_batch: bool = False
    last_s: float = 0.0
    values: dict[str, object] = field(default_factory=dict)
    chars: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)

    def note(self, arguments: Mapping[str, Any], now_s: float) -> None:
        self.n += 1
        self.last_s = now_s
        for name, value in arguments.items():
            held = _held(value)
            if self.values.setdefault(name, held) != held:
                self.values[name] = _VARIES
            texts = value if isinstance(value, (list, tuple)) else [value]
            n_chars = sum(len(text) for text in texts if isinstance(text, str))
            each = n_chars // max(len(texts), 1)
            self.chars[name] = self.chars.get(name, 0) + each
            self.lengths[name] = max(self.lengths.get(name, 0), len(texts))

    def expected(self, is_free: bool) -> Expected:
        """The expected runs, with sizes as powers of two, so that similar runs share a plan.

        is_free: a mark costs nothing, so even the first run is planned as one of several.
        """
        is_one = self.is_batch or (self.n == 1 and not is_free)
        rows = self.n if is_one else max(ROWS_SEEN, self.n)
        equal = frozenset[str]()
        if self.n > 1:
            equal = frozenset(name for name, held in self.values.items() if held is not _VARIES)
        tokens = {name: _rounded(n // self.n // CHARS_A_TOKEN) for name, n in self.chars.items()}
        lengths = {name: _rounded(n) for name, n in self.lengths.items()}
        return Expected(min(_rounded(rows), MOST_ROWS), equal, tokens, lengths)


class Plans:
    """The runs on one backend, and their programs with marks."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()  # rows are announced by the caller's thread
        self._seen: dict[int, _Seen] = {}
        self._made: dict[Hashable, tuple[Graph, Graph]] = {}

    def announce(self, graph: Graph, rows: list[Mapping[str, Any]]) -> None:
        """Records the runs of a batch that is about to start."""
        with self._lock:
            seen = self._seen[id(graph)] = _Seen(graph, is_batch=True, announced=len(rows))
            for arguments in rows:
                seen.note(arguments, self._now())
            self._forget()

    def marked(
        self, graph: Graph, arguments: Mapping[str, Any], rules: CacheRules, ttl_s: float
    ) -> Graph:
        """The program with marks for a run that starts now."""
        with self._lock:
            seen = self._seen.get(id(graph))
            is_old = seen is not None and not seen.announced and self._now() - seen.last_s > ttl_s
            if seen is None or is_old:
                seen = self._seen[id(graph)] = _Seen(graph)
            if seen.announced:
                seen.announced -= 1
                seen.last_s = self._now()
            else:
                seen.note(arguments, self._now())
            self._forget()
            return self._plan(graph, rules, seen.expected(rules.write <= 1))

    def _plan(self, graph: Graph, rules: CacheRules, expected: Expected) -> Graph:
        key = (id(graph), rules, repr(expected))
        found = self._made.get(key)
        if found is None:
            # The graph is kept with its plan, so that its id is not reused.
            found = self._made[key] = (graph, run_pass(for_rules(rules, expected), graph))
        return found[1]

    def _forget(self) -> None:
        for known in (self._seen, self._made):
            while len(known) > MAX_PLANS:
                del known[next(iter(known))]  # type: ignore[arg-type]


_plans: WeakKeyDictionary[object, Plans] = WeakKeyDictionary()
_lock = threading.Lock()


def plans_of(backend: object) -> Plans:
    with _lock:
        return _plans.setdefault(backend, Plans())


async def with_marks(
    graph: Graph, level: int, backend: Backend, arguments: Mapping[str, Any]
) -> Graph:
    """The program for a run on a backend. level: the one it was compiled at."""
    provider = provider_of(backend)
    if level < 1 or provider is None or has_marks(graph):
        return graph
    await backend.capabilities()  # finds out which model it is
    facts: Facts | None = provider.facts
    rules = None if facts is None else rules_of(facts)
    if facts is None or rules is None:
        return graph
    from sgc.runtime.executor.backends.providers.caches.cache_write_leader import seconds

    assert facts.caching is not None
    ttl_s = seconds(facts.cache_ttl or facts.caching.ttl[0])
    return plans_of(provider).marked(graph, arguments, rules, ttl_s)


def announce_rows(backend: Backend, rows: list[tuple[Graph, Mapping[str, Any]]]) -> None:
    """Records the rows of a batch that is about to run, perhaps of several programs."""
    provider = provider_of(backend)
    if provider is None:
        return
    by_graph: dict[int, tuple[Graph, list[Mapping[str, Any]]]] = {}
    for graph, arguments in rows:
        by_graph.setdefault(id(graph), (graph, []))[1].append(arguments)
    for graph, each in by_graph.values():
        plans_of(provider).announce(graph, each)


def provider_of(backend: Any) -> Any:
    """The provider's backend, without its wrappers; None for other backends."""
    while isinstance(backend, Wrapping):
        backend = backend.inner
    return backend if hasattr(backend, "facts") else None


def has_marks(graph: Graph) -> bool:
    return any(node.op == "cache" for node in graph.all_nodes())


def _held(value: Any) -> object:
    """A key that is the same for equal arguments, without keeping them."""
    if isinstance(value, (str, int, float, bool)):
        return type(value), hash(value)
    return getattr(value, "digest", None) or repr(value)[:4096]


def _rounded(n: int) -> int:
    """The power of two at or below; at least 1."""
    return 1 << max(n.bit_length() - 1, 0)
