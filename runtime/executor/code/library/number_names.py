"""Names of `decimal`, `fractions`, `statistics` and `random`."""

from __future__ import annotations

import decimal
import re
import statistics
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

from sgc.ir.code_names import LIBRARY
from sgc.runtime.executor.code.fuel import NotAllowed, charge, checked, number_checks
from sgc.runtime.executor.code.iterators import is_iterable, is_lazy, taken
from sgc.runtime.executor.code.methods.attributes import DATA, GUARDS, METHODS, bounded_method
from sgc.runtime.executor.interface.value_limits import (
    MAX_DIGITS,
    LimitExceeded,
    check_bits,
    check_items,
    check_length,
)


def _check_decimal(value: Decimal) -> None:
    charge(4)
    if value.is_finite() and not (-MAX_DIGITS <= value.adjusted() <= MAX_DIGITS):
        raise LimitExceeded(f"a decimal of more than {MAX_DIGITS} digits would be made")
    if value.is_finite() and -value.as_tuple().exponent > 2 * MAX_DIGITS:  # type: ignore[operator]
        raise LimitExceeded(f"a decimal of more than {MAX_DIGITS} digits would be made")


def _check_fraction(value: Fraction) -> None:
    n_bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    check_bits(n_bits)
    charge(16 + (n_bits**2 >> 14))


number_checks.update({Decimal: _check_decimal, Fraction: _check_fraction})


def _decimal(*args: Any) -> Decimal:
    for each in args[:1]:
        if isinstance(each, str):
            check_length(len(each) * 1000)
            charge(len(each))
        elif isinstance(each, (tuple, list)):
            raise NotAllowed("Decimal of a tuple is not allowed in a graph's code")
    result: Decimal = checked(Decimal(*args[:1]))
    return result


_EXPONENT = re.compile(r"[eE][+-]?\d{5,}")


def _fraction(*args: Any) -> Fraction:
    for each in args:
        charge(16)
        if isinstance(each, str):
            if _EXPONENT.search(each) or len(each) > 10_000:
                raise LimitExceeded("a fraction with very many digits would be made")
            charge(len(each))
    result: Fraction = checked(Fraction(*args))
    return result


GUARDS.update({Decimal: _decimal, Fraction: _fraction})
_DECIMAL_METHODS = """
adjusted as_integer_ratio as_tuple compare copy_abs copy_negate copy_sign is_finite is_infinite
is_nan is_signed is_zero ln log10 max min normalize quantize remainder_near same_quantum sqrt
to_integral_value
"""
METHODS[Decimal] = {
    name: bounded_method(Decimal, name, lambda *args, **kwargs: charge(30), checked)
    for name in _DECIMAL_METHODS.split()
    if name != "as_tuple"
}
METHODS[Fraction] = {
    "limit_denominator": bounded_method(
        Fraction, "limit_denominator", lambda *args: charge(1000), checked
    ),
    "as_integer_ratio": Fraction.as_integer_ratio,
}
DATA[Fraction] = frozenset({"numerator", "denominator"})
DECIMAL: dict[str, Any] = {name: getattr(decimal, name) for name in LIBRARY["decimal"]}
FRACTIONS: dict[str, Any] = {"Fraction": Fraction}


def _paid(item: Any) -> Any:
    charge(32 + (item.bit_length() >> 2 if isinstance(item, int) else 0))
    return item


def _paid_for(value: Any) -> Any:
    if not is_iterable(value):
        return value
    items = taken(value)
    if is_lazy(value):
        return map(_paid, items)
    for item in items:
        _paid(item)
    return items


def _statistic(real: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        charge(64)
        named = {name: _paid_for(each) for name, each in kwargs.items()}
        return checked(real(*map(_paid_for, args), **named))

    return function


def _quantiles(data: Any, *, n: Any = 4, method: Any = "exclusive") -> Any:
    check_items(n if isinstance(n, int) else 0)
    charge(64 + (4 * n if isinstance(n, int) and n > 0 else 0))
    return checked(statistics.quantiles(_paid_for(data), n=n, method=method))


STATISTICS: dict[str, Any] = {
    name: _statistic(getattr(statistics, name))
    for name in LIBRARY["statistics"]
    if name != "StatisticsError"
} | {"StatisticsError": statistics.StatisticsError, "quantiles": _quantiles}


def _random(*args: Any) -> Random:
    if len(args) != 1 or not isinstance(args[0], (int, float, str)):
        raise NotAllowed("random.Random takes a seed in a graph's code: a number or a text")
    charge(100)
    return Random(*args)


GUARDS[Random] = _random


def _draws(*args: Any, k: Any = 1, **kwargs: Any) -> None:
    """Charges for a draw of many items."""
    for each in args[1:]:
        charge(len(each) >> 1 if hasattr(type(each), "__len__") and type(each) is not range else 1)
        if isinstance(each, int):
            check_items(each)
            charge(max(each, 0))
    for each in (k, *kwargs.values()):
        if isinstance(each, int):
            check_items(each)
            charge(2 * max(each, 0))
        elif type(each) in (list, tuple):
            charge(2 * len(each))


def _weighed(value: Any) -> Any:
    return taken(value) if is_iterable(value) else value


def _drawing(name: str) -> Callable[..., Any]:
    draw = bounded_method(Random, name, _draws, checked)

    def draws(*args: Any, **kwargs: Any) -> Any:
        # Weights and counts may be iterators, which are consumed; other arguments have a length.
        args = (*args[:2], *map(_weighed, args[2:]))
        for each in kwargs.keys() & {"weights", "counts"}:
            kwargs[each] = _weighed(kwargs[each])
        return draw(*args, **kwargs)

    return draws


def _bits(rng: Any, k: Any = 0, *args: Any) -> None:
    if isinstance(k, int):
        check_bits(k)
        charge(4 + (max(k, 0) >> 4))


def _shuffles(rng: Any, items: Any = (), *args: Any) -> None:
    charge(4 * len(items) if hasattr(type(items), "__len__") else 1)


_DRAWS = """
betavariate choice expovariate gammavariate gauss lognormvariate normalvariate paretovariate randint
random randrange triangular uniform vonmisesvariate weibullvariate
"""
METHODS[Random] = {
    **{name: bounded_method(Random, name, lambda *args, **kwargs: charge(6), checked)
       for name in _DRAWS.split()},
    **{name: _drawing(name) for name in ("choices", "sample")},
    "getrandbits": bounded_method(Random, "getrandbits", _bits),
    "shuffle": bounded_method(Random, "shuffle", _shuffles),
}  # fmt: skip
RANDOM: dict[str, Any] = {"Random": Random}
