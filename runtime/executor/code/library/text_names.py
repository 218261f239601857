"""Names of `string`, `shlex`, `textwrap`, `html`, `unicodedata`, `difflib`, `base64`, `hashlib`,
`uuid` and `urllib.parse`; each is charged for the texts that are its arguments.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import html
import shlex
import string
import textwrap
import unicodedata
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

from sgc.ir.code_names import LIBRARY
from sgc.runtime.executor.code.fuel import CONTAINERS, NotAllowed, charge, checked, measure
from sgc.runtime.executor.code.iterators import drained, is_iterable
from sgc.runtime.executor.code.methods.attributes import DATA, GUARDS, METHODS, bounded_method
from sgc.runtime.executor.code.methods.operators import check_shown
from sgc.runtime.executor.interface.value_limits import check_items, check_length


def paying(real: Callable[..., Any], per_char: int, n_longest: int = 0) -> Callable[..., Any]:
    """A function of texts that charges `per_char` steps for each character; it takes only data."""

    def function(*args: Any, **kwargs: Any) -> Any:
        args = tuple(drained(each) if _is_lazy(each) else each for each in args)
        kwargs = {name: drained(each) if _is_lazy(each) else each for name, each in kwargs.items()}
        for each in (*args, *kwargs.values()):
            n_chars = measure(each)
            check_shown(each)
            if n_longest:
                check_length(n_chars * n_longest)
            charge(1 + n_chars * per_char)
        return checked(real(*args, **kwargs))

    return function


def _is_lazy(value: Any) -> bool:
    return is_iterable(value) and hasattr(type(value), "__next__")


STRING: dict[str, Any] = {
    name: getattr(string, name) for name in LIBRARY["string"] if name != "capwords"
} | {"capwords": paying(string.capwords, 1)}


def _wrapping(real: Callable[..., Any]) -> Callable[..., Any]:
    pays = paying(real, 8)

    def function(*args: Any, **kwargs: Any) -> Any:
        n_chars = len(args[0]) if args and isinstance(args[0], str) else 0
        tabs = kwargs.get("tabsize", 8)
        check_length(n_chars * max(tabs if isinstance(tabs, int) else 8, 1) // 8)
        for name in ("initial_indent", "subsequent_indent"):
            indent = kwargs.get(name, "")
            # Each line is indented, and there may be a line for each character.
            check_length(len(indent) * (n_chars + 1) if isinstance(indent, str) else 0)
            charge(len(indent) * (n_chars + 1) >> 6 if isinstance(indent, str) else 0)
        return pays(*args, **kwargs)

    return function


def _words(text: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(text, str):  # Python would read its input
        raise NotAllowed("shlex.split takes a text in a graph's code")
    return _SPLIT(text, *args, **kwargs)


_SPLIT = paying(shlex.split, 16)
SHLEX: dict[str, Any] = {
    "join": paying(shlex.join, 2, 5), "quote": paying(shlex.quote, 2, 5), "split": _words,
}  # fmt: skip


def _indent(text: Any, prefix: Any, predicate: Any = None) -> str:
    if predicate is not None:
        raise NotAllowed("textwrap.indent with a predicate is not allowed in a graph's code")
    if isinstance(text, str) and isinstance(prefix, str):
        check_length(len(text) + len(prefix) * (text.count("\n") + 1))
        charge(len(text) >> 2)
    result: str = checked(textwrap.indent(text, prefix))
    return result


TEXTWRAP: dict[str, Any] = {
    "dedent": paying(textwrap.dedent, 2),
    "fill": _wrapping(textwrap.fill),
    "indent": _indent,
    "shorten": _wrapping(textwrap.shorten),
    "wrap": _wrapping(textwrap.wrap),
}
HTML: dict[str, Any] = {"escape": paying(html.escape, 1), "unescape": paying(html.unescape, 4)}
UNICODEDATA: dict[str, Any] = {
    name: paying(getattr(unicodedata, name), 2, 18 if name == "normalize" else 0)
    for name in LIBRARY["unicodedata"]
}


def _pay_pairs(a: Any, b: Any) -> None:
    """Charges for work that is quadratic in two sequences, or worse if items repeat."""
    n_a, n_b = len(a), len(b)
    check_items(max(n_a, n_b))
    measure(a)
    measure(b)
    charge(20 + n_a + 4 * n_b + (n_a * n_b >> 1))


def _matcher(isjunk: Any = None, a: Any = "", b: Any = "", autojunk: Any = True) -> Any:
    if isjunk is not None:
        raise NotAllowed("SequenceMatcher with isjunk is not allowed in a graph's code")
    a, b = drained(a), drained(b)
    check_shown(a)
    check_shown(b)
    _pay_pairs(a, b)
    a, b = (each if isinstance(each, str) else list(each) for each in (a, b))
    return difflib.SequenceMatcher(None, a, b, bool(autojunk))


def _match_cost(matcher: Any, *args: Any) -> None:
    _pay_pairs(matcher.a, matcher.b)


_MATCHER = difflib.SequenceMatcher
METHODS[_MATCHER] = {
    name: bounded_method(_MATCHER, name, _match_cost, as_data)
    for as_data in [lambda value: [tuple(each) for each in value] if type(value) is list else value]
    for name in ("get_matching_blocks", "get_opcodes", "quick_ratio", "ratio", "real_quick_ratio")
}
_BLOCKS = type(difflib.Match(0, 0, 0))
METHODS[_MATCHER]["get_matching_blocks"] = bounded_method(
    _MATCHER, "get_matching_blocks", _match_cost
)
METHODS[_MATCHER]["find_longest_match"] = bounded_method(
    _MATCHER, "find_longest_match", _match_cost
)
DATA[_BLOCKS] = frozenset({"a", "b", "size"})
GUARDS[_MATCHER] = _matcher


def _close_matches(word: Any, possibilities: Any, n: Any = 3, cutoff: Any = 0.6) -> Any:
    found = drained(possibilities)
    for each in found:
        if isinstance(each, str) and isinstance(word, str):
            _pay_pairs(each, word)
        elif type(each) in CONTAINERS or not isinstance(word, str):
            raise NotAllowed("get_close_matches takes texts in a graph's code")
    return difflib.get_close_matches(word, found, n, cutoff)


def _diff(real: Callable[..., Any], weight: int) -> Callable[..., Any]:
    def function(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        a, b = list(drained(a)), list(drained(b))
        if set(map(type, [*a, *b])) - {str}:
            raise TypeError("lines to compare must be str")
        _pay_pairs(a, b)
        n_a, n_b = sum(map(len, a)), sum(map(len, b))
        # ndiff compares pairs of lines repeatedly, character by character.
        charge(weight * (n_a + 1) * (n_b + 1) * min(len(a) + 1, len(b) + 1) >> 2)
        for each in (*args, *kwargs.values()):
            if not isinstance(each, (str, int)):
                raise NotAllowed("functions are no arguments of a diff in a graph's code")
        found = list(real(a, b, *args, **kwargs))
        charge(sum(map(len, found)) >> 4)
        return iter(found)

    return function


DIFFLIB: dict[str, Any] = {
    "SequenceMatcher": _MATCHER,
    "get_close_matches": _close_matches,
    "ndiff": _diff(difflib.ndiff, 1),
    "unified_diff": _diff(difflib.unified_diff, 0),
}
BASE64: dict[str, Any] = {name: paying(getattr(base64, name), 1) for name in LIBRARY["base64"]}


def _hash(name: str) -> Callable[..., Any]:
    def function(data: Any = b"", *, usedforsecurity: Any = True) -> Any:
        charge(16 + (len(data) >> 5 if isinstance(data, (bytes, str)) else 0))
        return hashlib.new(name, data, usedforsecurity=bool(usedforsecurity))

    return function


_HASH = type(hashlib.new("sha256"))
METHODS[_HASH] = {
    **{name: getattr(_HASH, name) for name in ("digest", "hexdigest")},
    "update": bounded_method(
        _HASH, "update", lambda found, data=b"", *args: charge(1 + (len(data) >> 5))
    ),
}
HASHLIB: dict[str, Any] = {name: _hash(name) for name in LIBRARY["hashlib"]}


DATA[uuid.UUID] = frozenset({"bytes", "fields", "hex", "int", "node", "urn", "variant", "version"})
GUARDS[uuid.UUID] = paying(uuid.UUID, 1)
UUID: dict[str, Any] = {name: getattr(uuid, name) for name in LIBRARY["uuid"]} | {
    name: paying(getattr(uuid, name), 1) for name in ("uuid3", "uuid5")
}


def _joined(base: Any, url: Any, allow_fragments: Any = True) -> Any:
    for each in (base, url):
        charge(64 + (len(each) if isinstance(each, str) else 0))
        check_length(10 * len(each) if isinstance(each, str) else 0)
    return urllib.parse.urljoin(base, url, bool(allow_fragments))


_PARSED = type(urllib.parse.urlparse(""))
DATA[_PARSED] = frozenset(
    {"fragment", "hostname", "netloc", "params", "password", "path", "port", "query", "scheme",
     "username"}
)  # fmt: skip
METHODS[_PARSED] = {"geturl": _PARSED.geturl}
URLLIB_PARSE: dict[str, Any] = {
    "parse_qs": paying(urllib.parse.parse_qs, 4),
    "parse_qsl": paying(urllib.parse.parse_qsl, 4),
    "quote": paying(urllib.parse.quote, 2),
    "quote_plus": paying(urllib.parse.quote_plus, 2),
    "unquote": paying(urllib.parse.unquote, 2),
    "unquote_plus": paying(urllib.parse.unquote_plus, 2),
    "urlencode": paying(urllib.parse.urlencode, 4),
    "urljoin": _joined,
    "urlparse": paying(urllib.parse.urlparse, 2),
}
