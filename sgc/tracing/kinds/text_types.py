"""What is known of a generated text from the parameters of its generation.

A text may be cut by `max_tokens`, and a cut text need not match its pattern. Each token is at least
one byte, so a text of at most `max_tokens` bytes is never cut: the options of a pattern are known
if all of them are that short. `int` or `float` certainly accepts a text if it accepts every prefix
of the text that has at least `max_tokens` bytes. Without `max_tokens` in the generation, with stop
strings, or with an abstract pattern, nothing is known. The result of a `select` is always one whole
choice. The schema of JSON is known once the text is parsed, since no JSON object or list is the
beginning of another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Protocol

from sgc.core.symbols import Symbol
from sgc.ir.graph import Lit, Node
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.run.options import DTYPES

MAX_OPTIONS = 64
MAX_SAMPLES = 4096


class Shape(Protocol):
    """What is known of a list or of a value out of JSON; can be compared by `==`."""

    def view(self, value: Any) -> Any:
        """A value out of JSON, with the methods for its known type."""

    def item(self, item: Any) -> Any:
        """An item of a list, with what is known of it."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value. options: all texts that a text may be. is_int, is_float: whether
    Python's int() or float() accepts the text. json_schema: the schema of its JSON, if the text can
    be parsed. min_items: the least length of a list. shape: of a list or a value out of JSON, for
    `known_json.py`.
    """

    options: tuple[str, ...] | None = None
    is_int: bool = False
    is_float: bool = False
    json_schema: str | None = None
    min_items: int = 0
    shape: Shape | None = None


def is_textual(type_: Type) -> bool:
    return type_.kind in (Kind.TEXT, Kind.CHOICE)


def known_of(symbol: Symbol, session: Any) -> Known:
    """What the session knows of a value."""
    found: Known | None = session.known.get(symbol.name)
    if found is not None:
        return found
    return Known(options=symbol.type.options) if symbol.type.options else Known()


def domain(symbol: Symbol, session: Any) -> tuple[str, ...] | None:
    """The texts that a value may be, if they are known."""
    return known_of(symbol, session).options if is_textual(symbol.type) else None


def known_text(node: Node) -> Known | None:
    """What is known of the text that a `gen` generates; None if nothing is."""
    if node.op != "gen":
        return None
    schema = _literal(node, "json_schema")
    if type(schema) is str:
        return Known(json_schema=schema)
    pattern, max_tokens = _pattern(node), _literal(node, "max_tokens")
    if pattern is None or type(max_tokens) is not int:
        return None
    return _known_pattern(pattern, max_tokens)


def texts_of(pattern: str, max_tokens: int) -> tuple[str, ...]:
    """Texts that may be generated for a pattern, cut texts included: all of them, or samples; empty
    for patterns that are not supported.
    """
    tree = _parsed(pattern)
    return _given_texts(_without_ends(tree), max_tokens)[1] if tree is not None else ()


def _parsed(pattern: str) -> Any:
    """The pattern's tree as `re` parses it; None if it cannot be parsed, or has certain flags."""
    try:
        tree = _parser.parse(pattern)
    except (ValueError, RecursionError, OverflowError, re.error):
        return None
    return None if tree.state.flags & _FLAGS else tree


def _literal(node: Node, name: str) -> Any:
    operand = node.get(name)
    return operand.value if isinstance(operand, Lit) else None


_STOPS = ("stop", "stop_token_ids", "stop_regex", "ebnf")


def _pattern(node: Node) -> str | None:
    """The pattern that a text matches unless it is cut, if only `max_tokens` can cut it."""
    if any(node.get(name) not in (Lit(None), ()) for name in _STOPS):
        return None
    dtype, pattern = _literal(node, "dtype"), _literal(node, "regex")
    if dtype in ("int", "float"):
        return DTYPES[dtype][0]  # the dtype's own stop strings end the text only after the number
    return pattern if type(pattern) is str else None


