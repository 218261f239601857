"""What each op returns and costs at most, from the bounds of its operands; one handler an op."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sgc.errors import UsageError
from sgc.ir.graph import Lit, Node, Operand, Ref
from sgc.ir.sampling import SAMPLING
from sgc.ir.text.printer import operand_text
from sgc.predict.bounds.cost import FREE, Cost, product
from sgc.predict.bounds.flow import Flow
from sgc.predict.bounds.lengths import Bound, attempted, computed, gathered, known
from sgc.predict.bounds.requests import Asking
from sgc.predict.bounds.states import Made, Result, Stream, Value, anything, joined
from sgc.runtime.executor.interface.backend import Sampling
from sgc.runtime.executor.interface.limits import MAX_TEXT
from sgc.runtime.executor.ops.handlers import as_text
from sgc.runtime.executor.run.options import RunOptions, decide_sampling

_SAMPLING = frozenset(row.name for row in SAMPLING)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a bound is for. tool_tokens: that a tool's result has at most. is_for_any: for any
    arguments: what a map over a list of unknown length costs is kept apart, and tokens are counted
    of generations with a literal `max_tokens` alone.
    """

    asking: Asking
    options: RunOptions
    tool_tokens: float
    is_for_any: bool = False


class Calls(Protocol):
    """Runs the programs that a program calls."""

    @property
    def is_rough(self) -> bool:
        """Whether there is no time left to follow each path by itself."""
        ...

    def name(self, number: int) -> str: ...

    def run(self, number: int, fixed: Mapping[str, Value], item: Value) -> Result: ...

    def for_any(self, number: int) -> Result:
        """Of a run with any arguments."""
        ...


