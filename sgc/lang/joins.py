"""Joins that take the first children to end and meet a predicate, and cut off the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sgc.core.places import here
from sgc.core.session import Session, Stream
from sgc.core.symbols import Symbol
from sgc.errors import UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Operand, Ref
from sgc.lang.append import shown

When = Callable[[Any], Any]


class Gathered:
    """A list of values that `join` gathered; some may not be computed yet."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def ungathered(value: Any) -> Any:
    return [ungathered(item) for item in value.items] if isinstance(value, Gathered) else value


def checked_k(k: Any, n: int) -> int:
    """`k`, the number of children that a join waits for; raises UsageError if it is invalid."""
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= n:
        raise UsageError(
            f"join takes k from 1 to {n}, the number of children, found {shown(k)}", where=here()
        )
    return k


def choose(states: Sequence[Stream], k: int, when: When | None) -> Symbol:
    """The indices of the first k children that have ended and meet a predicate."""
    session = states[0].session
    tests: list[Operand] = [Lit(True)] * len(states)
    if when is not None:
        tests = session.join_tests(states, when)
    entries = tuple(_entry(state, test) for state, test in zip(states, tests, strict=True))
    results = [("winners", types.list_of(types.INT))]
    (winners,) = session.emit("join_first", results, entries=entries, k=Lit(k))
    if when is not None:
        session.run_join_tests(states, when, tests, winners)
    return winners


def _entry(state: Stream, test: Operand) -> Ref:
    stream = Ref(state.symbol.name)
    (entry,) = state.session.emit("ended", [("ended", types.BOOL)], stream=stream, test=test)
    return Ref(entry.name)


def tested(state: Stream, when: When) -> Any:
    """The predicate's result for a child; raises UsageError if it appends to the child."""
    before = state.symbol
    value = when(state)
    if state.symbol is not before:
        raise UsageError("the predicate of a join appends to the child", where=here())
    return value


def refuse_test() -> NoReturn:
    raise UsageError(
        "the predicate of a join returns something other than True or False",
        where=here(),
        hint='compare, as in when=lambda f: f["x"] == "yes"',
    )


def winners_values(
    session: Session, winners: Symbol, own: list[dict[str | None, Any]], name: str | None
) -> Symbol:
    """The list of the winners' values of a variable."""
    found = [(n, ungathered(values[name])) for n, values in enumerate(own) if name in values]
    items = [session.operand(value) for _, value in found]
    owners = tuple(Lit(n) for n, _ in found)
    kinds = {session.type_of(item) for item in items}
    type_ = types.list_of(kinds.pop() if len(kinds) == 1 else types.JSON)
    fields: dict[str, Operand] = {"owners": owners, "items": tuple(items)}
    ref = Ref(winners.name)
    return session.emit("winner_values", [(name or "v", type_)], winners=ref, **fields)[0]


def take_winners(states: Sequence[Stream], winners: Symbol) -> None:
    """Emits which children go on and which are cut off, with the names that they have set."""
    for index, state in enumerate(states):
        fields: dict[str, Operand] = {"winners": Ref(winners.name), "index": Lit(index)}
        streams = {"stream": Ref(state.symbol.name), "start": Ref(state.start.name)}
        (state.symbol,) = state.session.emit("winner", [("s", types.STREAM)], **streams, **fields)
        for name, value in state.own_values().items():
            state.set_derived(name, _of_winner(state.session, name, value, fields))


def _of_winner(session: Session, name: str | None, value: Any, fields: dict[str, Operand]) -> Any:
    if isinstance(value, Gathered):
        return Gathered([_of_winner(session, name, item, fields) for item in value.items])
    operand = session.operand(value)
    results = [(name or "v", session.type_of(operand))]
    return session.emit("winner_value", results, value=operand, **fields)[0]
