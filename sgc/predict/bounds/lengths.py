"""Upper bounds of the lengths of values, in tokens, before a program runs.

A known value counts a token per byte. A generated text counts the most tokens that it can have, as
long as it is unchanged; if a function changes its characters, each token counts as `TOKEN_BYTES`
tokens. Each function has a rule that bounds its result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sgc.errors import SgcError
from sgc.ir.functions import FUNCTIONS, LIST_FUNCTIONS
from sgc.ir.types import Kind
from sgc.predict.bounds.cost import product
from sgc.runtime.executor.interface.media import Media
from sgc.runtime.executor.interface.value_limits import LimitExceeded
from sgc.runtime.executor.ops.functions import evaluate, failure

TOKEN_BYTES = 16  # of a generated token whose characters are changed
NUMBER = 32.0  # a number as text, if no longer number went into it


@dataclass(frozen=True, slots=True)
class Bound:
    """tokens: the most tokens of the value as text. known: the value itself, if known. length: the
    most items of an unknown list. items: the bounds of a list's items, if each has its own. why:
    what makes it unbounded, as a program line and a reason.
    """

    tokens: float = 0.0
    known: tuple[Any] | None = None
    length: float = math.inf
    items: tuple[Bound, ...] | None = None
    why: str = ""

    def joined(self, other: Bound) -> Bound:
        """The bound of a value that is one of two."""
        if self.known is not None and other.known is not None and _same(self, other):
            return self
        return Bound(
            max(self.tokens, other.tokens),
            length=max(self.n_items, other.n_items),
            why=self.why or other.why,
        )

    @property
    def n_items(self) -> float:
        if self.known is not None:
            return float(len(self.known[0])) if isinstance(self.known[0], (list, tuple)) else 0.0
        return float(len(self.items)) if self.items is not None else self.length

    @property
    def changed(self) -> float:
        """The most bytes of the text."""
        return self.tokens if self.known is not None else self.tokens * TOKEN_BYTES


def known(value: Any) -> Bound:
    return Bound(n_bytes(value), (value,))


def n_bytes(value: Any) -> float:
    """The bytes of a value as text."""
    if isinstance(value, Media) or value is None:
        return 0.0
    text = value if isinstance(value, str) else str(value)
    return float(len(text.encode("utf-8", "surrogatepass")))


def gathered(items: Sequence[Bound]) -> Bound:
    """The bound of a list or a record from those of its items."""
    if all(item.known is not None for item in items):
        return known([item.known[0] for item in items if item.known is not None])
    tokens = sum(item.tokens + 4 for item in items) + 2
    return Bound(tokens, length=len(items), items=tuple(items), why=_why(items))


def computed(fn: str, args: Sequence[Bound], where: str) -> Bound:
    """The bound of a function's result; known if its arguments are."""
    values = _values(args)
    if values is not None:
        try:
            return known(evaluate(fn, *values))
        except LimitExceeded:
            return Bound(math.inf, why=f"{where}: {fn} of these values is too long")
        except Exception:  # Python's own error: the path ends here and costs nothing more
            return Bound(0.0)
    if fn == "item" and args[0].items is not None and args[1].known is not None:
        return _item(args[0].items, args[1].known[0])
    kind = FUNCTIONS[fn].gives
    if kind is Kind.BOOL:
        return Bound(5.0)
    rule = _RULES.get(fn)
    if rule is None:
        return Bound(math.inf, why=f"{where}: the result of {fn} may be of any length")
    tokens = rule(args)
    length = _n_items(fn, args) if kind is Kind.LIST and args else math.inf
    why = _why(args) or f"{where}: the result of {fn} may be of any length"
    return Bound(tokens, length=length, why="" if math.isfinite(tokens) else why)


def _n_items(fn: str, args: Sequence[Bound]) -> float:
    """The most items of a list that a function returns."""
    if FUNCTIONS[fn] not in LIST_FUNCTIONS:
        return args[0].changed + 1  # of a text
    if fn == "times":
        return product(args[0].n_items, max(_whole(args, 1), 0.0))
    return args[0].n_items + (args[1].n_items if fn == "plus" else 1)


def attempted(fn: str, args: Sequence[Bound]) -> tuple[Bound, Bound]:
    """The bounds of whether a function succeeds, and of its error's message."""
    values = _values(args)
    if values is not None:
        try:
            error = failure(fn, *values)
        except SgcError:
            return Bound(5.0), Bound(512.0)
        return known(error is None), known("" if error is None else str(error))
    if fn == "json_loads":  # its message holds positions, not the text
        return Bound(5.0), Bound(128.0)
    # Python's messages quote an argument or a part of it.
    return Bound(5.0), Bound(256.0 + 4 * sum(arg.changed for arg in args))


