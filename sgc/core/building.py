"""Builds a program's nodes from Python values, each at the user's line.

The session decides what a node is for and when it runs (`core/session.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.places import user_loc
from sgc.core.symbols import Namer, Symbol
from sgc.errors import UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Loc, Node, Operand, Ref, Value, make_node
from sgc.ir.types import Type


class OneText(tuple[Operand, ...]):
    """A field of several values that the program gave as one text; backends written for SGLang
    are passed one text again."""


class Building(ABC):
    """Makes the nodes of a program, in order."""

    is_tracing = False  # False: nodes run as they are built

    def __init__(self, program: str) -> None:
        self.program = program
        self.namer = Namer()
        self.is_over = False
        self._fixed_loc: Loc | None = None

    @abstractmethod
    def take(self, node: Node) -> None:
        """Adds a node to the program."""

    @abstractmethod
    def scalar(self, value: Any) -> Operand:
        """The operand for a single Python value."""

    def emit(self, op: str, results: list[tuple[str, Type]], **fields: Operand) -> list[Symbol]:
        """Builds a node placed at the user's line and returns symbols for its results."""
        if self.is_over:
            raise UsageError(
                f"the run of {self.program} is over; its streams can be read but not extended",
                where=str(user_loc() or ""),
            )
        symbols = [Symbol(self.namer.fresh(hint), type_) for hint, type_ in results]
        values = tuple(Value(symbol.name, symbol.type) for symbol in symbols)
        self.take(make_node(op, values, self._fixed_loc or user_loc(), **fields))
        return symbols

    def span(self, start: Symbol, end: Symbol) -> Symbol:
        """The text that was appended between two states of a stream."""
        ends = {"start": Ref(start.name), "end": Ref(end.name)}
        (symbol,) = self.emit("span", [("span", types.TEXT)], **ends)
        return symbol

    def operand(self, value: Any) -> Operand:
        """The operand for a Python value; sequences become lists, mappings records."""
        if issubclass(type(value), str):  # an abstract text answers `isinstance` by Python code
            return self.scalar(value)
        if isinstance(value, Symbol):
            return Ref(value.name)
        if isinstance(value, list):
            return self._gather("list", [], value)
        if isinstance(value, tuple):
            return self._gather("record", [], value)
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            if any(map(has_marker, value)):
                raise UsageError(
                    "a dict's key is a value known only at run time",
                    where=str(user_loc() or ""),
                )
            return self._gather("record", list(value), list(value.values()))
        return self.scalar(value)

    def type_of(self, operand: Operand) -> Type:
        """The type of an operand; JSON if it is not known."""
        value = operand.value if isinstance(operand, Lit) else None
        return _LITERAL_TYPES.get(type(value), types.JSON)

    def operands(self, value: Any) -> Operand:
        """The operand of a field that takes several values, made from one text or a sequence."""
        if not isinstance(value, (str, list, tuple, set, frozenset)):
            raise UsageError(
                f"expected a text or a list of them, found {value!r}", where=str(user_loc() or "")
            )
        if isinstance(value, str):
            one = (self.scalar(value),)
            return one if self.is_tracing else OneText(one)
        return tuple(self.scalar(item) for item in value)

    def _gather(self, op: str, keys: list[str], items: Any) -> Operand:
        operands = tuple(self.operand(item) for item in items)
        if op == "list":
            type_ = types.list_of(_item_type(items))
            (symbol,) = self.emit("list", [("v", type_)], items=operands)
        else:
            fields: dict[str, Operand] = {"keys": tuple(map(Lit, keys)), "items": operands}
            if items == ():
                fields["is_tuple"] = Lit(True)
            (symbol,) = self.emit("record", [("v", types.JSON)], **fields)
        return Ref(symbol.name)

    @contextmanager
    def located(self, loc: Loc | None) -> Iterator[None]:
        """Gives nodes built inside the location `loc` instead of the user's current line."""
        before, self._fixed_loc = self._fixed_loc, loc
        try:
            yield
        finally:
            self._fixed_loc = before


_LITERAL_TYPES = {str: types.TEXT, int: types.INT, float: types.FLOAT, bool: types.BOOL}


def _item_type(items: list[Any]) -> Type:
    """The common type of a list's items: text if all are, else JSON."""
    found = {item.type.kind for item in items if isinstance(item, Symbol)}
    plain = all(isinstance(item, (Symbol, str)) for item in items)
    return types.TEXT if plain and found <= {types.Kind.TEXT, types.Kind.CHOICE} else types.JSON
