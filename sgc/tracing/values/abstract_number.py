"""Abstract numbers: ints, floats and bools known only at run time.

Arithmetic and comparisons become nodes. If Python itself needs a bool's value, that is a decision.
For the program's own `isinstance`, an abstract number has the type that it stands for.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

from sgc.core.markers import has_marker
from sgc.core.places import is_ours
from sgc.core.stops import IN_A_TOOL, INTERPRET, stop
from sgc.core.symbols import Symbol, has_symbol
from sgc.ir import types
from sgc.ir.types import Kind
from sgc.tracing.values.computing import attempted, computed, formatted_by
from sgc.tracing.values.recorder import Recorder

_PYTHON = {Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool}


class AbstractNumber:
    """An int or float known only at run time."""

    __slots__ = ("session", "symbol")

    def __init__(self, symbol: Symbol, session: Recorder) -> None:
        self.symbol = symbol
        self.session = session

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self) if is_ours(1) else self.python

    @property
    def python(self) -> type:
        """The Python type that the number stands for."""
        return _PYTHON[self.symbol.type.kind]

    # -- showing ----------------------------------------------------------------------------

    def __format__(self, spec: str) -> str:
        if has_marker(spec):
            return formatted_by(self.session, self, spec)  # type: ignore[no-any-return]
        if not spec:
            return self.session.marker(self.symbol)
        format(self.python(), spec)  # raises Python's own error
        return self.session.formatted(self, spec)

    def __str__(self) -> str:
        text: str = computed(self.session, "str", self)
        return text

    __repr__ = __str__

    # -- comparisons ------------------------------------------------------------------------

    def _compared(self, fn: str, other: object, otherwise: Any) -> Any:
        if type_of(other) is not None:
            return computed(self.session, fn, self, other)
        return NotImplemented if has_symbol(other) else otherwise

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other, False)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other, True)

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other, NotImplemented)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other, NotImplemented)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other, NotImplemented)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other, NotImplemented)

    def __bool__(self) -> bool:
        return bool(computed(self.session, "truth", self))

    # -- arithmetic -------------------------------------------------------------------------

    def _binary(self, fn: str, other: Any, is_reflected: bool = False) -> Any:
        if type_of(other) is None:
            return NotImplemented
        left, right = (other, self) if is_reflected else (self, other)
        return binary(self.session, fn, left, right)

    def __neg__(self) -> Any:
        return computed(self.session, "neg", self, type_=_arithmetic_type(self))

    def __pos__(self) -> Any:
        return computed(self.session, "pos", self, type_=_arithmetic_type(self))

    def __abs__(self) -> Any:
        return computed(self.session, "abs", self, type_=_arithmetic_type(self))

    def __invert__(self) -> Any:
        if self.symbol.type.kind is Kind.FLOAT:
            return ~0.0  # type: ignore[operator]  # raises Python's own error
        return computed(self.session, "invert", self)

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if type_of(other) is None else _divmod(self.session, self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return NotImplemented if type_of(other) is None else _divmod(self.session, other, self)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            stop("pow() with a modulus", hint="write (a ** b) % m; or " + INTERPRET)
        return self._binary("pow", other)

    def __rpow__(self, other: Any) -> Any:
        return self._binary("pow", other, is_reflected=True)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, str):
            return computed(self.session, "repeat", other, self)
        return self._binary("mul", other)

    __rmul__ = __mul__

    def __round__(self, digits: Any = None) -> Any:
        is_float = self.symbol.type.kind is Kind.FLOAT
        if digits is not None:
            type_ = types.FLOAT if is_float else types.INT
            return computed(self.session, "round", self, digits, type_=type_)
        return self._whole("round") if is_float else +self

    def _whole(self, fn: str) -> Any:
        """A float as a whole number; for nan and the infinities Python raises an error."""
        return attempted(
            self.session, fn, self, type_=types.INT, errors=("OverflowError", "ValueError")
        )

    def __floor__(self) -> Any:
        return self._whole("floor") if self.symbol.type.kind is Kind.FLOAT else +self

    def __ceil__(self) -> Any:
        return self._whole("ceil") if self.symbol.type.kind is Kind.FLOAT else +self

    def __trunc__(self) -> Any:
        return self._whole("int") if self.symbol.type.kind is Kind.FLOAT else +self

    # -- what stops the trace ---------------------------------------------------------------

    def __hash__(self) -> int:
        stop(
            f"{self.session.name_of(self.symbol)} is looked up in a dict or set",
            hint="compare it with each key, or look up str(x) in sgc.table({…}); or " + INTERPRET,
        )

    def __index__(self) -> int:
        stop(
            f"{self.session.name_of(self.symbol)} is needed as a number while tracing",
            hint="write xs[n], range(n), int(n), float(n) and f-strings, in the program's own "
            "module; to pick a stream, compare, `for i, f in enumerate(forks): if i == n`; or "
            + self._bind()
            + INTERPRET,
        )

    def _bind(self) -> str:
        name = self.session.name_of(self.symbol)
        is_given = self.session.is_parameter(name)
        return f"give its value when compiling: --bind {name}=N; or " if is_given else ""

    __int__ = __float__ = __complex__ = __index__

    def __copy__(self) -> Self:
        return self  # it never changes

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        stop("a value known only at run time cannot be pickled", IN_A_TOOL)

    def __getattr__(self, name: str) -> Any:
        if hasattr(object.__getattribute__(self, "python"), name):
            stop(
                f"{self.python.__name__}.{name} of {self.session.name_of(self.symbol)}, which is "
                "known only at run time",
                hint="use operators, comparisons, round() and abs(); or " + INTERPRET,
            )
        raise AttributeError(f"{self.python.__name__!r} object has no attribute {name!r}")


class AbstractBool(AbstractNumber):
    """A test of abstract values; Python's own `if` makes it a decision."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return self.session.decide(self.symbol)

    def __hash__(self) -> int:
        stop(
            f"{self.session.name_of(self.symbol)} is looked up in a dict or set",
            hint="write table[bool(x)], which decides it first; or " + INTERPRET,
        )


