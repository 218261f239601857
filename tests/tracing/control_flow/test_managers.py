"""`with` blocks of the program's own and of contextlib: what they do with an error, and paths that
merge while they are open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import pytest
from control_flow import BUDGET, agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace

POOL = ["7", "x", "y", "12", ""]


@contextmanager
def section(s: Any, title: str) -> Iterator[str]:
    s += f"<{title}>"
    yield title * 2
    s += "</>"


@contextmanager
def told(s: Any) -> Iterator[None]:
    try:
        yield
    except ValueError:
        s += "no number"
    except KeyError as error:
        s += f"no key {error}"
        raise


@contextmanager
def closed(s: Any) -> Iterator[None]:
    try:
        yield
    finally:
        s += "closed" + sgc.gen("last")


class Block:
    def __init__(self, s: Any, swallows: bool = False) -> None:
        self.s, self.swallows, self.n = s, swallows, 0

    def __enter__(self) -> Block:
        self.n += 1
        self.s += f"[{self.n}"
        return self

    def __exit__(self, kind: object, error: object, at: object) -> bool:
        self.s += "]" if kind is None else "!]"
        return self.swallows


class Looks(Block):
    def __exit__(self, kind: Any, error: object, at: object) -> bool:
        return kind is not None and issubclass(kind, ValueError)


class Closed(ValueError):
    pass


@sgc.tool(effect="pure")
def looked_up(word: str) -> str:
    errors = {"x": ValueError("x"), "y": KeyError("y"), "12": Closed("12"), "": OSError("")}
    if word in errors:
        raise errors[word]
    return word * 2


class LooksAtAll(Block):
    def __exit__(*args: Any) -> bool:
        return args[1] is not None and issubclass(args[1], ValueError)


def number_of(s: Any) -> int:
    """An int() that fails, a tool that fails, or code that fails."""
    s += sgc.gen("x") + sgc.gen("z")
    n = int(s["x"])
    found = looked_up(s["z"])
    return n + len([int(each) for each in found.split(",") if each])


@sgc.function
def in_a_section(s, q: str):
    with section(s, q) as title:
        n = number_of(s)
        s += title
    s += f"{n}"


@sgc.function
def around_a_section(s, q: str):
    try:
        with section(s, q):
            s += str(number_of(s))
    except ValueError:
        s += "none"
    s += sgc.gen("y")


@sgc.function
def handled_by_the_generator(s, q: str):
    n = 0
    with told(s), section(s, q):
        n = number_of(s)
    s += f"{n}"
    with told(s):
        s += {"7": "seven"}[s["x"]]
    s += "end"


@sgc.function
def with_a_finally(s, q: str):
    with suppress(ValueError):
        with closed(s):
            s += str(number_of(s))
        s += "fine"
    s += sgc.gen("y")


@sgc.function
def suppressed_by_another_class(s, q: str):
    with suppress(KeyError, IndexError):
        s += str(number_of(s))
    s += "end"


@sgc.function
def swallowed_by_an_object(s, q: str):
    with Block(s, True) as block:
        s += str(number_of(s))
    with block, nullcontext():
        s += f"{block.n}" + sgc.gen("y")


@sgc.function
def told_to_an_object(s, q: str):
    with Block(s):
        s += str(number_of(s))
    s += "end"


@sgc.function
def left_from_inside(s, q: str):
    for n in range(3):
        with Block(s) as block, section(s, f"{n}"):
            s += sgc.gen("x")
            if s["x"] == "x":
                continue
            if s["x"] == "y":
                break
            if s["x"] == "7":
                return block.n
    s += sgc.gen("y")
    return None


@sgc.function
def by_another_name(s, q: str):
    manager = section(s, q)
    with manager:
        s += sgc.gen("x")
        if s["x"] == "x":
            s += "yes"
    s += "end"


class Program:
    """Names that begin with two underscores are another's inside a class."""

    def __init__(self, s: Any) -> None:
        self.s = s

    def run(self) -> str:
        def inner() -> str:
            with section(self.s, "inner") as title:
                return title + str(number_of(self.s))

        with Block(self.s), section(self.s, "outer"):
            return inner()


@sgc.function
def in_a_method(s, q: str):
    return Program(s).run()


FUNCTIONS = [
    in_a_section, around_a_section, handled_by_the_generator, with_a_finally,
    suppressed_by_another_class, swallowed_by_an_object, told_to_an_object, left_from_inside,
    by_another_name, in_a_method,
]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_errors_and_exits(function):
    graph = agree(function, POOL, n=24, tools=[looked_up], q="q")
    assert "deopt" not in {node.op for node in graph.all_nodes()}


@sgc.function
def branches_in_sections(s, words: list[str]):
    n, found = 0, ""
    for word in words:
        with section(s, word) as title, Block(s) as block:
            s += sgc.gen("x")
            if "x" in s["x"]:
                n += 1
            elif s["x"] == "7":
                found += title
            s += f"{block.n}"
            if s["x"] == "y":
                n += 2
    s += f"{n}{found}"


def test_paths_merge_inside_open_blocks():
    graph = agree(branches_in_sections, POOL, words=["a", "b", "c"])
    assert "deopt" not in {node.op for node in graph.all_nodes()}
    assert graph.n_nodes < 60


@sgc.function
def states_of_generators(s, q: str):
    @contextmanager
    def counted() -> Iterator[None]:
        n = len(s["x"])
        mark = "long" if n > 1 else "short"
        yield
        s.__iadd__(f"{mark}{n}")

    s += q + sgc.gen("x")
    with counted():
        s += sgc.gen("y")
        word = "a" if s["y"] == "7" else "b"
        s += word
    s += sgc.gen("z")


def test_what_a_generator_holds_is_kept_apart():
    agree(states_of_generators, POOL, n=24, q="q")


@pytest.mark.parametrize("manager", [Looks, LooksAtAll, lambda s: ExitStack()])
def test_an_error_that_others_may_look_at_is_refused(manager):
    @sgc.function
    def program(s, q: str):
        s += q
        with manager(s):
            s += looked_up(q)
        s += "end"

    with pytest.raises(TraceError, match="cannot be told"):
        trace(program, is_full=True, budget=BUDGET)
