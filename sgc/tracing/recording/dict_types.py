"""The types of dicts that code has returned, as far as the code's source tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sgc.core.symbols import Symbol
from sgc.ir.code import parse_code
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import OBJECT, DictType
from sgc.tracing.paths.naming import Made

if TYPE_CHECKING:
    from sgc.tracing.inference.infer import Inferred

MAX_DEPTH = 8  # of code whose arguments are results of other code


class DictTypes:
    """made: the op that has made each value, by name; types: the values' types."""

    def __init__(self, made: Mapping[str, Made], types: Mapping[str, Type]) -> None:
        self._made, self._types = made, types

    def of(self, symbol: Symbol, n_left: int = MAX_DEPTH) -> DictType | None:
        """The type of a value, if it is a dict whose keys and values cannot be changed."""
        op, fields = self._made.get(symbol.name, ("", {}))
        if op == "evaluate":
            known = self._inferred(fields, n_left)
            return None if known is None or not known.dicts else known.dicts[0]
        args = fields.get("args")
        if op != "compute" or fields["fn"] != Lit("item") or not isinstance(args, tuple):
            return None
        whole, index = args
        if not isinstance(whole, Ref) or not isinstance(index, Lit):
            return None
        op, fields = self._made.get(whole.name, ("", {}))
        known = self._inferred(fields, n_left) if op == "evaluate" else None
        items = known.dicts[1:] if known is not None else ()
        is_one = type(index.value) is int and -len(items) <= index.value < len(items)
        return items[index.value] if is_one else None  # type: ignore[index]

    def _inferred(self, fields: Mapping[str, Operand], n_left: int) -> Inferred | None:
        from sgc.tracing.inference.infer import inferred  # loads many modules

        code, args = fields["code"], fields["args"]
        if not isinstance(code, Lit) or not isinstance(args, tuple) or not n_left:
            return None
        given = tuple(self._given(each, n_left - 1) for each in args)
        return inferred(parse_code(str(code.value)), given)

    def _given(self, operand: Operand, n_left: int) -> Type:
        if not isinstance(operand, Ref):
            return OBJECT
        type_ = self._types.get(operand.name, OBJECT)
        return self.of(Symbol(operand.name, type_), n_left) or type_
