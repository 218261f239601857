"""Abstract values out of JSON, whose types are known only at run time.

Tests of a value's type are decisions; operations that the type does not allow fail as in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from string import ascii_lowercase
from types import CodeType, FrameType
from typing import Any, NoReturn, TypeVar, cast

from sgc.core.markers import has_marker
from sgc.core.places import here, is_ours
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import has_symbol
from sgc.errors import AppendError
from sgc.ir import types
from sgc.lang.words import Expr
from sgc.tracing.code.in_place import is_in_place, refuse_extended
from sgc.tracing.code.operations import function_has, program_has
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.kinds.text_types import known_of
from sgc.tracing.values.abstract_list import AbstractList, holding
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.computing import attempted, computed, formatted_by, part_by, whole
from sgc.tracing.values.json.dict_views import is_of_code

PATTERNS = frozenset({"MATCH_MAPPING", "MATCH_SEQUENCE", "MATCH_CLASS"})
NAMES: dict[Any, str] = {
    type(None): "NoneType", bool: "bool", dict: "dict", float: "float", int: "int", list: "list",
    str: "str",
}  # fmt: skip


def seen(value: Any) -> Any:
    """A value as the program reads it."""
    if isinstance(value, AbstractJson) and not value.is_record:
        refuse_patterns()
    return value


_Method = TypeVar("_Method", bound=Callable[..., Any])


def as_told(method: _Method) -> _Method:
    """Delegates a method to the value as its schema describes it, if it has a schema."""
    name = method.__name__

    @wraps(method)
    def call(self: AbstractJson, *args: Any) -> Any:
        told = self.told()
        return method(self, *args) if told is None else getattr(told, name)(*args)

    return cast("_Method", call)


def refuse_patterns(code: CodeType | None = None, values: Sequence[Any] = ()) -> None:
    """Stops the trace if a pattern may inspect a value that is read here, because patterns call no
    method. code, values: a function that is about to run, and its arguments.
    """
    is_given = any(isinstance(value, AbstractJson) for value in values)
    is_theirs = code is not None and is_given and function_has(code, PATTERNS)
    if is_theirs or (code is None and program_has(PATTERNS)):
        stop(
            "`match` looks into a value out of JSON",
            hint='write `if isinstance(v, dict) and "key" in v: …`; or ' + INTERPRET,
        )


class AbstractJson(AbstractList):
    """A value out of JSON: a dict, list, text, number, bool or None."""

    __slots__ = ()

    is_record = False  # whether it is an object of a class of the user's

    def told(self) -> Any:
        """The value as its schema describes it; None if it has no schema."""
        shape = known_of(self.symbol, self.session).shape
        return None if shape is None else shape.view(self)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        if is_ours(1):
            return type(self)
        stop(
            f"the type of {self.session.name_of(self.symbol)} is asked for outside the program's "
            "module",
            hint="call isinstance() in the program's own module; or " + INTERPRET,
        )

    @as_told
    def is_a(self, *of: type) -> bool:
        """`isinstance`, as a decision."""
        self.session.has_untyped = True
        names = [name for type_, name in NAMES.items() if issubclass(type_, of)]
        return bool(computed(self.session, "is_a", self, *names)) if names else False

    def or_none(self) -> Any:
        """None or the value itself, by a decision."""
        return None if self.is_a(type(None)) else self

    def as_argument(self) -> Any:
        """The value as a text, by a decision; else a plain value of its type, for which Python
        raises its own error where it expects a text."""
        if self.is_a(str):
            return computed(self.session, "as", self, "str", "strip", type_=types.TEXT)
        return next((of() for of in NAMES if of is not str and self.is_a(of)), 0)

    def as_appended(self) -> Any:
        """The value as a text, by a decision; raises AppendError if it is no text."""
        if self.is_a(str):
            return computed(self.session, "as", self, "str", "strip", type_=types.TEXT)
        raise AppendError(
            "only text and expressions can be appended, found a value out of JSON that is no text",
            where=here(),
            hint="write str(x) for a number, and s += gen(...) for a generation",
        )

    # -- parts ------------------------------------------------------------------------------

    @as_told
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            ends = [whole(end) for end in (key.start, key.stop, key.step)]
            return seen(attempted(self.session, "slice", self, *ends, type_=self.part_type))
        self._refuse_tuples(key)
        if (found := part_by(self, key, self.part_type)) is not None:
            return seen(found)
        is_text = isinstance(key, str)
        errors = ("KeyError", "TypeError") if is_text else ("KeyError", "IndexError", "TypeError")
        given = key if is_text else whole(key)
        return seen(
            attempted(self.session, "item", self, given, type_=self.part_type, errors=errors)
        )

    def iterated(self) -> AbstractList:
        """The iterable of a loop: a list itself, a dict's keys; Python's TypeError for others."""
        if self.is_a(list, str):
            return self
        if self.is_a(dict):
            keys: AbstractList = computed(
                self.session, "keys", self, type_=types.list_of(types.TEXT)
            )
            return keys
        others = (type(None), bool, int)
        name = next((NAMES[of] for of in others if self.is_a(of)), "float")
        raise TypeError(f"{name!r} object is not iterable")

    __reversed__ = AbstractList._needs_items  # its errors differ from a loop's

    @as_told
    def sure_item(self, index: Any) -> Any:
        return super().sure_item(index)

    @as_told
    def get(self, key: Any, default: Any = None) -> Any:
        self._refuse_tuples(key, default)
        found = attempted(self.session, "get", self, key, default, type_=self.part_type)
        return seen(holding(found, [default]))

    @as_told
    def keys(self) -> Any:
        keys = attempted(self.session, "keys", self, type_=types.list_of(types.TEXT))
        return self.session.viewed(keys, self, "keys")

    @as_told
    def items(self) -> Any:
        return self._needs_parts("items")

    @as_told
    def values(self) -> Any:
        return self._needs_parts("values")

    def _needs_parts(self, name: str) -> NoReturn:
        stop(
            f"the {name}() of {self.session.name_of(self.symbol)} are needed while tracing",
            hint="read the keys that you need, v[key]; or " + INTERPRET,
        )

    @as_told
    def length(self) -> Any:
        """`len`; not `__len__`, which must return an int."""
        return attempted(self.session, "len", self)

    @as_told
    def __contains__(self, item: Any) -> bool:
        self._refuse_tuples(item)
        return bool(attempted(self.session, "has", self, item))

    def _refuse_tuples(self, *given: Any) -> None:
        """Stops the trace at a tuple, which a function of the graph would get as a list."""
        if any(isinstance(each, tuple) for each in given):
            self.needs_type()

    # -- as other types -----------------------------------------------------------------------

    def _compared(self, fn: str, other: object, otherwise: bool) -> Any:
        if is_member(other):
            return self._coded(f"a {_COMPARING[fn]} b", other, type_=types.BOOL)
        is_data = other is None or has_symbol(other) or isinstance(other, DATA)
        if not is_data or is_of_code(other):
            return otherwise
        return computed(self.session, fn, self, other)

    @as_told
    def __bool__(self) -> bool:
        return bool(computed(self.session, "truth", self))

    def __format__(self, spec: str) -> str:
        if has_marker(spec):
            return formatted_by(self.session, self, spec)  # type: ignore[no-any-return]
        if not spec:
            return self.session.marker(self.symbol)
        text: str = attempted(self.session, "format", self, spec)
        return text

    def __repr__(self) -> str:
        text: str = computed(self.session, "repr", self)
        return text

    def as_text(self, attribute: str) -> Any:
        """The value as a text; raises the AttributeError for this attribute if it is no text."""
        return attempted(self.session, "as", self, "str", attribute, type_=types.TEXT)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, str):
            return attempted(self.session, "concat", self, other)
        if isinstance(other, Expr):
            return self._in_sequence("", type(other).__name__) + other
        return self._coded("a + b", other)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, str):
            return attempted(self.session, "concat", other, self)
        if isinstance(other, Expr):
            return other + self._in_sequence(type(other).__name__, "")
        return self._right_of("+", other, sys._getframe(1))

    def _in_sequence(self, before: str, after: str) -> Any:
        """The value as a text in a sequence, by a decision; raises Python's TypeError otherwise."""
        if self.is_a(str):
            return self.as_appended()
        name = next((name for of, name in NAMES.items() if of is not str and self.is_a(of)), "")
        if name == "list" and after:
            raise TypeError(f'can only concatenate list (not "{after}") to list')
        left, right = before or name, after or name
        raise TypeError(f"unsupported operand type(s) for +: {left!r} and {right!r}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if hasattr(str, name):
            return getattr(self.as_text(name), name)
        self.needs_type()

    def needs_type(self, *args: Any, **kwargs: Any) -> NoReturn:
        stop(
            f"{self.session.name_of(self.symbol)} is a value out of JSON, whose type is not known",
            hint="write int(v), float(v) or str(v) to calculate and compare; or " + INTERPRET,
        )

    def _coded(self, expression: str, *others: Any, type_: types.Type = OBJECT) -> Any:
        """A Python operation as code, on this value as `a` and on others as `b`, `c` and so on."""
        if not all(map(is_plain_data, others)) or len(others) >= len(ascii_lowercase):
            self.needs_type()
        names = ascii_lowercase[: 1 + len(others)]
        code = f"def piece({', '.join(names)}):\n    return {expression}"
        made = self.session.coded(code, (self, *others), type_)
        if isinstance(made, AbstractJson) and expression[2:-2] in _CALCULATING:
            self._note_number(made, *others)
        return self.session.seen(made)

    def _in_place(self, sign: str, other: Any) -> Any:
        """An operation in place, as code: it returns a new text or number, or changes a list, but
        not a list that others may hold."""
        is_number = self._is_number() or _is_number(other)
        is_text = isinstance(other, str) and self.symbol.type == types.JSON
        if self.told() is not None or not (is_number or is_text):
            self._changed()
        self.session.before_changing()
        code = f"def piece(a, b):\n    a {sign}= b\n    return a"
        made = self.session.coded(code, (self, other), OBJECT)
        self._note_number(made, other)
        return self.session.seen(made)

    def _is_number(self) -> bool:
        """Whether the value is likely a number: the result of calculating with one."""
        return self.symbol.name in self.session.numbers

    def _note_number(self, made: Any, other: Any) -> None:
        if self._is_number() or _is_number(other):
            self.session.numbers.add(made.symbol.name)

    def _right_of(self, sign: str, left: Any, frame: FrameType) -> Any:
        """A frame's operation as code, with this value as `a` on the right of another as `b`."""
        if type(left) is list:
            refuse_extended(left, self.session.name_of(self.symbol), frame, is_typed=False)
        elif type(left) is not dict and is_plain_data(left) and is_in_place(frame):
            # An error names the operator; what is neither a list nor a dict does not change.
            code = f"def piece(a, b):\n    b {sign}= a\n    return b"
            made = self.session.coded(code, (self, left), OBJECT)
            self._note_number(made, left)
            return self.session.seen(made)
        return self._coded(f"b {sign} a", left)

    __index__ = __int__ = __float__ = __trunc__ = __floor__ = __ceil__ = needs_type
    __matmul__ = __rmatmul__ = __next__ = __call__ = count = index = copy = needs_type

    def _changed(self, *args: Any, **kwargs: Any) -> NoReturn:
        stop(
            f"{self.session.name_of(self.symbol)}, a value out of JSON, is changed",
            hint="make a dict of what you need, {key: v[key]}; or " + INTERPRET,
        )

    __setitem__ = __delitem__ = append = extend = insert = remove = _changed
    pop = clear = sort = reverse = update = setdefault = popitem = _changed

    def __round__(self, *n: Any) -> Any:
        return self._coded("round(a, b)", *n) if n else self._coded("round(a)")

    def __rmod__(self, template: Any) -> Any:
        if isinstance(template, str):
            return template % (self,)
        return self._coded("b % a", template)

    def __hash__(self) -> int:
        stop(
            f"{self.session.name_of(self.symbol)} is looked up in a dict or set",
            hint="wrap the dict, sgc.table({…})[str(v)]; or " + INTERPRET,
        )


def _is_number(value: Any) -> bool:
    if isinstance(value, AbstractJson):
        return value._is_number()
    return type(value) in (int, float, bool) or isinstance(value, AbstractNumber)


def _operation(expression: str, type_: types.Type = OBJECT) -> Callable[..., Any]:
    return lambda self, *others: self._coded(expression, *others, type_=type_)


def _reflected(sign: str) -> Callable[..., Any]:
    return lambda self, left: self._right_of(sign, left, sys._getframe(1))


_CALCULATING = frozenset({"+", "-", "*", "/", "//", "%", "**"})


def _extending(sign: str) -> Callable[..., Any]:
    return lambda self, other: self._in_place(sign, other)


_SIGNS = {
    "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "pow": "**", "and": "&", "or": "|",
    "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
for _name, _sign in {**_SIGNS, "add": "+", "mod": "%"}.items():
    setattr(AbstractJson, f"__i{_name}__", _extending(_sign))
_OPERATIONS = {
    **{name: f"a {sign} b" for name, sign in _SIGNS.items()},
    "mod": "a % b", "divmod": "divmod(a, b)", "rdivmod": "divmod(b, a)",
    "neg": "-a", "pos": "+a", "invert": "~a", "abs": "abs(a)",
}  # fmt: skip
for _name, _expression in _OPERATIONS.items():
    setattr(AbstractJson, f"__{_name}__", _operation(_expression))
for _name, _sign in _SIGNS.items():
    setattr(AbstractJson, f"__r{_name}__", _reflected(_sign))
for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(AbstractJson, f"__{_name}__", _operation(f"a {_sign} b", types.BOOL))


def is_plain_data(value: Any) -> bool:
    is_one = value is None or has_symbol(value) or isinstance(value, str)
    return is_one or type(value) in (*DATA, bool) or is_member(value)


DATA = (str, int, float, list, dict)
_COMPARING = {"eq": "==", "ne": "!="}
