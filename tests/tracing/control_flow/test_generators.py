"""Generators of the program: a loop over one is a loop of the graph.

One that is left before its end, with something to do then, is refused: the compiler cannot tell
when that would be.
"""

from __future__ import annotations

import linecache
import textwrap
from functools import partial
from typing import Any

import pytest
from control_flow import agree, outcome, replying

import sgc
from sgc.errors import TraceError
from sgc.runtime.executor.run.options import RunOptions

POOL = ("a", "b", "no", "a,b,c", "")
HEAD = """
import contextlib
import sgc

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    a, log = s["a"], []
    class Block:
        def __enter__(self): log.append("in")
        def __exit__(self, *error): log.append("out")
    @contextlib.contextmanager
    def block():
        try:
            yield 1
        finally:
            log.append("out")
    def items(xs):
"""
# Whether something is left to do where the generator waits, and the generator.
GENERATORS = {
    "finally": (True, "try:\n    yield from xs\nfinally:\n    log.append('done')"),
    "with": (True, "with Block():\n    for x in xs:\n        yield x"),
    "except": (True, "for x in xs:\n    try:\n        yield x\n    except GeneratorExit:\n"
               "        log.append('left')\n        raise"),
    "before": (False, "with block():\n    log.append(1)\nyield from xs"),
    "plain": (False, "for x in xs:\n    yield x"),
    "one line": (False, "for x in xs: yield x"),
}  # fmt: skip
# Whether the generator is left before its end, and how it is used.
USES = {
    "break": (True, "for x in items('abc'):\n    if x == 'b':\n        break\nlog.append(a)"),
    "next": (True, "log.append(next(items('abc')))\nlog.append(a)"),
    "held": (True, "it = items('abc')\nlog.append(next(it))\nlog.append(a)"),
    "closed": (True, "it = items('abc')\nlog.append(next(it))\nit.close()\nlog.append(a)"),
    "zip": (True, "log += zip([1], items('abc'))\nlog.append(a)"),
    "gen": (True, "for x in items('abc'):\n    s += sgc.gen('b', max_tokens=3)\n"
            "    if s['b'] == 'b':\n        break"),
    "return": (True, "for x in items('abc'):\n    return log"),
    "all": (False, "for x in items('abc'):\n    log.append(x)\nlog.append(a)"),
    "list": (False, "log += items('abc')\nlog.append(a)"),
    "all gen": (False, "for x in items('abc'):\n    s += sgc.gen('b', max_tokens=3)\nlog += [a]"),
    "either": (False, "it = items('abc') if a == 'a' else items('ab')\nlog.append(next(it))\n"
               "s += sgc.gen('b', max_tokens=3)\nlog += it"),
    "unpack": (False, "x, *y = items('abc')\nlog += [y, a]"),
}  # fmt: skip


def _program(generator: str, use: str) -> Any:
    lines = f"{textwrap.indent(generator, '        ')}\n{textwrap.indent(use, '    ')}"
    source = f"{HEAD}{lines}\n    return log\n"
    file = f"left_{abs(hash((generator, use)))}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "left"}
    exec(compile(source, file, "exec"), names)
    return names["program"]


CASES = [(generator, use) for generator in GENERATORS for use in USES]
LEFT = [(generator, use) for generator, use in CASES if GENERATORS[generator][0] and USES[use][0]]


@pytest.mark.sweep
@pytest.mark.parametrize(("generator", "use"), LEFT)
def test_a_generator_with_something_left_to_do_is_refused(generator: str, use: str) -> None:
    program = _program(GENERATORS[generator][1], USES[use][1])
    with pytest.raises(TraceError, match=r"is left before its end[\s\S]*go through all its items"):
        program.compile(check=False)


@pytest.mark.sweep
@pytest.mark.parametrize(("generator", "use"), [case for case in CASES if case not in LEFT])
def test_other_generators_are_the_same_compiled(generator: str, use: str) -> None:
    program = _program(GENERATORS[generator][1], USES[use][1])
    compiled = program.compile(check=False)
    for seed in range(6):
        runs = [
            outcome(partial(each.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL)))
            for each in (program, compiled)
        ]
        assert repr(runs[0]) == repr(runs[1]), seed


# -- loops over generators that wait while the graph goes on --------------------------------

REPLIES = ("a", "b", "no", "a,b,c", "", "stop", "b a", "17")


def numbered(words):
    """Holds a counter and an accumulator, and leaves some items out."""
    at, n = 0, 0
    for word in words:
        if word.startswith("a"):
            n += 1
            continue
        yield at, n, word
        at += len(word)


def nested(words):
    for word in words:
        for at, _, part in numbered(word.split(",")):
            yield f"{at}{part}"


def nested_once(words):
    n = 0
    for word in each_of(words):
        n += len(word)
        yield f"{n}{word}"


def each_of(words):
    for word in words:  # noqa: UP028
        yield word


def asking(s, words):
    for word in words:
        s += word + "?" + sgc.gen("y", max_tokens=4)
        if s["y"] == "stop":
            return
        yield s["y"]
        s += "!"


