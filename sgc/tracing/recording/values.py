"""The tracer's session: the program's values as operands, and the graph's as the program's."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from sgc.core.markers import Style, make_marker
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.functions import FUNCTIONS
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.op_specs import TEXTUAL
from sgc.tracing.kinds.row_types import (
    OBJECT,
    holds_objects,
    outer,
    plain,
)
from sgc.tracing.kinds.text_types import domain
from sgc.tracing.paths.naming import name_of
from sgc.tracing.pieces.made import Sites
from sgc.tracing.recording.outside import Outside
from sgc.tracing.values.abstract import (
    INTERPRET,
    AbstractList,
    AbstractNumber,
    abstract,
    pieces_of,
    stop,
)

MAX_SYMBOLS = 10**7  # of one trace; a marker's number combines a nonce and the symbol's number


class Values(Outside):
    """A tracer's session that makes texts with markers for values of the graph, and reads them.

    style: the form of the markers.
    """

    def __init__(self, program: str, parameters: Iterable[str], sites: Sites) -> None:
        super().__init__(program, sites)
        self.style = Style.SHORT
        self._parameters = frozenset(parameters)
        self._symbols: list[Symbol] = []
        self._numbers: dict[str, int] = {}
        self._nonce = random.SystemRandom().randrange(10**11, 10**12)
        self._types: dict[str, types.Type] = {}

    def read(self, symbol: Symbol) -> Any:
        return abstract(symbol, self)

    def marker(self, symbol: Symbol) -> str:
        """The marker of a symbol; always the same, so that equal texts stay equal."""
        if symbol.name not in self._numbers:
            self._numbers[symbol.name] = len(self._symbols)
            self._symbols.append(symbol)
        return make_marker(self._nonce * MAX_SYMBOLS + self._numbers[symbol.name], self.style)

    def symbol_of(self, number: int) -> Symbol:
        nonce, index = divmod(number, MAX_SYMBOLS)
        if nonce != self._nonce:
            stop("a value of another trace is used here; values do not outlive their trace")
        return self._symbols[index]

    def formatted(self, value: Any, spec: str) -> str:
        """The marker of `format(value, spec)`, computed at run time."""
        (symbol,) = self.emit(
            "format", [("text", types.TEXT)], value=self.scalar(value), spec=Lit(spec)
        )
        return self.marker(symbol)

    def shown(self, text: str) -> str:
        """A text for error messages, with the names of values in braces."""
        parts = [
            part if isinstance(part, str) else "{" + self.name_of(self.symbol_of(part)) + "}"
            for part in pieces_of(text)
        ]
        return "".join(parts) if len(parts) != 1 else parts[0].strip("{}")

    def name_of(self, symbol: Symbol) -> str:
        """A value's name in the user's terms, for messages."""
        return symbol.name if self.is_parameter(symbol.name) else name_of(symbol.name, self.made)

    def is_parameter(self, name: str) -> bool:
        return name in self._parameters

    @unhooked
    def compute(self, fn: str, *args: Any, type_: types.Type | None = None) -> Any:
        """The abstract value of a function of `ir/functions.py`, which cannot fail here."""
        gives = FUNCTIONS[fn].gives
        assert type_ is not None or gives is not None, fn
        known = type_ or types.Type(gives)  # type: ignore[arg-type]
        return abstract(self._emit_compute(fn, args, known), self)

    def made_by(self, code: str, type_: types.Type, *given: Symbol) -> Symbol:
        operands = tuple([Ref(each.name) for each in given])
        (symbol,) = self.emit("evaluate", [("v", type_)], code=Lit(code), args=operands)
        return symbol

    def _emit_compute(self, fn: str, args: tuple[Any, ...], type_: types.Type) -> Symbol:
        operands = tuple(self.operand(arg) for arg in args)
        (symbol,) = self.emit("compute", [("v", type_)], fn=Lit(fn), args=operands)
        return symbol

    def text_parts(self, text: str) -> list[tuple[bool, Operand]]:
        parts: list[tuple[bool, Operand]] = []
        for piece in pieces_of(text):
            if isinstance(piece, str):
                parts += [(own, Lit(part)) for own, part in self._outside.split(piece)]
            else:
                parts.append((False, self._ref(piece)))
        return parts

    def _ref(self, number: int) -> Ref:
        return Ref(self.symbol_of(number).name)

    def scalar(self, value: Any) -> Operand:
        if issubclass(type(value), str):
            return self._text(value)
        if issubclass(type(value), (AbstractNumber, AbstractList)):
            return Ref(value.symbol.name)
        if value is None or isinstance(value, (bool, int, float)):
            return Lit(value)
        stop(
            f"a {type(value).__name__} cannot be part of a compiled program",
            hint="use text, numbers, lists and dicts of them; or " + INTERPRET,
        )

    def _as_text(self, operand: Operand) -> Operand:
        """The operand as a text: a number is converted by `str`."""
        type_ = self._types.get(operand.name) if isinstance(operand, Ref) else None
        if type_ is None or type_.kind in TEXTUAL:
            return operand
        assert isinstance(operand, Ref)
        number = Symbol(operand.name, type_)
        return Ref(self._emit_compute("str", (number,), types.TEXT).name)

    def _text(self, text: str) -> Operand:
        parts = self.text_parts(text)
        if not parts:
            return Lit("")
        if len(parts) == 1:
            return self._as_text(parts[0][1])
        operands = tuple(operand for _, operand in parts)
        (symbol,) = self.emit("concat", [("text", types.TEXT)], parts=operands)
        return Ref(symbol.name)

    def type_of(self, operand: Operand) -> types.Type:
        if isinstance(operand, Ref):
            return plain(self._types.get(operand.name, types.JSON))
        return super().type_of(operand)

    def outer_type(self, operand: Operand) -> types.Type:
        """The type of an operand's value in another program, called or calling."""
        if isinstance(operand, Ref):
            return outer(self._types.get(operand.name, types.JSON))
        return super().type_of(operand)

    def note_type(self, symbol: Symbol) -> None:
        self._types[symbol.name] = symbol.type
        self.note_states([symbol])

    def _options(self, name: str) -> tuple[str, ...] | None:
        type_ = self._types.get(name)
        return domain(Symbol(name, type_), self) if type_ is not None else None

    def _gather(self, op: str, keys: list[str], items: Any) -> Operand:
        operand = super()._gather(op, keys, items)
        assert isinstance(operand, Ref)
        parts = self.made[operand.name][1]["items"]
        assert isinstance(parts, tuple)
        [self._types.get(part.name, types.JSON) for part in parts if isinstance(part, Ref)]
        if op == "record" and not keys:  # a tuple
            self._types[operand.name] = OBJECT
        elif any(map(holds_objects, map(self.outer_type, parts))):
            self._types[operand.name] = types.list_of(OBJECT) if op == "list" else OBJECT
        return operand
