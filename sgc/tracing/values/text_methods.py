"""The methods of abstract text, which record their calls.

Each call is first made on a plain text, so that wrong arguments raise Python's own error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from sgc.core.markers import has_marker
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import has_symbol, symbol_in
from sgc.ir import types
from sgc.ir.functions import FUNCTIONS
from sgc.tracing.kinds.text_types import Known
from sgc.tracing.values.computing import attempted, computed, note_known, whole

Method = Callable[..., Any]

# Attributes of `str` that do not read the text's content.
kept_names = frozenset({
    "__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__", "__doc__",
    "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__getstate__", "__reduce__",
    "__getnewargs__", "maketrans",
})  # fmt: skip

_KEYWORDS = {
    "split": ("sep", "maxsplit"),
    "rsplit": ("sep", "maxsplit"),
    "splitlines": ("keepends",),
    "expandtabs": ("tabsize",),
    "replace": ("old", "new", "count"),
}
_DEFAULTS = {"sep": None, "maxsplit": -1, "keepends": False, "tabsize": 8, "count": -1}


def _check(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises Python's own TypeError for wrong arguments."""
    # Errors that depend on the values are raised by the recorded function.
    with contextlib.suppress(ValueError):
        given = {k: stand_in(v) for k, v in kwargs.items()}
        getattr("a", name)(*map(stand_in, args), **given)  # raises Python's own error


def stand_in(value: Any) -> Any:
    """A plain value of the same type."""
    symbol = symbol_in(value)
    if symbol is not None:
        kinds = {types.Kind.INT: 1, types.Kind.BOOL: True, types.Kind.FLOAT: 1.0}
        if symbol.type.kind is types.Kind.LIST:
            return ["a"]
        if symbol.type.kind not in kinds:
            stop(
                "a value out of JSON is an argument of a method of a text",
                hint="write str(value), int(value) or the like; or " + INTERPRET,
            )
        return kinds[symbol.type.kind]
    if isinstance(value, str) and has_marker(value):
        return "a"
    return tuple(map(stand_in, value)) if isinstance(value, tuple) else value


