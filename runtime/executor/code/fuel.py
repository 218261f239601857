"""The fuel of one run of a graph's code: its remaining steps, and the depth of its calls.

Steps bound both time and memory: a step is about 100 ns and 64 bytes. Work that C does in one call
is charged before the call.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any

from sgc.errors import ProgramError
from sgc.runtime.executor.interface.records import record_of, walked_parts
from sgc.runtime.executor.interface.value_limits import (
    LimitExceeded,
    check_bits,
    check_items,
    check_length,
)

MAX_STEPS = 5_000_000
MAX_CALLS = 100
MAX_VALUE_DEPTH = 150  # of nested containers: C compares and prints them by recursion
MAX_ITERATORS = 40  # nested in each other
SMALL: frozenset[type] = frozenset({int, float, bool, type(None)})
MAPPINGS: frozenset[type] = frozenset({dict, Counter, defaultdict, OrderedDict})
SEQUENCES: frozenset[type] = frozenset({list, tuple, set, frozenset, deque})
CONTAINERS = MAPPINGS | SEQUENCES
VIEWS: frozenset[type] = frozenset({type({}.keys()), type({}.values()), type({}.items()),
                                    type(OrderedDict().keys()), type(OrderedDict().values()),
                                    type(OrderedDict().items())})  # fmt: skip
SIZED = CONTAINERS | VIEWS | {str, bytes}
# Ints beyond this bound share their hash with smaller ints.
_UNIQUE = 2**61 - 1


class NotAllowed(ProgramError):
    """A graph's code does something that it may not do."""


class Run:
    """The state of one run of a graph's code. left: its remaining steps; depth: the depth of its
    calls; classes: the classes in use, by key; named: the keys of the classes that its text
    defines, by name; unchanged: containers that it may not change, with their copies; is_live:
    whether it works on live objects, not on copies.
    """

    __slots__ = ("classes", "depth", "handled", "is_live", "kept", "left", "named", "nested",
                 "patterns", "unchanged")  # fmt: skip

    def __init__(self) -> None:
        self.left = steps_of_a_run()
        self.is_live = False
        self.depth = 0
        self.classes: dict[str, Any] = {}
        self.named: dict[str, str] = {}
        self.handled: list[BaseException] = []
        self.kept: list[Any] = []
        self.nested: dict[int, tuple[Any, int]] = {}
        self.patterns: set[tuple[str, int]] = set()
        self.unchanged: list[dict[int, Any]] = []

    def charge(self, n: int) -> None:
        """Charges n steps; raises LimitExceeded if none are left."""
        self.left -= n
        if self.left < 0:
            raise spent()

    def pay(self, item: Any) -> Any:
        """Charges a step for an item that C takes from an iterator, and returns the item."""
        self.left -= 1
        if self.left < 0:
            raise spent()
        return item

    def enter_step(self) -> None:
        """Resumes a generator, which counts as a call; raises LimitExceeded."""
        self.depth += 1
        self.left -= 2
        if self.left < 0:
            self.depth -= 1
            raise spent()
        if self.depth > MAX_CALLS:
            self.depth -= 1
            raise LimitExceeded(f"calls are nested more than {MAX_CALLS} deep")


class Allowance:
    """Fewer steps for each run of code on one thread, while it is in use. used: by all runs so
    far."""

    def __init__(self, each: int) -> None:
        self.each = each
        self.used = 0

    def __enter__(self) -> Allowance:
        here.allowance = self
        return self

    def __exit__(self, *_: object) -> None:
        here.allowance = None


class _Here(threading.local):
    run: Run | None = None
    allowance: Allowance | None = None


here = _Here()


def steps_of_a_run() -> int:
    """The steps that a run of code may take on this thread."""
    return MAX_STEPS if here.allowance is None else here.allowance.each


def note_steps(n: int) -> None:
    """Notes that a run of code has taken n steps."""
    if here.allowance is not None:
        here.allowance.used += n


def current() -> Run:
    """The run of this thread."""
    run = here.run
    if run is None:
        raise NotAllowed("a function of a graph's code is called after its run")
    return run


def charge(n: int) -> None:
    """Charges n steps to this thread's run."""
    run = here.run
    if run is None:
        raise NotAllowed("a function of a graph's code is called after its run")
    run.left -= n
    if run.left < 0:
        raise spent()


def spent() -> LimitExceeded:
    return LimitExceeded(
        f"a graph's code takes more than {MAX_STEPS} steps",
        hint="give it less to do, or move it out of the program",
    )


def text_cost(text: str | bytes) -> int:
    """The number of steps that making a text costs."""
    return len(text) >> (6 if isinstance(text, bytes) or text.isascii() else 4)