def growing(words, seen):
    for word in words:
        if word not in seen:
            seen.append(word)
            yield word


def answered(first):
    last = first
    while True:
        got = yield last
        if got == "stop":
            return
        last = got + last[:1]


class Words:
    """Is changed by its generator, and by the loop over it."""

    def __init__(self, words):
        self.words, self.n = words, 0

    def left(self):
        for word in self.words:
            self.n += 1
            yield word, self.n


@sgc.function
def counting(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    for at, n, word in numbered(s["a"].split(" ")):
        s += f"{at}{n}{word}" + sgc.gen("x", max_tokens=4)
        if s["x"] == "stop":
            break
    else:
        s += "all"


@sgc.function
def inside_another(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    for part in nested(s["a"].split(" ")):
        s += part + sgc.gen("x", max_tokens=4)


@sgc.function
def one_in_another_loop(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    for one in each_of(s["a"].split(",")):
        for other in each_of(s["a"].split(" ")):
            s += one + other + sgc.gen("x", max_tokens=4)
            if s["x"] == one:
                break


@sgc.function
def with_numbers(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    for i, part in enumerate(each_of(s["a"].split(",")), 3):
        s += f"{i}{part}" + sgc.gen("x", max_tokens=4)
        if s["x"] == part:
            return i
    return "none"


@sgc.function
def asks_itself(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    got = []
    for y in asking(s, s["a"].split(",")):
        got.append(y)
        s += f"<{y}>"
    return got


@sgc.function
def shares_a_list(s, q: str):
    seen = []
    for _ in sgc.turns(5):
        s += q + sgc.gen("a", max_tokens=9)
        for word in growing(s["a"].split(","), seen):
            s += word
            if s["a"] == "stop":
                seen.remove(word)
        if s["a"] == "no":
            seen = []
    return seen


@sgc.function
def goes_on_after_a_break(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    words = numbered(s["a"].split(","))
    for at, _, word in words:
        s += word
        if at or word == "b":
            break
    s += sgc.gen("x", max_tokens=4)
    for at, n, word in words:
        s += f"{at}{n}{word}" + sgc.gen("y", max_tokens=4)


@sgc.function
def two_at_once(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    one, other = nested_once(s["a"].split(" ")), each_of(s["a"].split(","))
    for _ in sgc.turns(4):
        s += sgc.gen("x", max_tokens=4)
        if s["x"] == "stop":
            one, other = other, one
        got = next(other if s["x"] == "a" else one, None)
        s += str(got)
        if got is None:
            break


@sgc.function
def one_by_two_names(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    one = other = each_of(s["a"].split(","))
    if s["a"] == "no":
        other = each_of(["x", "y"])
    for word in one:
        s += word + sgc.gen("x", max_tokens=4)
        if s["x"] == "b":
            s += next(other, "ended")


@sgc.function
def with_send(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    talk = answered(s["a"])
    s += next(talk)
    for _ in sgc.turns(5):
        s += sgc.gen("x", max_tokens=4)
        try:
            s += talk.send(s["x"])
        except StopIteration:
            s += "over"
            break


@sgc.function
def of_an_object(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    words = Words(s["a"].split(","))
    for word, n in words.left():
        s += f"{word}{n}" + sgc.gen("x", max_tokens=4)
        if s["x"] == "stop":
            words.n = 0
        elif s["x"] == "b":
            words.n += 10
    return words.n


@sgc.function
def over_another_s_cell(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    n = 0

    def left(words):
        nonlocal n
        for word in words:
            n += 1
            yield word

    for word in left(s["a"].split(",")):
        s += f"{word}{n}" + sgc.gen("x", max_tokens=4)
        if s["x"] == "b":
            n += 10
    return n


def made(words):
    n = 0

    def items():
        for word in words:
            yield f"{n}{word}"

    def bump():
        nonlocal n
        n += 1

    return items(), bump


@sgc.function
def shares_a_cell_or_not(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    words, bump = made(s["a"].split(","))
    if s["a"] == "no":
        bump = made([])[1]
    for word in words:
        s += word + sgc.gen("x", max_tokens=4)
        bump()


@sgc.function
def leaves_one_before_its_end(s, q: str):
    said = []
    for _ in sgc.turns(4):
        for side in ("a", "b"):
            last = next((text for who, text in said if who != side), None)
            if last:
                s += last
            s += q + sgc.gen("a", max_tokens=9)
            said.append((side, s["a"]))
    return len(said)


LOOPS = [
    shares_a_cell_or_not, leaves_one_before_its_end,
    counting, inside_another, one_in_another_loop, with_numbers, asks_itself, shares_a_list,
    goes_on_after_a_break, two_at_once, one_by_two_names, with_send, of_an_object,
    over_another_s_cell,
]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("program", LOOPS, ids=lambda program: program.name)
def test_a_loop_over_a_generator_is_a_loop(program: Any) -> None:
    graph = agree(program, REPLIES, n=20, q="x")
    assert len(graph.blocks) < 80
