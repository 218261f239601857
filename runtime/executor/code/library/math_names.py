"""Names of `math`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sgc.ir.code_names import LIBRARY
from sgc.runtime.executor.code.fuel import charge, checked
from sgc.runtime.executor.code.iterators import is_iterable, taken
from sgc.runtime.executor.code.methods.operators import mul
from sgc.runtime.executor.interface.value_limits import check_bits


def _factorial(*args: Any) -> int:
    if args and isinstance(args[0], int) and args[0] > 1:
        check_bits(args[0] * (math.log2(args[0]) - 1.45))
        charge(args[0] >> 1)
    return checked(math.factorial(*args))  # type: ignore[no-any-return]


def _chosen(real: Callable[..., int], is_comb: bool) -> Callable[..., int]:
    def function(*args: Any) -> int:
        if 0 < len(args) < 3 and all(isinstance(each, int) for each in args):
            n, k = args[0], args[-1]
            if is_comb:
                k = min(k, n - k)
            if k > 0:
                check_bits(k * max(n.bit_length() - (k.bit_length() if is_comb else 1), 1) * 0.5)
                charge(k * ((n.bit_length() >> 6) + 2))
        return checked(real(*args))  # type: ignore[no-any-return]

    return function


def _of_items(real: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return real(*[taken(each) if is_iterable(each) else each for each in args])

    return function


def _prod(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or not is_iterable(args[0]):
        return math.prod(*args, **kwargs)
    total = kwargs.get("start", 1)
    math.prod([], **kwargs)
    for item in taken(args[0]):
        charge(2)
        total = mul(total, item)
    return total


def _whole(real: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        for each in args:
            if type(each) is int:
                charge(each.bit_length() ** 2 >> 18)
        return checked(real(*args))

    return function


def _lcm(*args: Any) -> int:
    total = math.lcm()
    for each in args:
        charge(each.bit_length() ** 2 >> 16 if type(each) is int else 1)
        total = checked(math.lcm(total, each))
    return total


_GUARDED: dict[str, Any] = {
    "comb": _chosen(math.comb, True),
    "dist": _of_items(math.dist),
    "factorial": _factorial,
    "fsum": _of_items(math.fsum),
    "gcd": _whole(math.gcd),
    "isqrt": _whole(math.isqrt),
    "lcm": _lcm,
    "perm": _chosen(math.perm, False),
    "prod": _prod,
    **{name: _whole(getattr(math, name)) for name in ("ceil", "floor", "trunc")},
}
MATH: dict[str, Any] = {name: _GUARDED.get(name, getattr(math, name)) for name in LIBRARY["math"]}
