"""Draws from a `random.Random` that the program makes with a seed.

While the generator's state is known, Python draws, and the graph has the drawn values. If paths
meet whose generators have drawn different numbers, or a draw depends on a value known only at run
time, the program is traced anew: from the line that makes the generator on, its state is a value of
the graph, and each draw is code that returns the drawn value and the next state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from sgc.core.places import user_loc
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.tracing.kinds.generators import AbstractRandom, made
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.operators.lookups import one_type, picked
from sgc.tracing.values.abstract import (
    AbstractList,
    AbstractNumber,
    AbstractText,
    is_abstract,
)

MAX_SHUFFLED = 16  # items of a known list, each of which becomes a value; longer ones as a whole
_FLOATS = frozenset({
    "betavariate", "expovariate", "gammavariate", "gauss", "lognormvariate", "normalvariate",
    "paretovariate", "random", "uniform", "vonmisesvariate", "weibullvariate",
})  # fmt: skip
_INTS = frozenset({"getrandbits", "randint", "randrange"})
_SEEDS = (AbstractNumber, AbstractText)
_SEQUENCES = frozenset({list, tuple, str, range, AbstractList, AbstractText})


def generator(*seed: Any, **named: Any) -> Any:
    """`random.Random(seed)`."""
    session: Any = current_session()
    (given,) = (*seed, *named.values()) if len(seed) + len(named) == 1 else (None,)
    is_late = session is not None and str(user_loc() or "") in session.sites.drawn
    if isinstance(given, _SEEDS) or (is_late and type(given) in (str, int, float, bool)):
        return made(session, given)
    return Random(*seed, **named)


class Drawing:
    """A generator whose draws may depend on values known only at run time."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(_draw, self._rng, name)


def _draw(rng: Random, name: str, *args: Any, **named: Any) -> Any:
    how = _numbers if name in _FLOATS | _INTS else _DRAWS.get(name)
    if type(rng) is AbstractRandom:
        if how is None:
            return getattr(rng, name)(*args, **named)  # stops the trace
        return how(rng, name, *args, **named)
    session: Any = current_session()
    if how not in (None, _seed) and not session.events.is_seeded(rng):
        session.meet_surroundings("draws a random number")
    elif how is not None and _is_late(args, named):
        session.draw_late(rng)
    return getattr(rng, name)(*args, **named)


def _is_late(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether a draw depends on values known only at run time; the items to choose from do not
    matter."""
    given = (*args, *named.values())
    inside = [each for n, each in enumerate(given) if n and type(each) in (list, tuple)]
    return any(map(is_abstract, given)) or any(
        is_abstract(part) for each in inside for part in each
    )


def _numbers(rng: AbstractRandom, name: str, *args: Any, **named: Any) -> Any:
    given = [*args, *named.values()]
    params = [f"a{n}" for n in range(len(given))]
    passed = [*params[: len(args)]]
    passed += [f"{key}={each}" for key, each in zip(named, params[len(args) :], strict=True)]
    code = _code(f"rng.{name}({', '.join(passed)})", params)
    is_sure = not any(map(is_abstract, given))
    if is_sure:
        getattr(Random(0), name)(*args, **named)  # raises Python's own error
    return rng.drawn(code, given, types.FLOAT if name in _FLOATS else types.INT, is_sure)


def _code(drawn: str, params: list[str]) -> str:
    return f"def piece({', '.join(['rng', *params])}):\n    return [{drawn}, rng]"


def _choice(rng: AbstractRandom, name: str, seq: Any) -> Any:
    n = _length(seq)
    if n == 0 and not is_abstract(n):
        raise IndexError("Cannot choose from an empty sequence")
    code = _code("rng.choice(range(n))", ["n"])
    return picked(seq, rng.drawn(code, [n], types.INT, is_sure=not is_abstract(n)))


def _sample(rng: AbstractRandom, name: str, population: Any, k: Any, *, counts: Any = None) -> Any:
    if counts is not None:
        _refuse("takes a sample by counts")
    n = _length(population)
    if is_abstract(k):
        return _several(rng, population, k)
    is_sure = not is_abstract(n)
    if is_sure:
        Random(0).sample(range(n), k)  # raises Python's own error
    code = _code("rng.sample(range(n), k)", ["n", "k"])
    found = rng.drawn(code, [n, k], types.list_of(types.INT), is_sure)
    return [picked(population, found.sure_item(number)) for number in range(k)]


def _several(rng: AbstractRandom, population: Any, k: Any) -> Any:
    """A sample of a size known only at run time, of texts, numbers or bools."""
    is_list = isinstance(population, AbstractList)
    item = population.item_type if is_list else one_type(population)
    if item not in (types.TEXT, types.INT, types.FLOAT, types.BOOL):
        _refuse("takes a sample of a size known only at run time")
    assert item is not None
    code = _code("rng.sample(items, k)", ["items", "k"])
    return rng.drawn(code, [population, k], types.list_of(item), is_sure=False)


def _choices(
    rng: AbstractRandom,
    name: str,
    population: Any,
    weights: Any = None,
    *,
    cum_weights: Any = None,
    k: Any = 1,
) -> list[Any]:
    if is_abstract(k):
        _refuse("makes as many choices as is known only at run time")
    n, is_list = _length(population), type(population) is list
    numbers = "list(range(n))" if is_list or is_abstract(n) else "tuple(range(n))"
    drawn = f"rng.choices({numbers}, weights, cum_weights=cum_weights, k=k)"
    code = _code(drawn, ["n", "k", "weights", "cum_weights"])
    given = [n, k, weights, cum_weights]
    found = rng.drawn(code, given, types.list_of(types.INT), is_sure=False)
    return [picked(population, found.sure_item(number)) for number in range(k)]


def _shuffle(rng: AbstractRandom, name: str, x: Any) -> None:
    if type(x) is not list or one_type(x) is None or len(x) > MAX_SHUFFLED:
        _refuse("shuffles a list of other things than a few texts, numbers or bools")
    order = "[order := list(range(n)), rng.shuffle(order)][0]"
    found = rng.drawn(_code(order, ["n"]), [len(x)], types.list_of(types.INT), is_sure=True)
    before = [*x]
    x[:] = [picked(before, found.sure_item(number)) for number in range(len(x))]


def _seed(rng: AbstractRandom, name: str, a: Any) -> None:
    if not isinstance(a, (*_SEEDS, str, int, float)):
        _refuse("gets another seed")
    rng.becomes(made(rng.session, a).symbol)


_DRAWS: dict[str, Callable[..., Any]] = {
    "choice": _choice, "choices": _choices, "sample": _sample, "seed": _seed, "shuffle": _shuffle,
}  # fmt: skip


def _length(items: Any) -> Any:
    if type(items) not in _SEQUENCES:
        _refuse("draws from a value that is not a list")
    return KNOWING[len](items)


def _refuse(what: str) -> None:
    stop(
        f"a random.Random whose state is known only at run time {what}",
        hint="give it a list of texts, numbers or bools; or " + INTERPRET,
    )
