"""Upper bounds of what ops without requests return, from those of their operands.

Each op has a handler. Fork is here, though it may commit its prompt. Ops with requests are in
`asks.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sgc.ir.analysis.host_calls import shown_piece
from sgc.ir.graph import Lit, Node, Operand, Ref
from sgc.predict.bounds.cost import FREE
from sgc.predict.bounds.flow import Flow
from sgc.predict.bounds.lengths import Bound, attempted, computed, gathered, known
from sgc.predict.bounds.requests import Asking
from sgc.predict.bounds.states import Made, Stream, Value, anything, joined
from sgc.runtime.executor.interface.value_limits import MAX_TEXT
from sgc.runtime.executor.ops.handlers import as_text
from sgc.runtime.executor.run.options import RunOptions


@dataclass(frozen=True, slots=True)
class Terms:
    """What a bound is for. tool_tokens: the most tokens of a tool's result. is_for_any: for any
    arguments: the cost of a map over a list of unknown length is kept separate, and tokens count
    only for generations with a literal `max_tokens`.
    """

    asking: Asking
    options: RunOptions
    tool_tokens: float
    is_for_any: bool = False


class PlainNodes:
    """The bounds of one program's values, by name. The handler of an op NAME is the method
    `on_NAME`.
    """

    def __init__(self, terms: Terms, flow: Flow) -> None:
        self.values: dict[str, Value] = {}
        self._terms = terms
        self._asking = terms.asking
        self._flow = flow
        self._peaks: list[dict[str, Value]] = []

    @contextmanager
    def peaks(self) -> Iterator[None]:
        """Within the block values are set repeatedly; after it, a bound covers all set values."""
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
        """The bound of a value on a path that was not followed."""
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
        """Follows a node and stores the bounds of its results."""
        try:
            made = getattr(self, f"on_{node.op}", self._any)(node)
        except (ValueError, OverflowError):  # an invalid literal: the run ends here
            made = self.on_unset(node)
        for result, value in zip(node.results, made.values, strict=True):
            self.set(result.name, value)
        return made

    def _any(self, node: Node) -> Made:
        """The bounds for an op without a rule: any length."""
        why = f"{node.loc or node.op}: what `{node.op}` makes may be of any length"
        return Made(tuple(anything(result.type, why) for result in node.results))

    # -- streams --------------------------------------------------------------------------

    def on_stream(self, node: Node) -> Made:
        return Made((Stream(),))

    def on_const(self, node: Node) -> Made:
        return Made((self._stream(node).plus(known(node.text("text")).tokens),))

    def on_append(self, node: Node) -> Made:
        value = self._bound(node.get("value"))
        return Made((self._stream(node).plus(value.tokens, why=value.why),))

    def on_role_begin(self, node: Node) -> Made:
        chat, role = self._asking.capabilities.chat, node.text("role")
        n_bytes, n_messages = self._marks(role), 1
        if chat.default_system and not self._stream(node).n_messages:
            n_bytes += known(chat.default_system).tokens + self._marks("system")
            n_messages += 1
        return Made((self._stream(node).plus(n_bytes, n_messages),))

    def _marks(self, role: str) -> float:
        found = self._asking.capabilities.chat.roles.get(role)
        return 0.0 if found is None else known(found.prefix + found.suffix).tokens

    def on_role_end(self, node: Node) -> Made:
        return Made((self._stream(node),))

    on_cache = on_winner = on_role_end

    def on_prefetch(self, node: Node) -> Made:
        return Made()

    def on_fork(self, node: Node) -> Made:
        stream = self._stream(node)
        n_states = len(node.results)
        cost = FREE
        if n_states > 2 and stream.tokens:
            cost = replace(self._asking.commit(stream.asked()), why=stream.why)
        return Made((stream,) * n_states, cost)

    def on_open_fork(self, node: Node) -> Made:
        stream = self._stream(node)
        cost = FREE
        if stream.tokens:
            cost = replace(self._asking.commit(stream.asked()), why=stream.why)
        return Made((stream, stream), cost)

    def on_child(self, node: Node) -> Made:
        return Made((self._stream(node),) * 2)

    def on_image(self, node: Node) -> Made:
        frames = self._bound(node.get("frames")) if node.op == "video" else known(1)
        n_images = int(frames.known[0]) if frames.known is not None else 1
        token = known(self._asking.capabilities.chat.image_token).tokens
        return Made((self._stream(node).plus(token, n_images=max(n_images, 1)),))

    on_video = on_image

    def on_append_span(self, node: Node) -> Made:
        tokens = self._stream(node, "end").since(self._stream(node, "start"))
        return Made((self._stream(node).plus(tokens, why=self._stream(node, "end").why),))

    def on_span(self, node: Node) -> Made:
        end = self._stream(node, "end")
        return Made((Bound(end.since(self._stream(node, "start")), why=end.why),))

    def on_text_of(self, node: Node) -> Made:
        stream = self._stream(node)
        return Made((Bound(stream.tokens, why=stream.why),))

    def on_separate_reasoning(self, node: Node) -> Made:
        stream = self._stream(node)
        said = Bound(stream.since(self._stream(node, "start")), why=stream.why)
        return Made((stream, said, said))

    def on_share(self, node: Node) -> Made:
        end, value = self._stream(node, "end"), self._bound(node.get("value"))
        tokens = end.since(self._stream(node, "start"))
        return Made((self._stream(node).plus(tokens, why=end.why), value))

    def on_winner_value(self, node: Node) -> Made:
        return Made((self._bound(node.get("value")),))

    def on_winner_values(self, node: Node) -> Made:
        items = self._items(node, "items")
        most = max((item.tokens for item in items), default=0.0)
        why = next((item.why for item in items if item.why), "")
        return Made((gathered([Bound(most, why=why)] * len(items)),))

    def on_join_first(self, node: Node) -> Made:
        n = len(self._items(node, "entries"))
        return Made((Bound(8.0 * n, length=n),))

    def on_publish(self, node: Node) -> Made:
        stream, keys = self._stream(node), self._items(node, "keys")
        items = node.get("items")
        assert isinstance(items, tuple)
        names = [str(key.known[0]) for key in keys if key.known is not None]
        variables = {name: self.of(item) for name, item in zip(names, items, strict=True)}
        return Made((), variables=variables, text=Bound(stream.tokens, why=stream.why))

    # -- values ---------------------------------------------------------------------------

    def on_concat(self, node: Node) -> Made:
        parts = self._items(node, "parts")
        tokens = sum(part.tokens for part in parts)
        if all(part.known is not None for part in parts) and tokens <= MAX_TEXT:
            return Made((known("".join(as_text(p.known[0]) for p in parts if p.known)),))
        why = next((part.why for part in parts if part.why), "")
        return Made((Bound(tokens, why=why),))

    def on_format(self, node: Node) -> Made:
        args = [self._bound(node.get("value")), known(node.text("spec"))]
        return Made((computed("format", args, str(node.loc or "")),))

    def on_list(self, node: Node) -> Made:
        return Made((gathered(self._items(node, "items")),))

    def on_record(self, node: Node) -> Made:
        keys, items = self._items(node, "keys"), self._items(node, "items")
        if keys and all(item.known is not None for item in items):
            pairs = zip(keys, items, strict=True)
            return Made((known({k.known[0]: i.known[0] for k, i in pairs if k.known and i.known}),))
        found = gathered([*keys, *items])
        if not keys and found.known is not None:
            return Made((known(tuple(found.known[0])),))
        return Made((found if not keys else replace(found, items=None, known=None),))

    def on_compute(self, node: Node) -> Made:
        return Made((computed(node.text("fn"), self._items(node, "args"), str(node.loc or "")),))

    def on_attempt(self, node: Node) -> Made:
        return Made(attempted(node.text("fn"), self._items(node, "args")))

    def on_evaluate(self, node: Node) -> Made:
        where = str(node.loc or "a line unknown")
        why = f"{where}: what code computes may be of any length"
        return Made((Bound(math.inf, why=why),))

    def on_perform(self, node: Node) -> Made:
        return Made(self.on_evaluate(node).values * len(node.results))

    def on_future(self, node: Node) -> Made:
        return Made((Bound(),))

    def on_host(self, node: Node) -> Made:
        where = str(node.loc or "a line unknown")
        why = f"{where}: what {shown_piece(node)} gives may be of any length"
        return Made((Bound(math.inf, why=why),))

    def on_show(self, node: Node) -> Made:
        return Made((Bound(),))

    def on_unset(self, node: Node) -> Made:
        is_stream = [str(result.type) == "stream" for result in node.results]
        return Made(tuple(Stream() if each else Bound() for each in is_stream))

    def on_ended(self, node: Node) -> Made:
        return Made((self._bound(node.get("test")),))

    def on_media(self, node: Node) -> Made:
        return Made((Bound(),))

    def on_tool(self, node: Node) -> Made:
        where = str(node.loc or "a line unknown")
        tokens, why = self._terms.tool_tokens, ""
        if math.isinf(tokens):
            why = f"{where}: the result of the tool {node.text('name')!r} may be of any length"
        given = node.get("on_error")
        if isinstance(given, Lit) and isinstance(given.value, str):
            tokens = max(tokens, known(json.loads(given.value)).tokens)
        return Made((Bound(tokens, why=why),))

    def on_outcome(self, node: Node) -> Made:
        where = str(node.loc or "a line unknown")
        why = f"{where}: the error of a tool may be of any length"
        text = Bound(
            self._terms.tool_tokens, why=why if math.isinf(self._terms.tool_tokens) else ""
        )
        return Made((Bound(), text, text, text))
