"""Abstract values of any of Python's types."""

from __future__ import annotations

from typing import Any

from sgc.ir import types
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.values.abstract_list import AbstractList, holding
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.computing import computed
from sgc.tracing.values.json.abstract_json import (
    DATA,
    NAMES,
    AbstractJson,
    as_told,
    is_plain_data,
    seen,
)
from sgc.tracing.values.json.dict_views import is_of_code


class AbstractObject(AbstractJson):
    """A value of any Python type; operations that not every type has become code."""

    __slots__ = ()

    part_type = OBJECT

    @property
    def may_be_users(self) -> bool:
        """Whether the value may be an object of a user's class, with methods of its own."""
        return bool(self.session.sites.classes)

    def is_a(self, *of: type) -> bool:
        if not set(of) <= NAMES.keys():
            self.needs_type()
        return super().is_a(*of)

    def __getitem__(self, key: Any) -> Any:
        self.session.before_adding(self.symbol)
        if is_member(key) and not self.session.may_add(self.symbol):
            return self._coded("a[b]", key)
        is_key = isinstance(key, (str, int, float, AbstractNumber, AbstractJson)) or is_member(key)
        if not is_key or not self.session.may_add(self.symbol):
            return super().__getitem__(key)
        if isinstance(key, AbstractJson):
            if self._coded("b in a", key, type_=types.BOOL):
                return super().__getitem__(key)
        elif is_member(key):
            if self._coded("b in a", key, type_=types.BOOL):
                return self._coded("a[b]", key)
        elif computed(self.session, "has", self, key):
            return seen(computed(self.session, "item", self, key, type_=OBJECT))
        if not self.session.is_given(self.symbol):
            self._changed()
        return self.session.added(self, key)

    def _compared(self, fn: str, other: object, otherwise: bool) -> Any:
        if is_of_code(other):
            self.needs_type()
        return super()._compared(fn, other, otherwise)

    def __contains__(self, item: Any) -> bool:
        if is_member(item):
            return bool(self._coded("b in a", item, type_=types.BOOL))
        return super().__contains__(item)

    @as_told
    def iterated(self) -> AbstractList:
        if self.symbol.name not in self.session.defaulting and self.is_a(list, str):
            return self
        return self._coded("list(a)", type_=types.list_of(OBJECT))  # type: ignore[no-any-return]

    def joined(self, separator: Any) -> Any:
        """`separator.join(self)`"""
        return self._coded("b.join(a)", separator, type_=types.TEXT)

    def shown_as_text(self) -> Any:
        """`str(self)`"""
        return self._coded("str(a)", type_=types.TEXT)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, str) and self.may_be_users:
            return self._coded("a + b", other)
        return super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, str) and self.may_be_users:
            return self._coded("b + a", other)
        return super().__radd__(other)

    @as_told
    def items(self) -> Any:
        return self._view("items")

    @as_told
    def values(self) -> Any:
        return self._view("values")

    @as_told
    def keys(self) -> Any:
        return self._view("keys")

    def _view(self, part: str) -> Any:
        items = self._coded(f"list(a.{part}())", type_=types.list_of(OBJECT))
        return self.session.viewed(items, self, part)

    @as_told
    def get(self, *args: Any) -> Any:
        if not all(map(is_plain_data, args)) or len(args) != 2:
            self.needs_type()
        code = "def piece(a, b, c):\n    return a.get(b, c)"
        found = self.session.coded(code, (self, *args), OBJECT)
        return self.session.seen(holding(found, args[1:]))

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TEXTS:
            return getattr(self.as_text(name), name)
        if name.startswith("__"):
            raise AttributeError(name)
        self.needs_type()


# Methods that only texts and bytes have.
_OF_TEXTS = frozenset({
    "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "swapcase",
    "center", "ljust", "rjust", "zfill", "removeprefix", "removesuffix", "split", "rsplit",
    "splitlines", "partition", "rpartition", "startswith", "endswith", "find", "rfind", "rindex",
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower",
    "isnumeric", "isprintable", "isspace", "istitle", "isupper",
})  # fmt: skip

# The names of an AbstractObject's own attributes, which a user's object may have too; and those
# among them that no method of Python's types has.
OWN_NAMES = _OF_TEXTS | {name for name in dir(AbstractObject) if not name.startswith("_")}
INNER_NAMES = OWN_NAMES - {name for of in (str, *DATA, set, float) for name in dir(of)}