class Nodes:
    """The values of one program, by name, as they are made."""

    def __init__(self, terms: Terms, flow: Flow, calls: Calls) -> None:
        self.values: dict[str, Value] = {}
        self._terms = terms
        self._asking = terms.asking
        self._options = terms.options
        self._flow = flow
        self._calls = calls
        self._peaks: list[dict[str, Value]] = []

    @contextmanager
    def peaks(self) -> Iterator[None]:
        """Within, values that are made again and again; afterwards they are any of these."""
        self._peaks.append({})
        try:
            yield
        finally:
            found = self._peaks.pop()
            for name, value in found.items():
                self.set(name, value)

    def set(self, name: str, value: Value) -> None:
        self.values[name] = value
        if self._peaks:
            before = self._peaks[-1].get(name)
            self._peaks[-1][name] = value if before is None else joined(before, value)

    def of(self, operand: Operand) -> Value:
        if isinstance(operand, Ref):
            value = self.values.get(operand.name)
            return self.anything(operand.name) if value is None else value
        if isinstance(operand, Lit):
            return known(operand.value)
        return gathered([self._bound(item) for item in operand])

    def anything(self, name: str) -> Value:
        """A value of a path that is not followed by itself."""
        found = self._flow.definitions[name]
        where = found.place.node.loc if found.place.node is not None else None
        return anything(found.value.type, f"{where or name}: it may be of any length")

    def _bound(self, operand: Operand) -> Bound:
        value = self.of(operand)
        if isinstance(value, Stream):
            return Bound(value.tokens, why=value.why)
        return value

    def _stream(self, node: Node, name: str = "stream") -> Stream:
        value = self.of(node.get(name))
        assert isinstance(value, Stream), (node.op, name)
        return value

    def _items(self, node: Node, name: str) -> list[Bound]:
        operand = node.get(name)
        return [self._bound(item) for item in operand] if isinstance(operand, tuple) else []

    def run(self, node: Node) -> Made:
        """Follows a node and keeps its results."""
        handler = _HANDLERS.get(node.op)
        made = handler(self, node) if handler is not None else self._any(node)
        for result, value in zip(node.results, made.values, strict=True):
            self.set(result.name, value)
        return made

    def _any(self, node: Node) -> Made:
        """An op that is not looked into: its results are no longer than its operands together."""
        operands = [self._bound(operand) for _, operand in node.fields]
        total = sum(operand.tokens for operand in operands)
        why = next((operand.why for operand in operands if operand.why), "")
        streams = [v for _, o in node.fields if isinstance(v := self.of(o), Stream)]
        values: list[Value] = []
        for result in node.results:
            if str(result.type) == "stream" and streams:
                values.append(replace(streams[0], tokens=total, prev=None, added=0.0, why=why))
            else:
                values.append(Bound(total, why=why))
        return Made(tuple(values))

    # -- streams --------------------------------------------------------------------------

    def _begin(self, node: Node) -> Made:
        return Made((Stream(),))

    def _const(self, node: Node) -> Made:
        return Made((self._stream(node).plus(known(node.text("text")).tokens),))

    def _append(self, node: Node) -> Made:
        value = self._bound(node.get("value"))
        return Made((self._stream(node).plus(value.tokens, why=value.why),))

    def _role_begin(self, node: Node) -> Made:
        chat, role = self._asking.capabilities.chat, node.text("role")
        n_bytes, n_messages = self._marks(role), 1
        if chat.default_system and not self._stream(node).n_messages:
            n_bytes += known(chat.default_system).tokens + self._marks("system")
            n_messages += 1
        return Made((self._stream(node).plus(n_bytes, n_messages),))

    def _marks(self, role: str) -> float:
        found = self._asking.capabilities.chat.roles.get(role)
        return 0.0 if found is None else known(found.prefix + found.suffix).tokens

    def _same(self, node: Node) -> Made:
        return Made((self._stream(node),))

    def _fork(self, node: Node) -> Made:
        stream = self._stream(node)
        n_states = len(node.results)
        cost = FREE
        if n_states > 2 and stream.tokens:
            cost = replace(self._asking.commit(stream.asked()), why=stream.why)
        return Made((stream,) * n_states, cost)

    def _image(self, node: Node) -> Made:
        frames = self._bound(node.get("frames")) if node.op == "video" else known(1)
        n_images = int(frames.known[0]) if frames.known is not None else 1
        token = known(self._asking.capabilities.chat.image_token).tokens
        return Made((self._stream(node).plus(token, n_images=max(n_images, 1)),))

    def _append_span(self, node: Node) -> Made:
        tokens = self._stream(node, "end").since(self._stream(node, "start"))
        return Made((self._stream(node).plus(tokens, why=self._stream(node, "end").why),))

    def _span(self, node: Node) -> Made:
        end = self._stream(node, "end")
        return Made((Bound(end.since(self._stream(node, "start")), why=end.why),))

    def _text_of(self, node: Node) -> Made:
        stream = self._stream(node)
        return Made((Bound(stream.tokens, why=stream.why),))

    def _separate(self, node: Node) -> Made:
        stream = self._stream(node)
        said = Bound(stream.since(self._stream(node, "start")), why=stream.why)
        return Made((stream, said, said))

    def _share(self, node: Node) -> Made:
        end, value = self._stream(node, "end"), self._bound(node.get("value"))
        tokens = end.since(self._stream(node, "start"))
        return Made((self._stream(node).plus(tokens, why=end.why), value))

    def _winner_value(self, node: Node) -> Made:
        return Made((self._bound(node.get("value")),))

    def _winner_values(self, node: Node) -> Made:
        items = self._items(node, "items")
        most = max((item.tokens for item in items), default=0.0)
        why = next((item.why for item in items if item.why), "")
        return Made((gathered([Bound(most, why=why)] * len(items)),))

    def _first(self, node: Node) -> Made:
        n = len(self._items(node, "entries"))
        return Made((Bound(8.0 * n, length=n),))

    def _publish(self, node: Node) -> Made:
        stream, keys = self._stream(node), self._items(node, "keys")
        items = node.get("items")
        assert isinstance(items, tuple)
        names = [str(key.known[0]) for key in keys if key.known is not None]
        variables = {name: self.of(item) for name, item in zip(names, items, strict=True)}
        return Made((), variables=variables, text=Bound(stream.tokens, why=stream.why))

    # -- values ---------------------------------------------------------------------------

    def _concat(self, node: Node) -> Made:
        parts = self._items(node, "parts")
        tokens = sum(part.tokens for part in parts)
        if all(part.known is not None for part in parts) and tokens <= MAX_TEXT:
            return Made((known("".join(as_text(p.known[0]) for p in parts if p.known)),))
        why = next((part.why for part in parts if part.why), "")
        return Made((Bound(tokens, why=why),))

    def _format(self, node: Node) -> Made:
        args = [self._bound(node.get("value")), known(node.text("spec"))]
        return Made((computed("format", args, str(node.loc or "")),))

    def _list(self, node: Node) -> Made:
        return Made((gathered(self._items(node, "items")),))

    def _record(self, node: Node) -> Made:
        keys, items = self._items(node, "keys"), self._items(node, "items")
        if keys and all(item.known is not None for item in items):
            pairs = zip(keys, items, strict=True)
            return Made((known({k.known[0]: i.known[0] for k, i in pairs if k.known and i.known}),))
        found = gathered([*keys, *items])
        if not keys and found.known is not None:
            return Made((known(tuple(found.known[0])),))
        return Made((found if not keys else replace(found, items=None, known=None),))

    def _compute(self, node: Node) -> Made:
        return Made((computed(node.text("fn"), self._items(node, "args"), str(node.loc or "")),))

    def _attempt(self, node: Node) -> Made:
        return Made(attempted(node.text("fn"), self._items(node, "args")))

    def _unset(self, node: Node) -> Made:
        is_stream = str(node.results[0].type) == "stream"
        return Made((Stream() if is_stream else Bound(),))

    def _ended(self, node: Node) -> Made:
        return Made((self._bound(node.get("test")),))

    def _media(self, node: Node) -> Made:
        return Made((Bound(),))

    def _tool(self, node: Node) -> Made:
        where = str(node.loc or "a line unknown")
        tokens, why = self._terms.tool_tokens, ""
        if math.isinf(tokens):
            why = f"{where}: what the tool {node.text('name')!r} gives may be of any length"
        given = node.get("on_error")
        if isinstance(given, Lit) and isinstance(given.value, str):
            tokens = max(tokens, known(json.loads(given.value)).tokens)
        return Made((Bound(tokens, why=why),))

    def _outcome(self, node: Node) -> Made:
        where = str(node.loc or "a line unknown")
        why = f"{where}: what the error of a tool says may be of any length"
        text = Bound(
            self._terms.tool_tokens, why=why if math.isinf(self._terms.tool_tokens) else ""
        )
        return Made((Bound(), text, text, text))

    # -- asking ---------------------------------------------------------------------------

    def _gen(self, node: Node) -> Made:
        stream = self._stream(node)
        try:
            n, sampling, ahead = self._decided(node)
        except UsageError:
            if not (self._calls.is_rough or self._terms.is_for_any):
                raise
            why = f"{node.loc or 'a line unknown'}: how much is generated is not known"
            value = Bound(math.inf, length=math.inf, why=why)
            return Made((stream.plus(math.inf, why=why), value), Cost.unbounded(why))
        cost = self._asking.generate(stream.asked(), sampling, n, ahead)
        kept = max((known(stop).tokens for stop in sampling.stop), default=0.0)
        is_kept = self.of(node.get("keep_stop")) not in (known(None), known(False))
        tokens = sampling.max_tokens + (kept if is_kept else 0.0)
        value = Bound(float(tokens))
        if n > 1 or node.op == "gen_n":
            value = gathered([value] * n)
        return Made(
            (stream.plus(tokens, why=value.why), value), replace(cost, why=cost.why or stream.why)
        )

    def _decided(self, node: Node) -> tuple[int, Sampling, int]:
        """How many are generated, how, and how many tokens ahead of their use. Raises UsageError
        where only a run can tell.
        """
        if node.op == "gen_n":
            n = int(self._known(node, "n"))
        else:
            n = 1 if self.of(node.get("single")) == known(True) else self._options.n
        if self._terms.is_for_any:
            given = node.get("max_tokens")
            limit = given.value if isinstance(given, Lit) else None
            return n, Sampling(max_tokens=limit if isinstance(limit, int) else 0), 0
        asked = dict[str, Any]()
        for name in (name for name, _ in node.fields if name in _SAMPLING):
            value = self._known(node, name)
            asked[name] = tuple(value) if isinstance(node.get(name), tuple) else value
        capabilities = self._asking.capabilities
        sampling = decide_sampling(asked, self._options, capabilities.chat.stop)
        is_ahead = node.op == "gen" and capabilities.speculates
        return n, sampling, self._known(node, "ahead") if is_ahead else 0

    def _known(self, node: Node, name: str) -> Any:
        """A parameter of a generation; raises UsageError for one that only a run can tell."""
        value = self._bound(node.get(name))
        if value.known is None:
            raise UsageError(
                f"{name} is decided by what is generated, so that nothing can be said of its cost",
                where=str(node.loc or ""),
                hint="take it from an argument or a constant",
            )
        return value.known[0]

    def _select(self, node: Node) -> Made:
        stream, choices = self._stream(node), self._items(node, "choices")
        method = self._bound(node.get("method")).known
        unconditional = method is not None and "unconditional" in str(method[0])
        cost = self._asking.select(stream.asked(), choices, unconditional)
        tokens = max(choice.tokens for choice in choices)
        why = next((choice.why for choice in choices if choice.why), "")
        stream = stream.plus(tokens, why=why)
        return Made((stream, Bound(tokens, why=why)), replace(cost, why=cost.why or stream.why))

    def _map(self, node: Node) -> Made:
        names = [str(each.known[0]) for each in self._items(node, "keys") if each.known]
        fixed = dict(zip(names, self._items(node, "args"), strict=True))
        number, place = int(self._known(node, "program")), self._flow.maps[id(node)]
        items = self._bound(node.get("items"))
        runs = list(self._runs(number, fixed, items))
        cost, n_items = FREE, sum(n for _, n in runs)
        why = f"{node.loc or 'a line unknown'}: the list may be of any length"
        why = why if math.isinf(n_items) else ""
        is_apart = self._terms.is_for_any and items.known is None and items.items is None
        for result, n in runs:
            if is_apart:
                text = operand_text(node.get("items"))
                cost = cost.plus(result.cost.for_each(place, self._calls.name(number), text))
            else:
                cost = cost.plus(result.cost.of_map(place).times(n))
        return Made(tuple(self._lists(node, items, runs, why)), replace(cost, why=cost.why or why))

    def _runs(
        self, number: int, fixed: Mapping[str, Value], items: Bound
    ) -> Iterator[tuple[Result, float]]:
        """The runs of a map, each with how often it is made."""
        if items.known is None and items.items is None:
            one = Bound(items.tokens, why=items.why)
            yield self._calls.run(number, fixed, one), items.n_items
            return
        each = _each(items)
        for place, item in enumerate(each):
            if self._calls.is_rough:
                yield self._calls.for_any(number), float(len(each) - place)
                return
            yield self._calls.run(number, fixed, item), 1.0

    def _lists(
        self, node: Node, items: Bound, runs: Sequence[tuple[Result, float]], why: str
    ) -> Iterator[Value]:
        wanted: list[list[Value]] = [
            [result.variables.get(str(name.known[0]), Bound()) for result, _ in runs]
            for name in self._items(node, "names")
            if name.known is not None
        ]
        if node.get("returns") == Lit(True):
            wanted.append([result.returned for result, _ in runs])
        if node.get("texts") == Lit(True):
            wanted.append([result.text for result, _ in runs])
        times = [n for _, n in runs]
        for values in wanted:
            bounds = [v if isinstance(v, Bound) else Bound(v.tokens, why=v.why) for v in values]
            if items.known is not None or items.items is not None:
                each = ([bound] * int(n) for bound, n in zip(bounds, times, strict=True))
                yield gathered([bound for same in each for bound in same])
            else:
                whole = (product(b.tokens + 4, n) for b, n in zip(bounds, times, strict=True))
                yield Bound(sum(whole) + 2, length=sum(times), why=why)


