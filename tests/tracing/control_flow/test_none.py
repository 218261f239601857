"""Variables that are None on some paths, and texts, numbers or data on others."""

from __future__ import annotations

import json

import pytest
from control_flow import agree

import sgc

REPLIES = ("yes", "no", "a,b", "7", "", "12")
DATA = ('{"next": null, "n": 1}', '{"next": "a", "n": null}', '{"next": 3}', "{}", '["x"]')


def n_gens(graph) -> int:
    return sum(node.op == "gen" for node in graph.nodes())


def test_the_first_of_several_that_fits():
    @sgc.function(max_turns=12)
    def program(s, q: str):
        found = second = third = None
        for i in range(6):
            s += f"{i}?" + sgc.gen("x", max_tokens=4)
            if s["x"] == "yes" and found is None:
                found = s["x"] + str(i)
            elif s["x"] == "no" and second is None:
                second = i
            elif s["x"] == "7":
                third = len(s["x"]) / 2
        s += "none" if found is None else found.upper()
        s += str(second) if second is None else f"{second + 1}"
        if third:
            s += f"{third:.1f}"
        return found, second, third

    graph = agree(program, REPLIES, q="x")
    assert n_gens(graph) < 8
    assert graph.n_nodes < 400


def test_the_best_so_far():
    @sgc.function(max_turns=12)
    def program(s, q: str):
        best = name = last = None
        for i in range(8):
            s += f"{i}?" + sgc.gen("x", max_tokens=4)
            score = len(s["x"])
            if best is None or score > best:
                best, name = score, s["x"]
            if s["x"] == "no":
                last = None
            elif s["x"]:
                last = s["x"]
        s += f"{best} {name} {last or 'nothing'}"
        return best, name, last

    graph = agree(program, REPLIES, q="x")
    assert n_gens(graph) < 8


@pytest.mark.slow
def test_none_is_used_as_python_uses_it():
    @sgc.function(max_turns=12)
    def program(s, q: str):
        a = b = c = None
        for i in range(6):
            s += f"{i}?" + sgc.gen("x", max_tokens=4)
            if s["x"] == "yes":
                a = s["x"]
            elif s["x"] == "no":
                b = i
            elif s["x"] == "7":
                c = True
        for use in (lambda: a + "!", lambda: b + 1, lambda: a.upper(), lambda: len(a)):
            try:
                s += f"{use()};"
            except (TypeError, AttributeError) as error:
                s += f"{type(error).__name__} {error};"
        s += f"{a in (None,)} {a == 'yes'} {b == 3} {not c} {a in (None, 'x')} {c is True} {a is b}"
        s += json.dumps([a, b, c]) + repr(a) + f"{b!r:>6}" + str([a])
        try:
            s += a
        except Exception as error:
            s += type(error).__name__
        try:
            s += str(b * 2)
        except TypeError as error:
            s += str(error)
        return {"a": a, "b": b, "c": c}

    assert n_gens(agree(program, REPLIES, q="x")) < 8


def test_attributes_and_cells_that_may_be_none():
    @sgc.function(max_turns=12)
    def program(s, q: str):
        class Memory:
            def __init__(self):
                self.best = None

        memory, seen = Memory(), None

        def note(text):
            nonlocal seen
            if seen is None and text:
                seen = text

        for i in range(3):
            s += f"{i}?" + sgc.gen("x", max_tokens=4)
            note(s["x"])
            if s["x"] == "yes":
                memory.best = i
        s += "?" if memory.best is None else f"{memory.best}"
        return seen, memory.best

    agree(program, REPLIES, q="x")


def test_items_of_a_dict_that_may_be_none():
    @sgc.function(max_turns=12)
    def program(s, q: str):
        kept = {"last": None, "n": None}
        for i in range(6):
            s += f"{i}?" + sgc.gen("x", max_tokens=4)
            if s["x"] == "no":
                kept["last"] = s["x"]
            else:
                kept["n"] = len(s["x"])
        if kept["last"] is not None:
            s += kept["last"].upper()
        s += f"{kept['n']}"
        return kept

    assert n_gens(agree(program, REPLIES, q="x")) < 16


def test_data_that_may_be_none():
    @sgc.function(max_turns=9)
    def program(s, q: str):
        cursor, previous, n = 0, None, None
        for i in range(7):
            s += f"{i}?" + sgc.gen("x", max_tokens=30)
            try:
                page = json.loads(s["x"])
            except ValueError:
                continue
            if not isinstance(page, dict):
                previous = page
                continue
            if page.get("next") is None:
                s += "end"
            elif page["next"] == "a":
                cursor = page["next"]
            else:
                cursor = None
            n = page.get("n", n)
        s += f"{cursor} {previous} {n}" + ("none" if n is None else str(n))
        if cursor is None:
            s += "c"
        return cursor, previous, n

    assert n_gens(agree(program, DATA, q="x")) < 14


def test_values_out_of_json_are_tested_where_they_are_used():
    @sgc.function
    def program(s, q: str):
        s += "?" + sgc.gen("x", max_tokens=30)
        try:
            page = json.loads(s["x"])
            parts = [page["next"], page.get("n"), page.get("m")]
        except (ValueError, TypeError, KeyError) as error:
            s += type(error).__name__
            return None
        for part in parts:
            match part:
                case None:
                    s += "none;"
                case "a" | "b":
                    s += "letter;"
                case _:
                    s += f"{part};"
        a, b, _ = parts
        s += f"{a is b} {a is None is b} {None is not b}"
        return a if a is not None else b

    graph = agree(program, DATA, q="x")
    assert graph.n_nodes < 200


def test_bools_or_none():
    @sgc.function(max_turns=9)
    def program(s, q: str):
        keep = again = None
        for i in range(6):
            s += f"{i}?" + sgc.gen("x", max_tokens=4)
            if s["x"] == "yes":
                keep = s["x"] == "yes"
            elif s["x"] == "no":
                keep = False
            elif s["x"] == "7":
                again, keep = keep, None
            if keep is None and again is not True:
                s += "ask"
            if keep:
                s += "kept"
        s += f"{keep} {again}"

    agree(program, REPLIES, q="x")


def counting(items):
    for item in items:
        yield item + item


def test_none_of_the_tracers_own_loops_is_not_widened():
    @sgc.function
    def program(s, q: str):
        words, last = counting(q.split(",")), 0
        for _ in filter(len, q.split(",")):
            s += q + sgc.gen("x", max_tokens=4)
            for last, word in enumerate(words, 1):
                s += f"{last}{word}"
            s += next(words, "end")
        return last

    agree(program, REPLIES, q="a,b,,c")
