"""Parts of statements that conversion takes into variables keep their order and their values."""

from __future__ import annotations

import linecache
from types import FunctionType
from typing import Any

import pytest
import random_order
from control_flow import agree

import sgc
from sgc.tracing.convert.source import converted
from sgc.tracing.operators import OPERATORS


def _observed(seed: int, is_converted: bool) -> Any:
    """What a random function gives or raises, and the order of what it does."""
    source, file = random_order.source_of(seed), f"random_order_{seed}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {**OPERATORS} if is_converted else {}
    exec(compile(source, file, "exec"), namespace)
    program: FunctionType = namespace["program"]
    if is_converted:
        program = FunctionType(converted(program.__code__), namespace, "program")
    log: list[Any] = []
    try:
        outcome = repr(program(log))
    except Exception as error:
        traceback, lines = error.__traceback__, []
        while traceback is not None:
            lines += [traceback.tb_lineno] if traceback.tb_frame.f_code.co_filename == file else []
            traceback = traceback.tb_next
        outcome = f"{type(error).__name__}: {error} at {lines}"
    return outcome, log


def _check(seeds: range) -> None:
    for seed in seeds:
        plain = _observed(seed, is_converted=False)
        assert _observed(seed, is_converted=True) == plain, f"seed {seed}"


def test_random_statements_do_the_same_in_the_same_order():
    _check(range(20))


@pytest.mark.slow
def test_many_random_statements_do_the_same_in_the_same_order():
    _check(range(20, 5_000))


def ask(s, q):
    s += q + sgc.gen("a", stop="\n")
    if s["a"] == "a":
        return s["a"]
    for _ in range(30):
        s += "again" + sgc.gen("b", stop="\n")
        if s["b"] == "b":
            return s["b"]
    return s["a"]


class Notes:
    def __init__(self):
        self.text, self.items, self.by = "", [], {}


@sgc.function
def in_expressions(s, q: str):
    notes = Notes()
    pair = ask(s, q), ask(s, "two")
    notes.text += ask(s, "three") + "/" + ask(s, "four")
    notes.items.append(ask(s, "five"))
    notes.by["k"] = [ask(s, "six"), ask(s, "seven")]
    notes.by["k"] += [ask(s, "eight") if pair[0] == pair[1] else pair[0]]
    last = (q and ask(s, "nine")) or ask(s, "ten")
    s += f"{ask(s, 'eleven')}: {notes.text} {notes.items} {notes.by} {last}" + sgc.gen("z")
    return pair, notes.text, last


def test_paths_merge_in_calls_of_one_expression():
    graph = agree(in_expressions, ("a", "b", "c", ""), n=8, q="x")
    assert len([*graph.nodes()]) < 300  # some 20 for each call
