"""What generators of a graph's code do beside what Python's do: limits, and how they end."""

from __future__ import annotations

import gc
import time

import pytest
from executor.code.comparing import by_python, by_us

from sgc.runtime.executor.code.fuel import NotAllowed
from sgc.runtime.executor.code.run import run_code
from sgc.runtime.executor.interface.value_limits import LimitExceeded

WAITING = """
def waits():
    try:
        1 / 0
    except ZeroDivisionError:
        yield 1
def f(n, is_last_first):
    found = [waits() for i in range(n)]
    for each in found: next(each)
    if is_last_first: found.reverse()
    for each in found: list(each)
"""


@pytest.mark.parametrize("is_last_first", [False, True])
def test_generators_that_wait_in_handlers_end_in_any_order_as_soon(is_last_first: bool) -> None:
    gc.disable()
    try:
        few, many = (_seconds(n, is_last_first) for n in (3000, 30_000))
    finally:
        gc.enable()
    assert many < few * 30


def _seconds(n: int, is_last_first: bool) -> float:
    begun = time.process_time()
    run_code(WAITING, [n, is_last_first])
    return time.process_time() - begun


def test_a_generator_that_raises_stop_iteration_says_so_with_its_cause() -> None:
    source = """
def g(it):
    for i in range(2):
        try:
            yield next(it)
        finally:
            i = 0
def f(n): return list(g(iter([1])))
"""
    with pytest.raises(RuntimeError, match=r"^generator raised StopIteration$") as raised:
        run_code(source, [1])
    assert isinstance(raised.value.__cause__, StopIteration)


def test_a_generator_exit_leaves_no_run() -> None:
    source = """
def g():
    try:
        yield 1
    finally:
        yield 2
def f(n):
    it = g()
    next(it)
    try:
        it.close()
    except RuntimeError:
        next(it)
"""
    with pytest.raises(NotAllowed, match="a GeneratorExit leaves a graph's code"):
        run_code(source, [1])


# Python says which error it drops.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_ends_a_run_also_where_python_drops_its_error() -> None:
    source = """
def g(it):
    try:
        yield 1
    finally:
        it = 0
def f(n):
    x = 0
    for i in range(n):
        x = g(x)
        next(x)
    x = 0
    return n
"""
    assert run_code(source, [80]) == 80
    with pytest.raises(LimitExceeded):
        run_code(source, [1000])


@pytest.mark.parametrize("n", [1, 20])
def test_generators_in_circles_are_closed_as_python_closes_them(n: int) -> None:
    source = """
def f(n):
    noted = []
    def g(box):
        for i in range(3):
            try:
                yield 1
            finally:
                noted.append("finally")
                break
        noted.append("after")
    for i in range(n):
        box = []
        box.append(g(box))
        next(box[0])
        box = 0
    kept = [[i] for i in range(100_000)]
    return noted
"""
    gc.collect()
    expected = by_python(source, [n])
    gc.collect()
    assert by_us(source, [n]) == expected
