"""What a program's own code asks of its process, or changes of it, is refused with its line; as are
texts that show an object's address.
"""

from __future__ import annotations

import calendar
import contextlib
import contextvars
import datetime
import decimal
import functools
import gc
import inspect
import linecache
import locale
import os
import platform
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from sys import argv as given
from typing import Any

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace

CONTEXT = contextvars.ContextVar("CONTEXT", default="c")
KEPT = object()


@functools.lru_cache
def cached(x: str) -> str:
    return x + "!"


def handled_error() -> str:
    try:
        raise ValueError("x")
    except ValueError:
        return str(sys.exc_info()[0])


def handled_text() -> str:
    try:
        raise ValueError("x")
    except ValueError:
        return traceback.format_exc()


def imports_inside() -> str:
    import sys as python

    return python.argv[0]


def ignores_warnings() -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
    return ""


MOMENT = datetime.datetime(2020, 1, 1)

ASKING = {
    "argv": lambda: str(len(sys.argv)),
    "argv by its own name": lambda: given[0],
    "argv of an import inside": imports_inside,
    "input": lambda: sys.stdin.read(),
    "modules": lambda: str("os" in sys.modules),
    "path": lambda: str(sys.path),
    "executable": lambda: sys.executable,
    "frame": lambda: sys._getframe().f_code.co_name,
    "limit": lambda: str(sys.getrecursionlimit()),
    "frames": lambda: str(inspect.currentframe()),
    "error": handled_error,
    "text of an error": handled_text,
    "moment": lambda: time.strftime("%H:%M"),
    "zone": lambda: str(time.tzname),
    "local time": lambda: str(datetime.datetime.fromtimestamp(0)),
    "local moment": lambda: str(MOMENT.timestamp()),
    "seconds": lambda: str(time.mktime((2020, 1, 1, 1, 1, 1, 1, 1, 1))),
    "seed": lambda: str(random.seed(3)),
    "state": lambda: str(random.setstate(random.Random(1).getstate())),
    "context": CONTEXT.get,
    "context that is set": lambda: str(CONTEXT.set("d")),
    "decimals": lambda: str(decimal.getcontext().prec),
    "thread": lambda: threading.current_thread().name,
    "number of a thread": lambda: str(threading.get_ident()),
    "garbage": lambda: str(gc.isenabled()),
    "collection": lambda: str(gc.collect()),
    "machine": platform.system,
    "locale": lambda: str(locale.getlocale()),
    "locale that is set": lambda: locale.setlocale(locale.LC_ALL, "C"),
    "signal": lambda: str(signal.getsignal(2)),
    "folder": tempfile.gettempdir,
    "line": lambda: linecache.getline(__file__, 1),
    "environment": lambda: str(len(os.environ)),
    "names of the environment": lambda: str(list(os.environ)),
    "terminal": lambda: str(sys.stdout.isatty()),
    "week": lambda: str(calendar.setfirstweekday(0)),
    "warnings": ignores_warnings,
    "names": lambda: str("KEPT" in globals()),
    "hash": lambda: str(hash("abc")),
    "address": lambda: str(id(KEPT)),
    "what is cached": lambda: str(cached.cache_info()),
}


@pytest.mark.parametrize("ask", one_in(10, ASKING.values()), ids=ASKING)
def test_what_asks_about_its_process_is_refused_with_its_line(ask: Callable[[], str]) -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        s += ask()

    with pytest.raises(TraceError, match="while being traced") as caught:
        trace(sgc.function(program), is_full=True)
    file, line = caught.value.where.split(":")
    assert file == "test_process.py"
    code = getattr(ask, "__code__", None)
    if code is not None and code.co_filename == __file__:
        assert code.co_firstlineno <= int(line) <= code.co_firstlineno + 6


@pytest.mark.parametrize(
    "shown", [lambda: repr(KEPT), lambda: f"{KEPT}", lambda: str([cached, KEPT])]
)
def test_a_text_that_shows_an_address_is_refused(shown: Callable[[], str]) -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        s += "x" + shown()

    with pytest.raises(TraceError, match="shows an object by its address") as caught:
        trace(sgc.function(program), is_full=True)
    assert caught.value.where == f"test_process.py:{program.__code__.co_firstlineno + 2}"


def test_a_text_of_the_program_that_looks_like_an_address_is_its_own() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + "<C object at 0x7fcebe617cd0>" + sgc.gen("a", max_tokens=3)

    agree(program, ("yes", "no"), q="x")


class Point:
    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.name == other.name


def test_what_depends_on_arguments_alone_compiles() -> None:
    @sgc.function
    def program(s, q: str):
        when = datetime.datetime.fromtimestamp(0, tz=datetime.UTC)
        points = {Point("a"): "first"}
        s += q + f"{when:%Y}" + points[Point("a")] + str(hash(7)) + sys.intern("i")
        s += time.strftime("%Y", (2020, 1, 1, 1, 1, 1, 1, 1, 1))
        with contextlib.suppress(ValueError):
            s += str(MOMENT.replace(tzinfo=datetime.UTC).timestamp())
        s += sgc.gen("a", max_tokens=3)

    agree(program, ("yes", "no"), q="x")


# -- cached helpers ---------------------------------------------------------------------------

CALLED: list[str] = []
TURNS = [0]


@functools.lru_cache
def noting(x: str) -> str:
    CALLED.append(x)
    return x


@functools.cache
def table() -> list[str]:
    return ["a"]


class Speller:
    @functools.cache  # noqa: B019
    def spelled(self, x: str) -> str:
        return "-".join(x)


SPELLER = Speller()


def test_a_cached_helper_gives_what_it_gives_without_a_cache() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + cached("a") + cached("a") + SPELLER.spelled("abc") + str(table())
        s += sgc.gen("a", max_tokens=3)
        return table() is table()

    cached("a")
    agree(program, ("yes", "no"), q="x")


@pytest.mark.parametrize(
    "use", [lambda s: noting("a"), lambda s: str(table().append("b")), lambda s: cached(s["a"])]
)
def test_a_cached_helper_that_keeps_more_than_its_result_is_refused(use: Any) -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        s += use(s)

    noting("a")  # Python would not call it again
    before = list(CALLED), list(table())
    with pytest.raises(TraceError, match=r"outside of it|looked up|cached"):
        trace(sgc.function(program), is_full=True)
    assert (CALLED, table()) == before