def _positional(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments in order, with defaults filled in up to the last given one."""
    n_texts = _N_TEXTS.get(name, 0)
    args = (*map(_decided, args[:n_texts]), *args[n_texts:])
    texts = _KEYWORDS.get(name, ())[:n_texts]
    kwargs = {key: _decided(each) if key in texts else each for key, each in kwargs.items()}
    _check(name, args, kwargs)
    found = list(args)
    if kwargs:
        for keyword in _KEYWORDS[name][len(args) :]:
            found.append(kwargs.get(keyword, _DEFAULTS.get(keyword)))
    return [_plainly(value) for value in found]


# How many of the first arguments are texts, or may be None.
_N_TEXTS = {
    "replace": 2, "count": 1, "find": 1, "index": 1, "rfind": 1, "rindex": 1, "startswith": 1,
    "endswith": 1, "strip": 1, "lstrip": 1, "rstrip": 1, "split": 1, "rsplit": 1, "partition": 1,
    "rpartition": 1, "removeprefix": 1, "removesuffix": 1,
}  # fmt: skip


def _decided(value: Any) -> Any:
    """A value out of JSON as a text, or as a plain value of its type, by a decision; if the piece
    around it can be code, that becomes code instead."""
    if not hasattr(type(value), "as_argument"):
        return value
    value.session.prefer_code("a value out of JSON is an argument of a method of a text")
    return value.as_argument()


def _plainly(value: Any) -> Any:
    """An argument, with any value that Python takes as a whole number converted to one."""
    is_given = value is None or isinstance(value, (str, tuple, bool)) or has_symbol(value)
    return value if is_given else whole(value)


def _recorded(name: str) -> Method:
    can_fail = bool(FUNCTIONS[name].error)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        record = attempted if can_fail else computed
        return record(self.session, name, self, *_positional(name, args, kwargs))

    return method


def _strip(name: str) -> Method:
    def method(self: Any, *args: Any) -> Any:
        given = _positional(name, args, {})
        return computed(self.session, name, self, *(arg for arg in given if arg is not None))

    return method


def _split(name: str) -> Method:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = _positional(name, args, kwargs)
        sep = given[0] if given else None
        is_sure = sep is None or (not has_marker(sep) and sep != "")
        if sep == "" and is_sure is False and not has_marker(sep):
            raise ValueError("empty separator")
        record = computed if is_sure else attempted
        items = record(self.session, name, self, *given, type_=types.list_of(types.TEXT))
        if sep is not None:
            note_known(self.session, items, Known(min_items=1))
        return items

    return method


def _splitlines(self: Any, *args: Any, **kwargs: Any) -> Any:
    given = [arg if has_symbol(arg) else bool(arg) for arg in args]
    given = given or [bool(value) for value in kwargs.values()]
    _check("splitlines", args, kwargs)
    return computed(self.session, "splitlines", self, *given, type_=types.list_of(types.TEXT))


def _partition(name: str) -> Method:
    def method(self: Any, *args: Any) -> Any:
        (sep,) = _positional(name, args, {})
        if not has_marker(sep):
            "".partition(sep)
            return tuple(computed(self.session, name, self, sep, i) for i in range(3))
        return tuple(attempted(self.session, name, self, sep, i) for i in range(3))

    return method


def _pad(name: str) -> Method:
    def method(self: Any, *args: Any) -> Any:
        if len(args) > 1 and isinstance(args[1], str) and has_marker(args[1]):
            stop(
                f"{name} with a fill character known only at run time",
                hint="fill with a text of your own; or " + INTERPRET,
            )
        return computed(self.session, name, self, *_positional(name, args, {}))

    return method


def _join(self: Any, items: Any) -> Any:
    if not has_symbol(items):
        items = list(items)
        if not all(isinstance(item, str) for item in items):
            "".join(items)  # raises Python's own error
            stop(
                "join of items that are not texts", hint="write str(item) for each; or " + INTERPRET
            )
        return computed(self.session, "join", self, items)
    if getattr(type(items), "joined", None) is not None and items.may_be_users:
        return items.joined(self)
    items = items.as_list() if hasattr(type(items), "as_list") else items
    is_of_text = items.symbol.type == types.list_of(types.TEXT)
    return (computed if is_of_text else attempted)(self.session, "join", self, items)


def refused_method(name: str) -> Method:
    """A method that stops the trace at the user's line."""
    what, hint = _REFUSED.get(name, (f"str.{name}", ""))

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        shown = self.shown()
        bind = f"give its value when compiling, --bind {shown}=VALUE; or "
        way_out = (bind if self.session.is_parameter(shown) else "") + INTERPRET
        stop(
            f"{what} of {shown}, which is known only at run time",
            (hint + "; " if hint else "") + way_out,
        )

    method.__name__ = name
    return method


_REFUSED = {
    "encode": ("the bytes", "programs work on texts; use the text itself"),
    "format": ("filling the template", "write the template into the program, and values into it"),
    "format_map": ("filling the template", "write the template into the program"),
    "translate": ("str.translate", "write .replace(old, new) once for each character"),
}

_PLAIN = (
    "capitalize", "casefold", "count", "endswith", "expandtabs", "find", "index", "isalnum",
    "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric",
    "isprintable", "isspace", "istitle", "isupper", "lower", "removeprefix", "removesuffix",
    "replace", "rfind", "rindex", "startswith", "swapcase", "title", "upper", "zfill",
)  # fmt: skip

METHODS: dict[str, Method] = {
    **{name: _recorded(name) for name in _PLAIN},
    **{name: _strip(name) for name in ("strip", "lstrip", "rstrip")},
    **{name: _split(name) for name in ("split", "rsplit")},
    **{name: _partition(name) for name in ("partition", "rpartition")},
    **{name: _pad(name) for name in ("center", "ljust", "rjust")},
    "join": _join,
    "splitlines": _splitlines,
}
for _name, _method in METHODS.items():
    _method.__name__ = _name  # a program may ask for it
    _method.__qualname__ = f"str.{_name}"
