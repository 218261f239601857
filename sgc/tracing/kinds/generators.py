"""Generators of random numbers that the program makes with a seed and whose state is known only at
run time: the state is a value of the graph, which each draw replaces by the next state.

Draws are in `overlays/drawing.py`; code that draws in another way stops the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NoReturn

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.graph import Lit, Ref
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import OBJECT, RANDOM


class AbstractRandom(Random):
    """A generator whose state is the value of `symbol`; each draw changes the symbol."""

    symbol: Symbol
    session: Any

    def __new__(cls, symbol: Symbol, session: Any) -> AbstractRandom:
        return super().__new__(cls)  # its own state is never used

    def __init__(self, symbol: Symbol, session: Any) -> None:
        self.symbol, self.session = symbol, session

    def drawn(self, code: str, args: Sequence[Any], type_: Type, is_sure: bool) -> Any:
        """The value that code draws. code: a function of the generator and of `args` that returns a
        list of the value and the generator; is_sure: whether the code cannot fail."""
        session = self.session
        if current_session() != session:
            _refuse("is used in a function that is mapped")
        (symbol,) = session.emit(
            "evaluate",
            [("v", types.list_of(OBJECT))],
            code=Lit(code),
            args=(Ref(self.symbol.name), *map(session.operand, args)),
            changed=(Lit(0),),
            is_several=Lit(True),
        )
        if not is_sure:
            session.raise_failed(symbol)
        whole = session.read(symbol)
        value = session.compute("item", whole, 0, type_=type_)
        self.becomes(session.compute("item", whole, 1, type_=OBJECT).symbol)
        return value

    def becomes(self, symbol: Symbol) -> None:
        """Gives the generator the state that a value of the graph has."""
        self.symbol = Symbol(symbol.name, RANDOM)

    # -- what Python's own methods, and libraries, would call ------------------------------

    def random(self) -> NoReturn:
        _refuse("is drawn from by code that is not the program's")

    def getrandbits(self, k: Any) -> NoReturn:
        _refuse("is drawn from by code that is not the program's")

    def seed(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("gets another seed")

    def getstate(self) -> NoReturn:
        _refuse("shows its state")

    def setstate(self, state: Any) -> NoReturn:
        _refuse("gets another state")

    def __repr__(self) -> NoReturn:
        _refuse("is shown")

    __str__ = __repr__


AbstractRandom.__name__ = "Random"  # as errors name it


def made(session: Any, seed: Any) -> AbstractRandom:
    """A new generator with a seed."""
    args = (session.operand(seed),)
    (symbol,) = session.emit("evaluate", [("v", RANDOM)], code=Lit(_MAKING), args=args)
    return AbstractRandom(symbol, session)


_MAKING = "from random import Random\n\ndef piece(seed):\n    return Random(seed)"


def _refuse(what: str) -> NoReturn:
    stop(
        f"a random.Random whose state is known only at run time {what}",
        hint="draw from it in the program itself; or " + INTERPRET,
    )
