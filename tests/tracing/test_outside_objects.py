"""Lists, dicts and sets of a module that hold objects, and these objects: a trace leaves them as
they were, and a program that changes them is refused.
"""

from __future__ import annotations

import collections
import enum
import functools
import hashlib
import importlib.util
import inspect
import io
import itertools
import queue
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import outside_module
import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace


@dataclass
class Worker:
    name: str
    n: int = 0
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Fixed:
    name: str
    tags: list[str]


@dataclass(slots=True)
class Slotted:
    name: str


TEAM = [Worker("a", tags=["x"]), Worker("b")]
BY_NAME = {each.name: each for each in TEAM}
QUEUE = deque([Worker("q")])
FIXED = (Fixed("f", ["x"]), {"deep": [Slotted("s")]})
SEEN = {Fixed}
MANY = [f"{n:09}" for n in range(80_000)]


def adds_to_an_attribute(s: Any, text: str) -> None:
    TEAM[0].n += 1


def sets_an_attribute(s: Any, text: str) -> None:
    for each in TEAM:
        each.name = text


def appends(s: Any, text: str) -> None:
    TEAM.append(Worker("c"))


def appends_to_a_list_of_one(s: Any, text: str) -> None:
    BY_NAME["a"].tags.append("y")


def appends_a_text_to_a_list_of_one(s: Any, text: str) -> None:
    BY_NAME["a"].tags.append(text)


def sets_an_item(s: Any, text: str) -> None:
    BY_NAME["z"] = Worker(text)


def orders_a_dict(s: Any, text: str) -> None:
    BY_NAME["a"] = BY_NAME.pop("a")


def rotates(s: Any, text: str) -> None:
    QUEUE.append(QUEUE.popleft())
    QUEUE.append(Worker("r"))


def changes_what_a_frozen_one_holds(s: Any, text: str) -> None:
    FIXED[0].tags.append(text)


def changes_a_slot(s: Any, text: str) -> None:
    FIXED[1]["deep"][0].name = text  # type: ignore[index]


def adds_to_a_set(s: Any, text: str) -> None:
    SEEN.add(Slotted)


def changes_a_long_list(s: Any, text: str) -> None:
    MANY[7] = text


CHANGING = (
    adds_to_an_attribute, sets_an_attribute, appends, appends_to_a_list_of_one,
    appends_a_text_to_a_list_of_one, sets_an_item, orders_a_dict, rotates,
    changes_what_a_frozen_one_holds, changes_a_slot, adds_to_a_set, changes_a_long_list,
)  # fmt: skip


def state() -> str:
    return repr((TEAM, BY_NAME, QUEUE, FIXED, SEEN, MANY[:9], len(MANY)))


@pytest.mark.parametrize("change", one_in(4, CHANGING), ids=lambda change: change.__name__)
def test_a_program_that_changes_them_is_refused(change: Callable[..., None]) -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        change(s, s["a"])
        s += "then" + sgc.gen("b", max_tokens=3)

    before = state()
    with pytest.raises(TraceError, match="outside of it"):
        trace(sgc.function(program), is_full=True)
    assert state() == before


def sets_a_name_of_a_module(s: Any, text: str) -> None:
    outside_module.LAST = text


def adds_a_name_to_a_module(s: Any, text: str) -> None:
    setattr(outside_module, "MORE", text)  # noqa: B010


def appends_to_a_modules_list(s: Any, text: str) -> None:
    outside_module.TEXTS.append(text)


def appends_on_one_path(s: Any, text: str) -> None:
    if text == "x":
        outside_module.TEXTS.append("y")


def sets_an_item_of_a_modules_dict(s: Any, text: str) -> None:
    outside_module.BY_NAME["k"] = 1


def sets_an_attribute_of_a_modules_object(s: Any, text: str) -> None:
    outside_module.KEPT.last = text  # type: ignore[attr-defined]


def appends_to_a_list_of_a_modules_class(s: Any, text: str) -> None:
    outside_module.Kept.texts.append(text)


def sets_an_attribute_of_a_modules_function(s: Any, text: str) -> None:
    outside_module.state.last = text  # type: ignore[attr-defined]


def imports_it(s: Any, text: str) -> None:
    import outside_module as inside

    inside.TEXTS.append(text)


def imports_a_part_of_it(s: Any, text: str) -> None:
    from outside_module import TEXTS

    TEXTS.append(text)


def sets_a_name_of_a_library(s: Any, text: str) -> None:
    enum.last = text  # type: ignore[attr-defined]


OF_MODULES = (
    sets_a_name_of_a_module, adds_a_name_to_a_module, appends_to_a_modules_list,
    appends_on_one_path, sets_an_item_of_a_modules_dict, sets_an_attribute_of_a_modules_object,
    appends_to_a_list_of_a_modules_class, sets_an_attribute_of_a_modules_function, imports_it,
    imports_a_part_of_it, sets_a_name_of_a_library,
)  # fmt: skip