def _values(args: Sequence[Bound]) -> list[Any] | None:
    values = [arg.known[0] for arg in args if arg.known is not None]
    return values if len(values) == len(args) else None


def _item(items: tuple[Bound, ...], index: Any) -> Bound:
    if isinstance(index, int) and -len(items) <= index < len(items):
        return items[index]
    return Bound(max((item.tokens for item in items), default=0.0), why=_why(items))


def _same(one: Bound, other: Bound) -> bool:
    a, b = one.known, other.known
    return a is not None and b is not None and type(a[0]) is type(b[0]) and bool(a[0] == b[0])


def _why(bounds: Iterable[Bound]) -> str:
    return next((bound.why for bound in bounds if bound.why), "")


# -- functions of which some argument is not known ----------------------------------------------

Rule = Callable[[Sequence[Bound]], float]


def _first(args: Sequence[Bound]) -> float:
    return args[0].tokens


def _all(args: Sequence[Bound]) -> float:
    return sum(arg.tokens for arg in args)


def _times(factor: float, more: float = 0.0) -> Rule:
    return lambda args: args[0].changed * factor + more


def _number(args: Sequence[Bound]) -> float:
    return max((arg.tokens for arg in args), default=0.0) + NUMBER


def _padded(args: Sequence[Bound]) -> float:
    return args[0].tokens + 4 * _whole(args, 1)


def _repeated(args: Sequence[Bound]) -> float:
    return product(args[0].tokens, max(_whole(args, 1), 0.0))


def _whole(args: Sequence[Bound], at: int) -> float:
    """The argument's value if it is known, else infinity."""
    found = args[at].known if at < len(args) else (0,)
    return float(found[0]) if found is not None and isinstance(found[0], (int, float)) else math.inf


def _replaced(args: Sequence[Bound]) -> float:
    """At most one replacement per character, and one before the first."""
    return args[0].changed + product(args[0].changed + 1, args[2].tokens)


def _substituted(args: Sequence[Bound]) -> float:
    """re_sub(pattern, flags, text, replacement); no bound if the replacement refers to groups."""
    text, put = args[2], args[3]
    if put.known is None or "\\" in str(put.known[0]):
        return math.inf
    return text.changed + product(text.changed + 1, put.tokens)


def _joined(args: Sequence[Bound]) -> float:
    return args[1].tokens + product(args[0].tokens, args[1].n_items)


def _formatted(args: Sequence[Bound]) -> float:
    spec = args[1].known
    if spec is None:
        return math.inf
    widths = [int(found) for found in re.findall(r"\d+", str(spec[0]))]
    return args[0].tokens + 4 * sum(widths) + NUMBER


def _text_of(index: int) -> Rule:
    return lambda args: args[index].changed + 2


_TO_SAME = (
    "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "partition", "rpartition",
    "split", "rsplit", "splitlines", "slice", "item", "named", "unpack", "as", "keys", "values",
    "json_loads", "pos", "abs", "floor", "ceil", "str",
    "without", "removed", "sorted", "smallest", "largest",
)  # fmt: skip
_TO_NUMBER = (
    "add", "sub", "truediv", "floordiv", "mod", "divmod", "neg", "round", "int", "float", "bit_and",
    "bit_or", "bit_xor", "invert", "len", "find", "rfind", "count", "index", "rindex", "ord",
    "re_start", "re_end", "n_of", "where",
)  # fmt: skip
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_TO_SAME, _first),
    **dict.fromkeys(("lower", "upper", "title", "capitalize", "casefold", "swapcase"), _times(3)),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _padded),
    **dict.fromkeys(("concat", "min", "max", "get", "mul", "plus", "push", "put", "insert"), _all),
    **dict.fromkeys(_TO_NUMBER, _number),
    "chr": lambda args: 4.0,
    "expandtabs": _times(8, 64),
    "repeat": _repeated,
    "times": _repeated,
    "replace": _replaced,
    "repr": _times(4, 16),
    "re_escape": _times(2),
    "json_dumps": _times(6, 64),
    "join": _joined,
    "format": _formatted,
    "re_sub": _substituted,
    "re_group": _text_of(2),
    "re_findall": _text_of(2),
    "re_split": _text_of(2),
    "re_match": _times(1, 512),
    "re_search": _times(1, 512),
    "re_fullmatch": _times(1, 512),
}
