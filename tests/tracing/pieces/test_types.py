"""What code gives is used by its type: one decision for None, none for texts and numbers."""

from __future__ import annotations

import re

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.ir.code import parse_code
from sgc.ir.code_types import MAX_TYPE, parse_code_type
from sgc.ir.graph import Graph
from sgc.ir.types import TEXT
from sgc.tracing.inference.infer import inferred
from sgc.tracing.kinds.row_types import annotation_of
from sgc.tracing.tracer import trace

REPLIES = ["a,b", "1-2", "12-7,x", "", ",", "no", "q,,r"]


def parse(text: str) -> list[str] | None:
    found = [part for part in text.split(",") if part]
    return found or None


def pair(text: str) -> tuple[int, int, str] | None:
    m = re.search(r"(\d+)-(\d+)", text)
    return (int(m[1]), int(m[2]), text) if m else None


def both(text: str) -> tuple[str | None, int, list[tuple[str, int]]]:
    parts = list(text.split(","))
    return parts[0] or None, len(parts), [(part, len(part)) for part in parts]


def n_tests(graph: Graph) -> int:
    """The number of tests of a value's type."""
    functions = [node.text("fn") for node in graph.nodes() if node.op == "compute"]
    return functions.count("is_a")


def test_a_list_or_none_is_changed_later():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = parse(s["a"])
        if found is None:
            s += "none"
            return 0
        found.append("z")
        found.sort(key=lambda part: part[::-1])
        s += str(found)
        return found

    agree(program, REPLIES, q="x")


def test_rows_and_several_values():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = pair(s["a"])
        if found:
            low, high, text = found
            s += f"{low + high} {text}"
        first, n, rows = both(s["a"])
        if first is not None:
            s += first.upper()
        for part, size in rows:
            s += f"{part}:{size + n};"
        return found, rows

    graph = agree(program, REPLIES, q="x")
    assert n_tests(graph) == 2  # whether two values are None


def numbers(text: str) -> tuple[int, int]:
    return int(text[0]), [int(part) for part in text.split("-")][1]


def test_a_row_that_fails_is_not_read():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        try:
            low, high = numbers(s["a"])
        except (ValueError, IndexError) as error:
            return f"{type(error).__name__}: {error}"
        return low * high

    agree(program, REPLIES, q="x")


def test_the_best_of_several_is_a_text():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", n=3, max_tokens=9)
        s += max(s["a"], key=lambda each: (each.count(","), each)).strip()

    agree(program, REPLIES, q="x")
    assert n_tests(trace(program)) == 0


def test_a_result_that_may_be_an_argument_is_no_list_of_its_own():
    def same(given, a):
        return given if {a: 1} else []

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        given = s["a"].split(",")
        found = same(given, s["a"])
        found.append("z")
        s += str(given) + str(found)

    with pytest.raises(TraceError, match="a list of others, is changed"):
        trace(program, is_full=True)


def test_more_values_than_a_type_has_parts():
    names = [f"x{n}" for n in range(70)]
    body = "".join(f"    {name} = (a.count('{n}'), a)\n" for n, name in enumerate(names))
    source = f"def piece(a):\n{body}    return [({', '.join(names)}), ({names[0]}, a)]"
    found = inferred(parse_code(source), (TEXT,))
    assert all(len(annotation_of(each)) < MAX_TYPE for each in found.items)
    wide = "a"
    for _ in range(6):
        wide = f"({', '.join([wide] * 4)})"
    type_ = inferred(parse_code(f"def piece(a):\n    return {wide}"), (TEXT,)).type
    assert parse_code_type(annotation_of(type_)).of == "tuple"
