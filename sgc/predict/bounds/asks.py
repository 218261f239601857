"""Upper bounds of what generations, choices and maps return and cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sgc.errors import UsageError
from sgc.ir.graph import Lit, Node
from sgc.ir.sampling import SAMPLING
from sgc.ir.text.printer import operand_text
from sgc.predict.bounds.cost import FREE, Cost, product
from sgc.predict.bounds.flow import Flow
from sgc.predict.bounds.lengths import Bound, gathered, known
from sgc.predict.bounds.nodes import PlainNodes, Terms
from sgc.predict.bounds.states import Made, Result, Value
from sgc.runtime.executor.interface.backend import Sampling
from sgc.runtime.executor.run.options import check_parameter, decide_sampling

_SAMPLING = frozenset(row.name for row in SAMPLING)


class Calls(Protocol):
    """Runs the programs that a program calls."""

    @property
    def is_budget_spent(self) -> bool:
        """Whether the budget for following paths separately is spent."""
        ...

    def name(self, number: int) -> str: ...

    def run(self, number: int, fixed: Mapping[str, Value], item: Value) -> Result: ...

    def for_any(self, number: int) -> Result:
        """The result of a run with any arguments."""
        ...


class Nodes(PlainNodes):
    """The bounds of one program's values, by name; adds the ops with requests."""

    def __init__(self, terms: Terms, flow: Flow, calls: Calls) -> None:
        super().__init__(terms, flow)
        self._options = terms.options
        self._calls = calls

    def on_gen(self, node: Node) -> Made:
        stream = self._stream(node)
        try:
            n, sampling, ahead = self._decided(node)
        except UsageError:
            if not (self._calls.is_budget_spent or self._terms.is_for_any):
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

    on_gen_n = on_gen

    def _decided(self, node: Node) -> tuple[int, Sampling, int]:
        """A generation's n, sampling, and tokens generated ahead of their use. Raises UsageError if
        they are decided at run time.
        """
        if node.op == "gen_n":
            n = self._known(node, "n")
            check_parameter("n", n)
        else:
            n = 1 if self.of(node.get("single")) == known(True) else self._options.n
        if self._terms.is_for_any:
            given = node.get("max_tokens")
            limit = given.value if isinstance(given, Lit) else None
            return n, Sampling(max_tokens=max(limit, 0) if isinstance(limit, int) else 0), 0
        asked = dict[str, Any]()
        for name in (name for name, _ in node.fields if name in _SAMPLING):
            value = self._known(node, name)
            asked[name] = tuple(value) if isinstance(node.get(name), tuple) else value
        capabilities = self._asking.capabilities
        sampling = decide_sampling(asked, self._options, capabilities.chat.stop)
        is_ahead = node.op == "gen" and capabilities.speculates
        return n, sampling, self._known(node, "ahead") if is_ahead else 0

    def _known(self, node: Node, name: str) -> Any:
        """Returns a parameter of a generation; raises UsageError if it is decided at run time."""
        value = self._bound(node.get(name))
        if value.known is None:
            raise UsageError(
                f"{name} is decided by a generated text, so that its cost cannot be predicted",
                where=str(node.loc or ""),
                hint="take it from an argument or a constant",
            )
        return value.known[0]

    def on_select(self, node: Node) -> Made:
        stream, choices = self._stream(node), self._choices(node)
        method = self._bound(node.get("method")).known
        unconditional = method is not None and "unconditional" in str(method[0])
        cost = self._asking.select(stream.asked(), choices, unconditional)
        tokens = max(choice.tokens for choice in choices)
        why = next((choice.why for choice in choices if choice.why), "")
        stream = stream.plus(tokens, why=why)
        return Made((stream, Bound(tokens, why=why)), replace(cost, why=cost.why or stream.why))

    def _choices(self, node: Node) -> Sequence[Bound]:
        if node.get("among") in (None, Lit(None)):
            return self._items(node, "choices")
        among = self._bound(node.get("among"))
        if among.known is not None:
            if not isinstance(among.known[0], (list, tuple)):
                raise ValueError("no list of choices")  # the run ends here
            return [self._bound(Lit(each)) for each in among.known[0]]
        if among.items is not None:
            return among.items
        why = among.why or f"{node.loc or 'a line unknown'}: the choices may be of any number"
        return [Bound(math.inf, why=why)]

    def on_map(self, node: Node) -> Made:
        names = [str(each.known[0]) for each in self._items(node, "keys") if each.known]
        fixed = dict(zip(names, self._items(node, "args"), strict=True))
        number, place = int(self._known(node, "program")), self._flow.maps[id(node)]
        items = self._bound(node.get("items"))
        runs = list(self._runs(number, fixed, items))
        cost, n_items = FREE, sum(n for _, n in runs)
        why = f"{node.loc or 'a line unknown'}: the list may be of any length"
        why = why if math.isinf(n_items) else ""
        is_separate = self._terms.is_for_any and items.known is None and items.items is None
        for result, n in runs:
            if is_separate:
                text = operand_text(node.get("items"))
                cost = cost.plus(result.cost.per_item(place, self._calls.name(number), text))
            else:
                cost = cost.plus(result.cost.of_map(place).times(n))
        return Made(tuple(self._lists(node, items, runs, why)), replace(cost, why=cost.why or why))

    def _runs(
        self, number: int, fixed: Mapping[str, Value], items: Bound
    ) -> Iterator[tuple[Result, float]]:
        """The runs of a map, each with the number of times it is made."""
        if items.known is None and items.items is None:
            one = Bound(items.tokens, why=items.why)
            yield self._calls.run(number, fixed, one), items.n_items
            return
        each = _each(items)
        for place, item in enumerate(each):
            if self._calls.is_budget_spent:
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
    """The items of a known list, or of one whose items have separate bounds."""
    if items.known is None:
        return items.items or ()
    value = items.known[0]
    return [known(item) for item in value] if isinstance(value, (list, tuple)) else []