def measure(value: Any) -> int:
    """Charges a walk through a value, as a comparison or `repr` does; returns its characters.

    A part that occurs twice is counted twice, since C walks through it twice.
    """
    if type(value) in _TEXTS_AND_NUMBERS:
        return _size(value)
    total, left = 0, [(value, 0)]
    while left:
        value, depth = left.pop()
        items = _items(type(value), value)
        charge(6 + (len(items) >> 2))
        if depth > MAX_VALUE_DEPTH:
            raise LimitExceeded(f"values are nested more than {MAX_VALUE_DEPTH} deep")
        kinds = set(map(type, items))
        if kinds <= _TEXTS_AND_NUMBERS:
            total += 4 + _size_of_all(items, kinds)
            continue
        for item in items:
            if type(item) in _TEXTS_AND_NUMBERS:
                total += _size(item) + 4
            else:
                total += 40
                left.append((item, depth + 1))
    return total


_TEXTS_AND_NUMBERS = SMALL | {str}


def _size(value: Any) -> int:
    """The characters of a text or a number."""
    kind = type(value)
    if kind is str:
        if len(value) > 512:
            charge(len(value) >> 9)
        return len(value) + 2
    if kind is not int:
        return 16
    n_bits = value.bit_length()
    if n_bits > 1000:
        charge(n_bits * n_bits >> 17)  # conversion to decimal is quadratic
    return int(n_bits * 0.31) + 1


def _size_of_all(items: Any, kinds: set[type]) -> int:
    """The characters of texts or numbers, separators included."""
    if kinds == {str}:
        n_chars = sum(map(len, items))
        charge(n_chars >> 9)
        return n_chars + 4 * len(items)
    if kinds == {int}:
        return 3 * len(items) + sum(map(int.bit_length, items)) // 3
    if str in kinds or int in kinds:
        return sum(map(_size, items)) + 2 * len(items)
    return 12 * len(items)


def _items(kind: type, value: Any) -> list[Any] | tuple[Any, ...]:
    if kind in MAPPINGS:
        return [*value.keys(), *value.values()]
    if kind in CONTAINERS or kind in VIEWS:
        return value if kind is list or kind is tuple else list(value)
    record = record_of(kind)
    if record is not None:
        return walked_parts(record, value)
    return value.args if isinstance(value, BaseException) else ()


def check_key(key: Any, n_items: int) -> None:
    """Charges for hashing a key, and for collisions if an attacker can choose the key's hash."""
    kind = type(key)
    if kind is str:
        return
    if kind is int:
        if not -_UNIQUE < key < _UNIQUE:
            charge(1 + (n_items >> 4))
        return
    if kind is tuple:
        measure(key)
        if len(key) > 4 or not all(map(_is_plain_key, key)):
            charge(n_items >> 3)
    elif kind not in SMALL:
        measure(key)
        charge(1 + (n_items >> 4))


def _is_plain_key(item: Any) -> bool:
    kind = type(item)
    return kind is str or kind is bool or item is None or (kind is int and -(2**31) < item < 2**31)


def check_keys(keys: Iterable[Any], n_items: int) -> None:
    """`check_key` for many keys, in a sized collection."""
    n_items += len(keys)  # type: ignore[arg-type]
    charge(len(keys) >> 1)  # type: ignore[arg-type]
    kinds = set(map(type, keys))
    if kinds <= {str, bool, float, type(None)}:
        return
    for key in keys:
        check_key(key, n_items)


def checked(value: Any) -> Any:
    """Returns a new value after charging for its memory; LimitExceeded if it is too large."""
    kind = type(value)
    if kind is int:
        check_bits(value.bit_length())
        charge((value.bit_length() >> 6) + 1)
    elif kind is str or kind is bytes:
        check_length(len(value))
        charge(text_cost(value))
    elif kind in CONTAINERS:
        check_items(len(value))
        charge(len(value) if kind not in (list, tuple) else len(value) >> 2)
        if kind in _KEPT:
            current().kept.append(value)
    else:
        _check_number(value)
    return value


# CPython frees nested values of these types by recursion: a run keeps all of them, and empties each
# at its end.
_KEPT: frozenset[type] = frozenset({deque, defaultdict})
# Filled by the module that imports decimal and fractions, which is slow.
number_checks: dict[type, Any] = {}


def _check_number(value: Any) -> None:
    check = number_checks.get(type(value))
    if check is not None:
        check(value)


def check_power(base: int, exponent: int) -> None:
    """Raises LimitExceeded if a power would be too large."""
    if abs(base) > 1 and exponent > 0:
        check_bits((abs(base).bit_length() - 1) * exponent)
