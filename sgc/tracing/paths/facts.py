"""Facts: what a run knows of its values from the tests that it has passed.

Facts are forgotten when the program appends or calls a tool; the same test is then a decision
again. So facts seldom keep paths apart, but the arms of one `if` … `elif` … chain still exclude
each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sgc.ir.graph import Lit, Operand, Ref

# A function and its operands, each ("ref", name) or ("lit", type, value).
Fact = tuple[str, tuple[tuple[object, ...], ...]]


def fact_of(fn: str, args: Iterable[Operand]) -> Fact | None:
    """The fact that a test is about; None if the test has operands that are not single values."""
    found: list[tuple[object, ...]] = []
    for arg in args:
        if isinstance(arg, Ref):
            found.append(("ref", arg.name))
        elif isinstance(arg, Lit):
            found.append(("lit", type(arg.value).__name__, arg.value))
        else:
            return None
    if fn == "eq" and found[0][0] == "lit":
        found.reverse()
    return fn, tuple(found)


def fact_of_read(op: str, fields: Mapping[str, Operand], told: Mapping[Any, Any]) -> Fact | None:
    """The fact that a test of a list's item is about, the same each time that the item is read.
    told: the op and fields that made such items and values computed from them."""
    names = [str((fields.get("fn") or fields["code"]).value)]  # type: ignore[union-attr]
    args: Any = fields["args"]
    while args and isinstance(args[0], Ref) and args[0] in told:
        by, inner = told[args[0]]
        if by == "compute":
            return fact_of(" of ".join([op, *names]), (*inner["args"], *args[1:]))
        names.append(str(inner["code"].value))
        args = (*inner["args"], *args[1:])
    return None


class Facts(dict[Fact, bool]):
    """Tests and their outcomes."""

    def outcome(self, fact: Fact, options: Callable[[str], tuple[str, ...] | None]) -> bool | None:
        """The known outcome of a test, or None. options: the texts that a value may be."""
        if fact in self:
            return self[fact]
        fn, args = fact
        if fn != "eq" or len(args) != 2 or args[0][0] != "ref" or args[1][0] != "lit":
            return None
        name, wanted = str(args[0][1]), args[1]
        excluded = set()
        for (known_fn, known), is_true in self.items():
            if known_fn == "eq" and known[0] == args[0] and known[1][0] == "lit":
                if is_true and known[1][1] == wanted[1] == "str":
                    return known[1] == wanted
                excluded.add(known[1][-1])
        among = options(name)
        if among is None:
            return None
        left = [option for option in among if option not in excluded]
        if wanted[-1] not in left:
            return False
        return True if len(left) == 1 else None