@lru_cache(maxsize=256)
def _known_pattern(pattern: str, max_tokens: int) -> Known | None:
    """What is known of a text by its pattern; cached, as every run of a trace calls it."""
    tree = _parsed(pattern)
    if tree is None:
        return None
    are_all, texts = _given_texts(_without_ends(tree), max_tokens)
    if not texts:
        return None
    known = Known(texts if are_all else None, _all_take(int, texts), _all_take(float, texts))
    return known if are_all or known.is_float else None


def _given_texts(items: list[Any], max_tokens: int) -> tuple[bool, tuple[str, ...]]:
    """Texts that may be generated, and whether these are all such texts."""
    texts = _texts(items, MAX_OPTIONS)
    if texts is not None and all(len(_utf8(text)) <= max_tokens for text in texts):
        return True, tuple(texts)
    samples = _texts(_sampled(items), MAX_SAMPLES) or []
    cut = [s[:n] for s in samples for n in range(min(max_tokens, len(s)), len(s) + 1)]
    return False, tuple(cut)


def _without_ends(tree: Any) -> list[Any]:
    """The pattern without its outer `^` and `$`, which make no difference for a whole text."""
    items = list(tree)
    if items and items[0] == (sre.AT, sre.AT_BEGINNING):
        del items[0]
    if items and items[-1] == (sre.AT, sre.AT_END):
        del items[-1]
    return items


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _sampled(tree: Any) -> Any:
    """The pattern with one digit for all digits and few repetitions, which is enough to see how
    numbers begin.
    """
    return [_sampled_item(op, arg) for op, arg in tree]


def _sampled_item(op: Any, arg: Any) -> Any:
    if op is sre.IN:
        found = _set_texts(arg)
        if found is not None and all(text in "0123456789" for text in found):
            return sre.LITERAL, ord(found[-1])
    if op is sre.SUBPATTERN:
        return op, (*arg[:3], _sampled(arg[3]))
    if op is sre.BRANCH:
        return op, (arg[0], [_sampled(arm) for arm in arg[1]])
    if op is sre.MAX_REPEAT:
        low, high, inner = arg
        return op, (low, min(high, low + 2), _sampled(inner))
    return op, arg


def _all_take(convert: Any, texts: tuple[str, ...]) -> bool:
    try:
        for text in texts:
            convert(text)
    except (ValueError, OverflowError):
        return False
    return True


_FLAGS = sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_LOCALE


def _texts(tree: Any, most: int) -> list[str] | None:
    """All texts that a pattern matches as a whole; None if there are too many, or if the pattern is
    not supported."""
    found = [""]
    for op, arg in tree:
        parts = _item_texts(op, arg, most)
        if parts is None or len(parts) * len(found) > most:
            return None
        found = list(dict.fromkeys("".join(pair) for pair in product(found, parts)))
    return found


def _item_texts(op: Any, arg: Any, most: int) -> list[str] | None:
    if op is sre.LITERAL:
        return [chr(arg)]
    if op is sre.IN:
        return _set_texts(arg)
    if op is sre.SUBPATTERN:
        return None if arg[1] or arg[2] else _texts(arg[3], most)
    if op is sre.BRANCH:
        arms = [_texts(arm, most) for arm in arg[1]]
        return None if None in arms else [text for arm in arms for text in arm or ()]
    if op is sre.MAX_REPEAT and arg[1] <= MAX_OPTIONS:
        return _repeated(_texts(arg[2], most), arg[0], arg[1], most)
    return None


def _set_texts(items: Any) -> list[str] | None:
    found: list[str] = []
    for op, arg in items:
        if op is sre.LITERAL:
            found.append(chr(arg))
        elif op is sre.RANGE and arg[1] - arg[0] < MAX_OPTIONS:
            found += map(chr, range(arg[0], arg[1] + 1))
        else:
            return None
    return found


def _repeated(texts: list[str] | None, low: int, high: int, most: int) -> list[str] | None:
    if texts is None:
        return None
    found: list[str] = []
    for times in range(low, high + 1):
        if len(texts) ** times + len(found) > most:
            return None
        found += ["".join(parts) for parts in product(texts, repeat=times)]
    return list(dict.fromkeys(found))
