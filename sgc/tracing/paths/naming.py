"""Names of abstract values for messages, in the user's terms."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sgc.ir.functions import FUNCTIONS
from sgc.ir.graph import Lit, Operand, Ref

MAX_CHARS = 60
_OPERATOR = re.compile(r"a (\S+) b\b")
_NAMES = {
    "attempt": "an error's message", "list": "a list", "map": "what sgc.map gives",
    "record": "a dict", "span": "a text", "text_of": "text()",
}  # fmt: skip

MAX_CALLS = 5  # nested in each other
Made = tuple[str, Mapping[str, Operand]]  # an op and its fields


def name_of(name: str, made: Mapping[str, Made], n_left: int = MAX_CALLS) -> str:
    """A value that an op has made, as an expression of the program."""
    op, fields = made.get(name, ("", {}))
    given = fields.get("name")
    if isinstance(given, Lit) and given.value:
        return f"{str(given.value).rpartition(':')[2]}(…)" if op == "tool" else str(given.value)
    if not n_left:
        return "…"

    def shown(operand: Operand) -> str:
        if isinstance(operand, Ref):
            return name_of(operand.name, made, n_left - 1) if operand.name in made else operand.name
        return repr(operand.value) if isinstance(operand, Lit) else "…"

    if op == "compute" and isinstance(fn := fields["fn"], Lit):
        text = _call(str(fn.value), [shown(arg) for arg in _items(fields["args"])])
    elif op == "concat":
        text = " + ".join(shown(part) for part in _items(fields["parts"]))
    elif op == "format":
        text = f"format({shown(fields['value'])}, {shown(fields['spec'])})"
    else:
        text = _NAMES.get(op, "a value")
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _call(fn: str, args: list[str]) -> str:
    """A call of a function of the table, in the notation of its row."""
    first, *rest = args
    doc = FUNCTIONS[fn].doc
    if fn == "item":
        return f"{first}[{', '.join(rest)}]"
    if doc.startswith(f"a.{fn}("):
        return f"{first}.{fn}({', '.join(rest)})"
    if (operator := _OPERATOR.match(doc)) and rest:
        return f"{first} {operator[1]} {rest[0]}"
    return f"{fn}({', '.join(args)})"


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand if isinstance(operand, tuple) else (operand,)
