"""Live objects, as a traced program sees them: an operation on one becomes code that the run
performs in the program's order. The types of live objects are known only at run time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from sgc.core.places import here, is_ours
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.errors import AppendError
from sgc.ir import types
from sgc.tracing.code.calling import LateMethod
from sgc.tracing.code.in_place import is_in_place
from sgc.tracing.values.abstract_loops import Loop
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.loops.unpacking import unpacked_by
from sgc.tracing.values.recorder import Recorder


class AbstractLive:
    """A live object, or a text, number, bool or None in its place. kind: the object's class, if the
    program has just made it by a call of the class."""

    __slots__ = ("kind", "session", "symbol")
    symbol: Symbol
    session: Recorder
    kind: type | None

    def __init__(self, symbol: Symbol, session: Recorder) -> None:
        object.__setattr__(self, "symbol", symbol)
        object.__setattr__(self, "session", session)
        object.__setattr__(self, "kind", None)

    def note_kind(self, kind: type) -> None:
        """Notes the object's class, so that finding its methods takes no decision."""
        if not {*kind.__mro__}.isdisjoint(self.session.sites.asking):  # type: ignore[attr-defined]
            object.__setattr__(self, "kind", kind)

    def _done(
        self, expression: str, *args: Any, type_: types.Type = types.LIVE, is_sure: bool = False
    ) -> Any:
        """The value of an expression of `a`, this object, and of `b` and `c`."""
        given = (self, *args)
        names = ", ".join("abcd"[: len(given)])
        code = f"def piece({names}):\n    return {expression}"
        return self.session.performed(code, given, (type_,), is_sure)[0]

    def _does(self, statement: str, *args: Any) -> None:
        names = ", ".join("abcd"[: 1 + len(args)])
        code = f"def piece({names}):\n    {statement}"
        self.session.performed(code, (self, *args), (types.LIVE,))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        by = sys._getframe(1).f_code.co_filename
        if is_ours(2 if by == "<frozen abc>" else 1):
            return type(self)
        _refuse("the type of a value known only at run time is asked for by a library")

    # -- parts ------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):  # Python itself looks it up
            raise AttributeError(name)
        session: Any = self.session
        if any(name in each for each in session.sites.asking.values()):
            return LiveMethod(self, name)  # a call of it is traced
        return self._done(f"a.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self._does(f"a.{name} = b", value)

    def __delattr__(self, name: str) -> None:
        self._does(f"del a.{name}")

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice:
            return self._done("a[b:c:d]", key.start, key.stop, key.step)
        return self._done("a[b]", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is slice:
            _refuse("a slice of a value known only at run time is set")
        self._does("a[b] = c", key, value)

    def __delitem__(self, key: Any) -> None:
        if type(key) is slice:
            _refuse("a slice of a value known only at run time is deleted")
        self._does("del a[b]", key)

    def __contains__(self, part: Any) -> bool:
        return bool(self._done("b in a", part, type_=types.BOOL))

    # -- what Python needs ---------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self._done("not not a", type_=types.BOOL))

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        n = unpacked_by(frame)
        if n is not None:
            return iter(self.unpacked(n))
        if not is_for_of(frame):
            _refuse("the items of a value known only at run time are needed while tracing")
        return self.session.looped(LiveLoop(self))

    def unpacked(self, n: int) -> list[Any]:
        """The items of `a, b = x`."""
        names = "".join(f"x{each}, " for each in range(n))
        code = f"def piece(a):\n    {names} = a\n    return [{names}]"
        if n == 1:
            code = "def piece(a):\n    b, = a\n    return b"
        return self.session.performed(code, (self,), (types.LIVE,) * n)

    def or_none(self) -> Any:
        """None or the object itself, by a decision."""
        return None if self._done("a is None", type_=types.BOOL, is_sure=True) else self

    def __enter__(self) -> Any:
        """The object itself: of the types that code may have, only `StringIO` supports `with`."""
        code = "import io\ndef piece(a):\n    return isinstance(a, io.StringIO)"
        if not self.session.performed(code, (self,), (types.BOOL,), True)[0]:
            self._does("refused('a value known only at run time is used by `with`')")
            raise TypeError("no context manager")  # raises Python's own error
        return self

    def __exit__(self, *error: Any) -> None:
        self._does("a.close()")

    def passed_to(self, function: str) -> Any:
        """The result of a builtin for the object."""
        return self._done(f"{function}(a)")

    def is_hashed(self) -> None:
        """Raises Python's error if the object cannot be a key."""
        self._done("len({a})")

    def as_(self, type_: types.Type) -> Any:
        """The object as a value of the graph of this type; a run fails if it has another type."""
        return self._done("a", type_=type_)

    def as_text(self, otherwise: str) -> Any:
        """The object as a text, by a decision; None if it is none, of which an expression of `a`
        may raise Python's error."""
        if self._done("isinstance(a, str)", type_=types.BOOL, is_sure=True):
            return self.as_(types.TEXT)
        self._done(otherwise)
        return None

    def as_appended(self) -> Any:
        """The object as a text to be appended, by a decision; raises AppendError if it is none."""
        if not self._done("isinstance(a, str)", type_=types.BOOL, is_sure=True):
            self.session.has_untyped = True
            raise AppendError(
                "only text and expressions can be appended, found another value",
                where=here(),
                hint="write str(x) for a number, and s += gen(...) for a generation",
            )
        return self.as_(types.TEXT)

    def __len__(self) -> NoReturn:
        _refuse("the length of a value known only at run time is needed while tracing")

    def __hash__(self) -> int:
        _refuse("a value known only at run time is looked up in a dict or set")

    def __index__(self) -> NoReturn:
        _refuse("a value known only at run time is needed as a number while tracing")

    __int__ = __float__ = __index__

    # -- showing ----------------------------------------------------------------------------

    def __format__(self, spec: str) -> str:
        text: str = self._done("format(a, b)", spec, type_=types.TEXT)
        return text

    def __str__(self) -> str:
        text: str = self._done("str(a)", type_=types.TEXT)
        return text

    def __repr__(self) -> str:
        text: str = self._done("repr(a)", type_=types.TEXT)
        return text


@dataclass(frozen=True, slots=True, eq=False)
class LiveMethod(LateMethod):
    """A method of a live object that may ask a model."""

    of: AbstractLive
    name: str


def _refuse(why: str) -> NoReturn:
    stop(why, INTERPRET)


def _operators(sign: str) -> Iterator[tuple[str, Any]]:
    """The methods of an operator, each with the prefix of its name."""

    def plain(self: AbstractLive, other: Any) -> Any:
        return self._done(f"a {sign} b", other)

    def reflected(self: AbstractLive, other: Any) -> Any:
        if is_in_place(sys._getframe(1)):  # an error names the operator
            return _updated(self, f"b {sign}= a", other, "b")
        return self._done(f"b {sign} a", other)

    def in_place(self: AbstractLive, other: Any) -> Any:
        return _updated(self, f"a {sign}= b", other, "a")

    return zip(("", "r", "i"), (plain, reflected, in_place), strict=True)


def _updated(of: AbstractLive, statement: str, other: Any, name: str) -> Any:
    code = f"def piece(a, b):\n    {statement}\n    return {name}"
    return of.session.performed(code, (of, other), (types.LIVE,))[0]


def _compared(sign: str) -> Any:
    return lambda self, other: self._done(f"not not (a {sign} b)", other, type_=types.BOOL)


for _name, _sign in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}.items():  # fmt: skip
    for _prefix, _made in _operators(_sign):
        setattr(AbstractLive, f"__{_prefix}{_name}__", _made)
for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(AbstractLive, f"__{_name}__", _compared(_sign))
for _name, _sign in {"neg": "-", "pos": "+", "invert": "~"}.items():
    setattr(AbstractLive, f"__{_name}__", lambda self, sign=_sign: self._done(f"{sign}a"))
setattr(AbstractLive, "__abs__", lambda self: self._done("abs(a)"))  # noqa: B010


class LiveLoop(Loop):
    """A `for` over a live object, with a live iterator."""

    made_by = "iter"

    def __init__(self, over: AbstractLive) -> None:
        self._session = over.session
        code = "def piece(a):\n    return iter(a)"
        self._iterator = over.session.performed(code, (over,), (types.LIVE,))[0]

    @property
    def index(self) -> Any:
        return None  # only the iterator knows how far it is

    def __next__(self) -> Any:
        more, item = self._session.performed(_STEP, (self._iterator,), (types.BOOL, types.LIVE))
        if not more:
            raise StopIteration
        return item


class LiveItems:
    """The items of a live object, as a list that a loop iterates beside streams."""

    is_filled = False

    def __init__(self, of: AbstractLive) -> None:
        self.session = of.session
        self._items = of._done("[*a]")
        self._n: Any = None

    def is_as_long_as(self, n: Any) -> None:
        """Ends a run in which there are not as many items as streams, because tracing would not
        know whether all streams have begun."""
        self._items._does(
            "if len(a) != b: refused(f'{len(a)} items beside a fork of {b}, both of run time')",
            n,
        )
        self._n = n

    @property
    def symbol(self) -> Symbol:
        return self._items.symbol  # type: ignore[no-any-return]

    def iterated(self) -> LiveItems:
        return self

    def n_items(self) -> Any:
        return self._items._done("len(a)", type_=types.INT) if self._n is None else self._n

    def sure_item(self, index: Any) -> Any:
        return self._items[index]

    def end_turn(self) -> None:
        """Does nothing: no stream ends with a turn."""

    def end_loop(self, is_whole: bool) -> None:
        """Does nothing."""


_STEP = (
    "def piece(iterator):\n"
    "    for item in iterator:\n"
    "        return [True, item]\n"
    "    return [False, None]"
)
