"""The tracer's session: how a value was made, and whether anything else holds the value."""

from __future__ import annotations

from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.functions import FUNCTION_TABLE
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.types import Kind
from sgc.tracing.kinds.row_types import MemberType
from sgc.tracing.recording.merging import WIDENED, Merging
from sgc.tracing.values.abstract_list import AbstractList

MAKES_LISTS = frozenset(
    {row.name for row in FUNCTION_TABLE if row.gives is Kind.LIST} - {"unpack"}
) | {"slice", "json_loads"}
_READING = (Lit("item"), Lit("as"), Lit("slice"))


class Origins(Merging):
    """A tracer's session that knows where its values come from.

    handed: the program's own lists that were passed to code; copies: results of code that may share
    parts with other values; new: lists that code has made or changed, and that nothing else holds.
    """

    _types: dict[str, types.Type]
    handed: set[str]
    copies: set[str]
    new: set[str]

    def is_made(self, symbol: Symbol) -> bool:
        op, fields = self.made.get(symbol.name, ("", {}))
        if symbol.name in self.handed:
            return False
        fn = fields.get("fn")
        is_one = isinstance(fn, Lit) and fn.value in MAKES_LISTS
        return op in (WIDENED, "list", "tool") or is_one or symbol.name in self.new

    def is_given(self, symbol: Symbol) -> bool:
        """Whether code may change a value: nothing else holds it, as far as tracing knows."""
        code = self._code_of(symbol)
        if code:
            return code not in self.copies
        return self.is_made(symbol) or symbol.name in self.handed

    def code_of(self, symbol: Symbol) -> tuple[str, tuple[Any, ...]] | None:
        """The code that returned a value, and its arguments; None if it cannot run again."""
        _, fields = self.made.get(symbol.name, ("", {}))
        code, args = self.source_of(symbol), fields.get("args")
        if not code or not isinstance(args, tuple):
            return None
        if fields.get("changed") or any(isinstance(each, tuple) for each in args):
            return None
        return code, tuple(map(self._read_again, args))

    def source_of(self, symbol: Symbol, op: str = "evaluate") -> str:
        """The code of the op that returned a value; empty if another one did."""
        own, fields = self.made.get(symbol.name, ("", {}))
        code = fields.get("code")
        return str(code.value) if own == op and isinstance(code, Lit) else ""

    def is_performed(self, symbol: Symbol) -> bool:
        return self.made.get(symbol.name, ("", {}))[0] == "perform"

    def _read_again(self, operand: Operand) -> Any:
        if isinstance(operand, Ref):
            symbol = Symbol(operand.name, self._types[operand.name])
            # Reading a member decides which member it is.
            return symbol if isinstance(symbol.type, MemberType) else self.read(symbol)
        assert isinstance(operand, Lit)
        return operand.value

    def is_code(self, symbol: Symbol) -> bool:
        return bool(self._code_of(symbol))

    def is_item(self, value: Any) -> bool:
        """Whether a value is read from one of the program's own lists."""
        if not isinstance(value, AbstractList):
            return False
        _, fields = self.made.get(value.symbol.name, ("", {}))
        args = fields.get("args") if fields.get("fn") == Lit("item") else None
        whole = args[0] if isinstance(args, tuple) else None
        if not isinstance(whole, Ref) or not self._types[whole.name].item:
            return False
        return self.is_given(Symbol(whole.name, self._types[whole.name]))

    def is_put(self, symbol: Symbol) -> bool:
        """Whether a value is read from a list or dict of the graph into which the program may have
        put it."""
        is_read, (op, fields) = False, self.made.get(symbol.name, ("", {}))
        while op == "compute" and fields["fn"] in _READING:
            args = fields["args"]
            whole = args[0] if isinstance(args, tuple) and args else None
            if not isinstance(whole, Ref):
                return True
            is_read, (op, fields) = True, self.made.get(whole.name, ("", {}))
        if not is_read or op == "tool":
            return False
        # A value that no op has made is an argument of the program, or was widened.
        return bool(fields) and fields.get("fn") != Lit("json_loads")

    def _code_of(self, symbol: Symbol) -> str:
        """The name of the result of code that a value is, or is taken from; else empty."""
        op, fields = self.made.get(symbol.name, ("", {}))
        if op in ("evaluate", "perform"):
            return symbol.name
        args = fields.get("args")
        fn = fields.get("fn")
        if fn not in (Lit("item"), Lit("as")) or not isinstance(args, tuple):
            return ""
        whole = args[0].name if isinstance(args[0], Ref) else ""
        if fn == Lit("as"):
            return self._code_of(Symbol(whole, symbol.type))
        op, fields = self.made.get(whole, ("", {}))
        is_several = op == "evaluate" and fields.get("is_several") == Lit(True)
        return whole if is_several else ""