def type_of(value: Any) -> type | None:
    """int, float or bool for a plain or abstract number; else None."""
    if isinstance(value, AbstractNumber):
        return value.python
    if isinstance(value, (bool, int, float)):
        return bool if isinstance(value, bool) else int if isinstance(value, int) else float
    return None


def _arithmetic_type(*values: Any) -> types.Type:
    return types.FLOAT if any(type_of(value) is float for value in values) else types.INT


_DIVISIONS = ("truediv", "floordiv", "mod")
_BITS = ("bit_and", "bit_or", "bit_xor", "lshift", "rshift")


def binary(session: Recorder, fn: str, left: Any, right: Any) -> Any:
    """An operation on two numbers, at least one of them abstract."""
    if fn == "pow":
        return _pow(session, left, right)
    if fn in _BITS:
        return _bits(session, fn, left, right)
    type_ = types.FLOAT if fn == "truediv" else _arithmetic_type(left, right)
    if fn in _DIVISIONS and not _is_not_zero(right):
        return attempted(session, fn, left, right, type_=type_, errors=("ZeroDivisionError",))
    return computed(session, fn, left, right, type_=type_)


def _divmod(session: Recorder, left: Any, right: Any) -> tuple[Any, Any]:
    type_ = _arithmetic_type(left, right)
    record = computed if _is_not_zero(right) else attempted
    first = record(session, "divmod", left, right, 0, type_=type_)
    return first, computed(session, "divmod", left, right, 1, type_=type_)


def _is_not_zero(value: Any) -> bool:
    return not isinstance(value, AbstractNumber) and value != 0


def _bits(session: Recorder, fn: str, left: Any, right: Any) -> Any:
    kinds = {type_of(left), type_of(right)}
    if float in kinds:
        return NotImplemented
    type_ = types.BOOL if kinds == {bool} and fn.startswith("bit_") else types.INT
    if fn in ("lshift", "rshift") and (isinstance(right, AbstractNumber) or right < 0):
        return attempted(session, fn, left, right, type_=type_)
    return computed(session, fn, left, right, type_=type_)


def _pow(session: Recorder, base: Any, exponent: Any) -> Any:
    """A power; whether a power of ints is an int depends on the exponent's sign."""
    is_float = float in (type_of(base), type_of(exponent))
    if not is_float and exponent >= 0:
        return computed(session, "pow", base, exponent, type_=types.INT)
    return attempted(session, "pow", base, exponent, type_=types.FLOAT)


def _operator(fn: str, is_reflected: bool) -> Any:
    def method(self: AbstractNumber, other: Any) -> Any:
        return self._binary(fn, other, is_reflected)

    return method


def _fill() -> None:
    dunders = {
        "add": "add", "sub": "sub", "truediv": "truediv", "floordiv": "floordiv", "mod": "mod",
        "and": "bit_and", "or": "bit_or", "xor": "bit_xor", "lshift": "lshift", "rshift": "rshift",
    }  # fmt: skip
    for short, fn in dunders.items():
        setattr(AbstractNumber, f"__{short}__", _operator(fn, False))
        setattr(AbstractNumber, f"__r{short}__", _operator(fn, True))


_fill()
