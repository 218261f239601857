"""What a program reads of its modules, and what changes while it runs: a compiled program would go
on with what it read while it was traced."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.errors import DeoptReached, TraceError
from sgc.tracing.tracer import trace

DB: dict[str, int] = {"a": 5}
ALIAS = DB
LOG: deque[str] = deque()
COUNT = 0
ARTICLES = ["Refunds take five days.", "Restart the device."]
LIMITS = {"a": [1, 2], "b": [3]}
CALLS: list[str] = []


class Cart:
    def __init__(self) -> None:
        self.items: list[str] = []

    def add(self, item: str) -> None:
        self.items.append(item)

    def add_twice(self, item: str) -> None:
        self.add(item)
        self.add(item)

    def total(self) -> int:
        return len(self.items)

    def priced(self) -> str:
        return f"{self.total()} items"


CART = Cart()


def put(into: dict[str, int], key: str) -> None:
    into[key] = 1


def remember(key: str) -> None:
    ALIAS[key] = 2


@sgc.tool
def saves(k: str) -> str:
    DB[k] = 1
    return k


@sgc.tool
def takes(k: str) -> str:
    DB["a"] -= 1
    return k


@sgc.tool
def by_alias(k: str) -> str:
    own = DB
    own[k] = 1
    return k


@sgc.tool
def by_helper(k: str) -> str:
    remember(k)
    return k


@sgc.tool
def by_argument(k: str) -> str:
    put(DB, k)
    return k


@sgc.tool
def appends(k: str) -> str:
    LOG.append(k)
    return k


@sgc.tool
def counts(k: str) -> str:
    global COUNT
    COUNT += 1
    return k


@sgc.tool
def adds(k: str) -> str:
    CART.items.append(k)
    return k


@sgc.tool
def by_method(k: str) -> str:
    CART.add(k)
    return k


@sgc.tool
def by_methods(k: str) -> str:
    CART.add_twice(k)
    return k


def read_db() -> int:
    return len(DB)


CHANGED: dict[Any, Callable[[], Any]] = {
    saves: lambda: len(DB),
    takes: lambda: DB["a"],
    by_alias: read_db,
    by_helper: read_db,
    by_argument: read_db,
    appends: lambda: len(LOG),
    counts: lambda: COUNT,
    adds: lambda: CART.total(),
    by_method: lambda: CART.total(),
    by_methods: lambda: len(CART.items),
}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    global COUNT
    yield
    DB.clear()
    DB["a"] = 5
    LOG.clear()
    CALLS.clear()
    CART.items.clear()
    Named.made.clear()
    COUNT = 0


@pytest.mark.parametrize("tool", CHANGED, ids=lambda each: each.name)
@pytest.mark.parametrize("reads_first", [True, False])
def test_what_a_tool_changes_is_no_constant(tool: Any, reads_first: bool) -> None:
    read = CHANGED[tool]

    @sgc.function
    def program(s):
        if reads_first:
            s += f"{read()}:"
        s += sgc.gen("w", max_tokens=4)
        tool(s["w"])
        s += f"{read()}"

    with pytest.raises(TraceError, match=r"which the tool '.*' may change"):
        trace(program, is_full=True)


@sgc.function
def works(s, w: str):
    s += w + sgc.gen("w", max_tokens=4)
    saves(s["w"])


@sgc.function
def maps(s, xs: list[str]):
    sgc.map(works, xs)
    s += f"{read_db()}" + sgc.gen("w", max_tokens=4)


def test_nor_what_a_mapped_program_has_changed() -> None:
    with pytest.raises(TraceError, match=r"which the tool '.*' may change"):
        trace(maps, is_full=True)


@sgc.function
def by_either(s, q: str):
    s += q + sgc.gen("w", max_tokens=4)
    if s["w"] == "a":
        saves(s["w"])
    else:
        by_helper(s["w"])
    s += f"{read_db()}"
    return read_db()


@pytest.mark.parametrize("said", ["a", "b"])
def test_each_of_two_tools_that_change_it_is_seen(scripted: Any, said: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = by_either.compile(partial=True)
    with pytest.raises(DeoptReached, match="may change"):
        program.run(q="x", backend=scripted(lambda *_: said), allow_tools=[saves, by_helper])


@sgc.tool
def searches(k: str) -> list[str]:
    """Reads, counts its calls, and changes what it has made."""
    CALLS.append(k)
    found: dict[str, list[str]] = {}
    for article in ARTICLES:
        for word in article.split():
            found.setdefault(word, []).append(article)
    limits = [sum(each) for each in LIMITS.values()]
    limits.sort()
    return [*found.get(k, ARTICLES), *sorted(LIMITS), str(limits), CART.priced()]


@sgc.function
def of_constants(s, q: str):
    s += q + ",".join(ARTICLES) + sgc.gen("w", max_tokens=4)
    s += ",".join(searches(s["w"])) + f"{LIMITS['a']}{CART.total()}"


def test_what_a_tool_only_reads_is_one() -> None:
    agree(of_constants, ("the", "device.", ""), tools=[searches], q="x")


MEMO: dict[str, int] = {}


@sgc.function
def remembers(s, q: str):
    s += q + sgc.gen("w", max_tokens=4)
    w = s["w"]
    MEMO[w] = len(w)
    s += str(len(MEMO)) + ",".join(MEMO)
    return len(MEMO)


def test_what_a_piece_in_python_changes_is_read_anew(scripted: Any) -> None:
    seen = []
    for run in (remembers.run, remembers):
        MEMO.clear()
        for said in ("one", "three"):
            state = run("x", backend=scripted(lambda *_, said=said: said))
            seen.append((state.text(), state.ret_value))
    assert seen[:2] == seen[2:]
    MEMO.clear()


class Loud:
    def describe(self) -> str:
        return super().describe() + "!"  # type: ignore[misc]


class Base:
    def __init__(self, name: str) -> None:
        self.name = name

    def describe(self) -> str:
        return self.name


class Dog(Loud, Base):
    pass


@sgc.function
def barks(s, many: int):
    zoo = []
    for i in range(many):
        s += sgc.gen("k", max_tokens=3)
        zoo.append(Dog(f"{i}{s['k']}"))
    return [each.describe() for each in zoo]


def test_super_goes_on_to_the_next_class_of_the_object() -> None:
    agree(barks, ("a", "b"), many=2)


class Named:
    made: list[str] = []  # noqa: RUF012  # all of them share it
    count = 0

    def __init__(self, name: str) -> None:
        Named.count += 1
        self.made.append(name)
        self.name = name


@sgc.function
def names(s, n: int):
    found = []
    for _ in range(n):
        s += sgc.gen("w", max_tokens=4)
        if s["w"]:
            found.append(Named(s["w"]))
    return len(found), len(Named.made)


def test_compiling_leaves_classes_as_they_were() -> None:
    with suppress(TraceError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names.compile(partial=True)
    assert (Named.made, Named.count) == ([], 0)


class Registry:
    shared: list[str] = []  # noqa: RUF012

    def put(self, x: str) -> None:
        self.shared.append(x)


@sgc.function
def registers(s, n: int):
    registry = Registry()
    for _ in range(n):
        s += sgc.gen("w", max_tokens=4)
        registry.put(s["w"])
    return len(registry.shared)


def test_what_objects_of_a_class_share_is_not_changed() -> None:
    with pytest.raises(TraceError):
        registers.compile()
    assert Registry.shared == []