@pytest.mark.parametrize("change", one_in(4, OF_MODULES), ids=lambda change: change.__name__)
def test_a_program_that_changes_another_module_is_refused(change: Callable[..., None]) -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        change(s, s["a"])
        s += "then" + sgc.gen("b", max_tokens=3)

    before = outside_module.state()
    with pytest.raises(TraceError, match="outside of it"):
        trace(sgc.function(program), is_full=True)
    assert outside_module.state() == before
    assert not hasattr(enum, "last")


def test_a_program_that_reads_another_module_compiles() -> None:
    @sgc.function
    def program(s, q: str):
        from outside_module import Kept

        s += q + sgc.gen("a", max_tokens=3)
        return len(outside_module.TEXTS), outside_module.LAST, Kept().texts, s["a"]

    agree(program, ("yes", "no"), q="x")


class Holder:
    """Holds what hides its state."""

    def __init__(self) -> None:
        self.letters, self.lines = itertools.cycle("ab"), (n for n in "abc")
        self.numbers, self.buffer = Random(3), bytearray(b"abc")
        self.lock, self.queue, self.plain = threading.Lock(), queue.SimpleQueue(), queue.Queue()
        self.digest, self.note = hashlib.sha256(), threading.Event()
        self.user = collections.UserDict(a=1)


HOLDER, MANY_HOLDERS = Holder(), [SimpleNamespace(n=0) for _ in range(3_000)]
SPACE, WORDS, ORDERED = SimpleNamespace(inner=Worker("i")), ["w"], collections.OrderedDict(a=1, b=2)
ADDING, WEAKLY = functools.partial(WORDS.append, "x"), weakref.ref(TEAM[0])
METHOD, LOCAL = WORDS.append, threading.local()


class Counted:
    """Changes what is outside when Python itself calls it."""

    def __len__(self) -> int:
        WORDS.append("len")
        return 3

    @property
    def name(self) -> str:
        WORDS.append("name")
        return "n"


COUNTED = Counted()

HIDING: dict[str, Callable[[], object]] = {
    "an iterator": lambda: next(HOLDER.letters),
    "a generator": lambda: next(HOLDER.lines),
    "a generator of random numbers": lambda: HOLDER.numbers.seed(1),
    "a buffer": lambda: HOLDER.buffer.append(4),
    "a buffer's byte": lambda: HOLDER.buffer.__setitem__(0, 4),
    "a lock": lambda: HOLDER.lock.acquire(blocking=False),
    "a queue": lambda: HOLDER.queue.put("x"),
    "a queue in Python": lambda: HOLDER.plain.put("x"),
    "a digest": lambda: HOLDER.digest.update(b"x"),
    "an event": lambda: HOLDER.note.set(),
    "a user's dict": lambda: HOLDER.user.update(b=2),
    "the order of a dict": lambda: ORDERED.move_to_end("a"),
    "one of many": lambda: setattr(MANY_HOLDERS[2_500], "n", 1),
    "an object in a namespace": lambda: setattr(SPACE.inner, "name", "x"),
    "a partial": lambda: ADDING(),
    "a method": lambda: METHOD("x"),
    "a weak reference": lambda: setattr(WEAKLY(), "name", "x"),
    "a thread's own": lambda: setattr(LOCAL, "name", "x"),
    "a special method": lambda: len(COUNTED),  # type: ignore[arg-type]
    "a property": lambda: COUNTED.name,
    "Python in a text": lambda: exec("WORDS.append('x')"),
}


