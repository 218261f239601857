"""Comprehensions over the program's generators, and `list(g(x))` and the like, are loops where a
generator is given what is known only at run time.
"""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

REPLIES = ["yes", "no", "a b c", "", "b bb a"]
SMALL = Budget(nodes=400, work=150_000)


def chunks(items, size):
    for start in range(0, len(items), size):
        yield items[start : start + size]


def parts(text):
    for part in text.split():
        if part != "a":
            yield part.strip()


def numbered(items):
    n = 10
    for item in items:
        n -= 1
        yield n, item


def told(items):
    yield "first"
    for item in items:
        if item != "a":
            yield item
    yield "last"


def answers(s, items):
    for item in items:
        s += item + sgc.gen("x", max_tokens=4)
        if s["x"] != "no":
            yield s["x"]


def renamed(name):
    return "its " + name


@sgc.function
def ask(s: Any, part: list[str]) -> Any:
    s += f"{part}" + sgc.gen("y", max_tokens=4)
    return s["y"]


def closed(program: Any, budget: Budget = SMALL) -> None:
    graph = trace(program, is_full=True, budget=budget)
    for words in (["a", "b", "u"], [f"w{n}" for n in range(7)]):
        agree(program, REPLIES, graph=graph, n=6, words=words)


def test_a_comprehension_over_chunks_of_a_list():
    @sgc.function
    def program(s, words: list[str]):
        found = [ask(each).ret_value for each in chunks(words, 2)]
        s += f"{found}" + sgc.gen("z")

    closed(program)


def test_what_a_reply_gives_is_filtered():
    @sgc.function
    def program(s, words: list[str]):
        s += sgc.gen("x", max_tokens=9)
        found = [part + "." for part in parts(s["x"]) if "bb" not in part]
        s += f"{found} {','.join(each for each in parts(s['x']))}" + sgc.gen("z")

    closed(program)


def test_functions_that_use_a_generator_up_are_loops():
    @sgc.function
    def program(s, words: list[str]):
        s += sgc.gen("x", max_tokens=9)
        s += ", ".join(parts(s["x"]))
        pairs = list(numbered(words))
        longest = max(told(words), key=len)
        ordered = sorted(parts(s["x"]), reverse=True)
        places = dict(numbered(words))
        s += f"{pairs} {longest} {ordered} {places}" + sgc.gen("z")

    closed(program)


def test_a_generator_that_asks_in_its_turns():
    def asked(s, items):
        for item in items:
            s += item + sgc.gen("x", max_tokens=4)
            if s["x"] != "no":
                yield s["x"]

    @sgc.function
    def program(s, words: list[str]):
        found = [each + "!" for each in asked(s, words)]
        s += f"{found} {len(found)}" + sgc.gen("z")

    closed(program)


def test_a_list_of_a_generator_that_asks():
    @sgc.function
    def program(s, words: list[str]):
        found = list(answers(s, words))
        s += f"{found}" + sgc.gen("z")

    closed(program)


def test_a_generator_that_is_used_twice_has_no_more_items():
    @sgc.function
    def program(s, words: list[str]):
        left = numbered(words)
        found = [word for n, word in left if n < 9]
        again = [word for _, word in left]
        s += f"{found} {again} {list(left)}" + sgc.gen("z")

    closed(program)


def test_constants_are_gone_over_while_tracing():
    @sgc.function
    def program(s, words: list[str]):
        for name in list(parts("k1 a k2 k3 k4 k5")):
            s += sgc.gen(name, max_tokens=4)
        for name in list(map(renamed, ["k6", "k7"])):
            s += sgc.gen(name, max_tokens=4)
        s += f"{s['k5']} {s['its k7']}"

    closed(program)


def test_the_next_item_of_a_generator():
    @sgc.function
    def program(s, words: list[str]):
        left = told(words)
        found = [next(left), next(left, "none")]
        s += sgc.gen("x", max_tokens=8)
        found.append(next(parts(s["x"]), "no part"))
        last = next(left, w := "end")
        s += f"{found} {last}" + sgc.gen("z")
        try:
            s += next(parts("a"))
        except StopIteration as error:
            s += f"stopped {error.args} {w}"

    closed(program, Budget())


@pytest.mark.slow
def test_the_items_of_a_generator_in_a_display():
    @sgc.function
    def program(s, words: list[str]):
        left = told(words)
        for _ in range(4):
            s += sgc.gen("x", max_tokens=4)
            left = told([s["x"], *left])
        found = [next(left), *left, *parts(s["x"]), "end"]
        s += f"{found} {[*left]}" + sgc.gen("z")

    closed(program, Budget())


def test_functions_with_names_of_pythons_take_generators_as_they_are():
    def sum(items):
        return next(items, "none")

    class Joining:
        def join(self, items):
            return next(items, type(items).__name__)

    @sgc.function
    def program(s, words: list[str]):
        left, joining = told(words), Joining()
        first = sum(left)
        second = joining.join(left)
        rest = "/".join(left)
        s += first + second + rest + sgc.gen("z")

    closed(program, Budget())