def _each(items: Bound) -> Sequence[Bound]:
    """The items of a list that is known, or of which each item has a bound of its own."""
    if items.known is None:
        return items.items or ()
    value = items.known[0]
    return [known(item) for item in value] if isinstance(value, (list, tuple)) else []


Handler = Callable[[Nodes, Node], Made]
_HANDLERS: dict[str, Handler] = {
    "stream": Nodes._begin,
    "const": Nodes._const,
    "append": Nodes._append,
    "role_begin": Nodes._role_begin,
    "role_end": Nodes._same,
    "cache": Nodes._same,
    "prefetch": lambda nodes, node: Made(),
    "fork": Nodes._fork,
    "image": Nodes._image,
    "video": Nodes._image,
    "append_span": Nodes._append_span,
    "span": Nodes._span,
    "text_of": Nodes._text_of,
    "separate_reasoning": Nodes._separate,
    "share": Nodes._share,
    "winner": Nodes._same,
    "winner_value": Nodes._winner_value,
    "winner_values": Nodes._winner_values,
    "join_first": Nodes._first,
    "ended": Nodes._ended,
    "publish": Nodes._publish,
    "concat": Nodes._concat,
    "format": Nodes._format,
    "list": Nodes._list,
    "record": Nodes._record,
    "compute": Nodes._compute,
    "attempt": Nodes._attempt,
    "unset": Nodes._unset,
    "media": Nodes._media,
    "tool": Nodes._tool,
    "outcome": Nodes._outcome,
    "gen": Nodes._gen,
    "gen_n": Nodes._gen,
    "select": Nodes._select,
    "map": Nodes._map,
}