@pytest.mark.parametrize("change", one_in(5, HIDING.values()), ids=HIDING)
def test_a_change_of_what_hides_its_state_is_refused(
    change: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        s += str(change())[:1]

    monkeypatch.setitem(globals(), "HOLDER", Holder())
    monkeypatch.delitem(vars(LOCAL), "name", raising=False)
    with pytest.raises(TraceError, match="outside of it"):
        trace(sgc.function(program), is_full=True)
    assert WORDS == ["w"]
    held = HOLDER.lock.locked(), HOLDER.note.is_set(), HOLDER.plain.unfinished_tasks
    assert held == (False, False, 0)  # else the program's own waits would never end
    assert (HOLDER.buffer, HOLDER.numbers.random()) == (bytearray(b"abc"), Random(3).random())
    assert (list(ORDERED), MANY_HOLDERS[2_500].n, SPACE.inner.name) == (["a", "b"], 0, "i")
    assert state() == BEFORE


class Proxy:
    """Stands for something that is there only later, as web frameworks' proxies do."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError("outside of a request")


LARGE, PROXY = {"buffer": bytearray(3_000_000), "proxy": object()}, Proxy()


def test_a_large_buffer_is_compared_once_and_a_proxy_asked_for_nothing() -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        LARGE["buffer"][7] = 1  # type: ignore[index]

    def reads(s, q: str):
        s += q + str(LARGE["buffer"][7]) + sgc.gen("a", max_tokens=3)  # type: ignore[index]
        if s["a"] == "yes":
            s += "no proxy" if PROXY is None else "a proxy"

    with pytest.raises(TraceError, match="changes 'LARGE'"):
        trace(sgc.function(program), is_full=True)
    LARGE["buffer"][7] = 0  # type: ignore[index]
    agree(sgc.function(reads), ("yes", "no"), q="x")


BEFORE = state()
LETTERS = itertools.cycle("ab")
BUFFER = io.StringIO("first\nsecond\n")
LINES = (f"line {n}" for n in range(3))


def takes_the_next(s: Any) -> str:
    return next(LETTERS) + next(LETTERS)


def takes_one_or_another(s: Any) -> str:
    return next(LINES, "none")


def goes_over_it(s: Any) -> str:
    return "".join(zip(LETTERS, "xy", strict=False).__next__())


def goes_over_it_on_one_path(s: Any) -> str:
    for letter in LETTERS if s["a"] == "yes" else "c":
        return letter
    return ""


def reads_it(s: Any) -> str:
    return BUFFER.readline()


def writes_to_it(s: Any) -> str:
    BUFFER.write("x")
    return ""


OF_ITERATORS = (
    takes_the_next, takes_one_or_another, goes_over_it, goes_over_it_on_one_path, reads_it,
    writes_to_it,
)  # fmt: skip


@pytest.mark.parametrize("take", OF_ITERATORS, ids=lambda take: take.__name__)
def test_an_iterator_from_outside_is_not_taken_further(take: Callable[..., str]) -> None:
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        s += take(s)

    with pytest.raises(
        TraceError, match=r"uses '(LETTERS|LINES|BUFFER)', an? \w+ outside"
    ) as caught:
        trace(sgc.function(program), is_full=True)
    assert str(take.__code__.co_firstlineno + 1) in caught.value.where
    assert next(LETTERS) + next(LETTERS) == "ab"
    assert inspect.getgeneratorstate(LINES) == inspect.GEN_CREATED
    assert (BUFFER.tell(), BUFFER.getvalue()[:5]) == (0, "first")


def test_an_object_that_is_an_argument_is_not_changed() -> None:
    def program(s, q: str, workers=None):
        s += q + sgc.gen("a", max_tokens=3)
        workers[0].tags += [s["a"]]
        s += sgc.gen("b", max_tokens=3)

    workers = [Worker("w")]
    with pytest.raises(TraceError, match="'workers'"):
        trace(sgc.function(program), {"workers": workers}, is_full=True)
    assert workers == [Worker("w")]


@sgc.function
def reads(s, q: str):
    s += ", ".join(each.name for each in TEAM) + q
    best = ""
    for _ in range(30):
        for each in TEAM:
            s += each.name + sgc.gen("b", max_tokens=2)
            if s["b"] == "yes":
                best = each.name + FIXED[0].tags[0]
    s += best
    return best, BY_NAME["a"].tags


def test_what_is_only_read_is_never_replaced_where_paths_merge() -> None:
    before = state()
    assert agree(reads, ("yes", "no"), q="x").n_nodes < 100
    assert state() == before


CREW = {str(n): Slotted(str(n)) for n in range(3)}


@sgc.function
def counts_beside(s, q: str):
    own, which = Slotted("own"), CREW["0"]
    while True:
        s += q + which.name + sgc.gen("a", max_tokens=2)
        own.name += "!"
        if s["a"] == "yes":
            which = CREW[str((int(which.name) + 1) % 3)]
        elif s["a"] == "stop":
            break
    return own.name, which.name


@pytest.mark.slow
def test_attributes_of_ones_own_are_widened_beside_those_of_others() -> None:
    """If those of others were too, the run would end as one that changes them, and be traced again
    with no attribute of that class widened: the loop would never close."""
    assert trace(counts_beside, is_full=True).n_nodes < 100


@pytest.mark.slow
def test_attributes_that_differ_from_turn_to_turn_are_not_widened() -> None:
    """Of this program they once were, in the module's own objects."""
    path = Path(__file__).parents[1] / "corpus/agents/supervisor_team.py"
    spec = importlib.util.spec_from_file_location("supervisor_team_outside", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    names = [each.name for each in module.TEAM]
    trace(module.program, is_full=True)
    assert [each.name for each in module.TEAM] == names
