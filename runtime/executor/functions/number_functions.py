"""Functions of numbers: Python's own operators, with a limit on the size of ints."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.interface.value_limits import LimitExceeded, check_bits

Number = int | float


def _bounded(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation with a check of its result: an int has at most about as many digits as the
    operands together, so it is checked after it is computed.
    """

    def function(*args: Any) -> Any:
        try:
            result = operation(*args)
        except OverflowError as error:
            raise _too_large(error) from error
        if isinstance(result, int):
            check_bits(result.bit_length())
        return result

    return function


def _too_large(error: OverflowError) -> LimitExceeded:
    """An overflow of a float, which ends near 1.8e308, is reported like the other limits."""
    return LimitExceeded(f"a number is too large for a float: {error}", hint="use smaller numbers")


def _pow(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and exponent > 0:
        check_bits((abs(base).bit_length() - 1) * exponent)
    result = base**exponent
    if isinstance(result, complex):
        raise LimitExceeded(
            f"{base!r} ** {exponent!r} is a complex number",
            hint="values of a compiled program are whole numbers and floats",
        )
    if isinstance(result, int):
        check_bits(result.bit_length())
    return result


def _lshift(value: int, by: int) -> int:
    if value and by > 0:
        check_bits(value.bit_length() + by)
    return value << by if value or by < 0 else 0


def _int(value: Any, *base: int) -> int:
    result = int(value, *base)
    check_bits(result.bit_length())
    return result


def _round(value: Number, *digits: int) -> Number:
    if isinstance(value, int) and digits and digits[0] < 0:
        # Python computes 10**-digits for it.
        check_bits(-digits[0] * 3.33)
    try:
        return round(value, *digits)
    except OverflowError as error:
        if not digits:
            raise
        raise _too_large(error) from error


_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "abs", "rshift")

NUMBER_EVALUATORS: dict[str, Callable[..., Any]] = {
    **{name: _bounded(getattr(operator, name)) for name in _OPERATORS},
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge")},
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "ceil": math.ceil,
    "divmod": _bounded(lambda a, b, index: divmod(a, b)[index]),
    "float": float,
    "floor": math.floor,
    "int": _int,
    "invert": operator.invert,
    "lshift": _lshift,
    "max": lambda *args: max(args),
    "min": lambda *args: min(args),
    "pow": _pow,
    "round": _round,
}
