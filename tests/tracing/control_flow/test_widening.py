"""Values that differ from turn to turn: what a program keeps, shares and changes of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.programs.compiling import compile_function
from sgc.tracing.tracer import trace

REPLIES = ("yes", "no", "a,b", "7", "")


def refused(body: Any) -> str:
    with pytest.raises(TraceError) as error:
        trace(sgc.function(body), is_full=True)
    assert "test_widening.py" in error.value.where
    return str(error.value)


def test_errors_of_lists_that_grow_say_what_pythons_do():
    @sgc.function
    def program(s, q: str):
        xs = []
        for _ in sgc.turns(6):
            s += "?" + sgc.gen("x")
            xs.append(s["x"])
            if s["x"] == "no":
                xs.clear()
        for change in (lambda: xs.pop(), lambda: xs.pop(2), lambda: xs.__delitem__(1)):
            try:
                change()
                s += "."
            except IndexError as error:
                s += str(error)
        s += str(xs)

    agree(program, REPLIES, q="x")


def test_items_that_may_be_none():
    @sgc.function
    def program(s, q: str):
        xs = []
        for _ in sgc.turns(6):
            s += "?" + sgc.gen("x")
            xs.append(s["x"] or None)
        for x in xs:
            s += "none" if x is None else f"<{x}>"
        s += "last is none" if xs[-1] is None else "last"

    agree(program, REPLIES, q="x")


def test_bools_are_the_same_where_they_are_equal():
    @sgc.function
    def program(s, q: str):
        was, n = False, 0
        for _ in sgc.turns(6):
            s += "?" + sgc.gen("x")
            is_yes = s["x"] == "yes"
            if is_yes is was or is_yes is not True:
                n += 1
            was = is_yes
        s += str(n) + str(was is True) + str(was is None)

    agree(program, REPLIES, q="x")


def test_the_default_of_a_look_up_is_no_value_of_the_empty_key():
    @sgc.function
    def program(s, q: str):
        s += "?" + sgc.gen("x")
        found = {"": 1, "yes": "y"}.get(s["x"], "none")
        s += f"{found} {found == 1} {isinstance(found, int)}"

    agree(program, REPLIES, q="x")


def test_attributes_of_classes_are_carried():
    @sgc.function
    def program(s, q: str):
        class Notes:
            n, texts = 0, []

        for _ in sgc.turns(6):
            s += "?" + sgc.gen("x")
            Notes.n += 1
            Notes.texts.append(s["x"])
        s += str(Notes.n) + str(Notes.texts)

    graph = agree(program, REPLIES, q="x")
    assert sum(node.op == "gen" for node in graph.nodes()) < 4


def test_items_of_a_list_that_grows_are_tuples_and_dicts():
    @sgc.function
    def program(s, q: str):
        pairs, rows, n = [], [], 0
        for i in range(7):
            s += "?" + sgc.gen("x", max_tokens=4)
            pairs.append((i, s["x"]))
            rows.append({"n": n, "text": s["x"]})
            if s["x"] == "no":
                n += 1
        for i, text in pairs:
            s += f"{i + 1}: {text.upper()}; "
        for row in rows[-2:]:
            s += f"{row['n'] * 2} {row['text']} "
        s += f"{(0, 'no') in pairs} {pairs.count((1, 'no'))} {pairs[-1]} {pairs} {rows}"
        return pairs, rows

    assert agree(program, REPLIES, q="x").n_nodes < 130


class Point(NamedTuple):
    x: str


@sgc.function
def puts_named_tuples(s, q: str):
    xs: list[object] = [*q.split(",")]
    xs.append(Point("t"))
    s += str(xs) + sgc.gen("x", max_tokens=4)
    xs.append(Point(s["x"]))
    s += str(xs)
    return xs[-1].x


def test_named_tuples_are_items_of_a_list_that_grows():
    agree(puts_named_tuples, REPLIES, q="a,b")


def test_a_list_of_others_is_not_changed_where_it_was_widened():
    @sgc.function
    def program(s, q: str, rows: list[list[str]]):
        cur = ["a"]
        for _ in sgc.turns(8):
            s += "?" + sgc.gen("x")
            cur.append(s["x"])
            if s["x"] != "no" or not rows:
                s += "."
            else:
                cur = rows[0]
        s += str(rows) + str(cur)

    with pytest.raises(TraceError, match="a list is changed that another value holds"):
        compile_function(program, {}, is_full=True)


def test_what_is_in_a_list_that_grows_is_not_changed_where_it_was_widened():
    def program(s, q: str):
        rows = []
        while True:
            s += "?" + sgc.gen("x")
            rows.append([s["x"]])
            if s["x"] != "no":
                break
        row = ["z"]
        if s["x"] == "yes":
            row = ["a"]
        elif s["x"] == "7":
            row = ["b"]
        elif s["x"] == "":
            row = ["c", "d"]
        rows.append(row)
        s += "?" + sgc.gen("y")
        if s["y"] == "yes":
            s += "!"
        else:
            row.append("late")
        s += str(rows) + str(row)

    refused(program)


def test_a_name_that_was_a_variable_too_and_is_another_later():
    @sgc.function
    def program(s, q: str):
        draft = best = q
        score = 0
        for _ in range(3):
            s += "score" + sgc.gen("n", regex="[0-9]", max_tokens=1)
            if int(s["n"]) > score:
                best, score = draft, int(s["n"])
            if score > 7:
                break
            s += "better" + sgc.gen("draft", max_tokens=8)
            draft = s["draft"]
        return best, score

    assert agree(program, ["1", "5", "9", "a", "b"], q="x").n_nodes < 120


def test_names_that_some_ways_set_stay_apart_where_a_join_asks_for_them():
    @sgc.function
    def program(s, q: str):
        w = "w"
        s += "?" + sgc.gen("x")
        for f in (group := s.fork(2)):
            if f["x"] == "yes" or f["x"] == "7":
                pass
            else:
                f += "which" + sgc.select("y", choices=["yes", "no", "7"])
                w = {"yes": "Y", "no": "N", "7": "S"}[f["y"]]
        group.join()
        s += sgc.gen("last")
        return [w]

    agree(program, REPLIES, q="x")


def test_a_list_of_objects_is_none_of_texts():
    @sgc.function
    def program(s, q: str):
        xs = []
        for _ in range(6):
            s += "?" + sgc.gen("x")
            if s["x"] == "yes":
                xs = [(s["x"],)]
            elif s["x"] == "no":
                xs = [s["x"], "k"]
            elif s["x"] == "7":
                xs = []
        s += str(xs)

    agree(program, REPLIES, q="x")


@sgc.function
def shared(s, q: str):
    out: list[str] = []
    keep = out
    for _ in sgc.turns(6):
        s += "?" + sgc.gen("x")
        if s["x"] == "no":
            out += [s["x"]]
        else:
            out = out + [s["x"]]  # noqa: RUF005
    s += f"{keep} {out} {keep is out}"


@sgc.function
def swapped(s, q: str):
    one, two = [], []
    for _ in sgc.turns(7):
        s += "?" + sgc.gen("x")
        one.append(s["x"])
        one, two = two, one
    s += f"{one} {two}"


@sgc.function
def in_closures(s, q: str):
    texts, n, last = [], 0, ""

    def note(text):
        nonlocal n, last
        texts.append(text)
        n, last = n + len(text), text + last[:2]

    for _ in sgc.turns(7):
        s += "?" + sgc.gen("x")
        note(s["x"])
    s += f"{texts} {n} {last}"


@sgc.function
def handled(s, q: str):
    log, n = [], 0
    for _ in range(6):
        s += "?" + sgc.gen("x")
        try:
            n += int(s["x"])
            log.append("ok")
            continue
        except ValueError as error:
            log.append(str(error))
            if len(log) > 7:
                break
        finally:
            n += 1
            log.append("f")
        log.append("after")
    else:
        log.append("all")
    s += f"{n} {log}"


@sgc.function
def kept_in_dicts(s, q: str):
    d = {"notes": "", "n": 0, "score": 0.0, "ok": False, "tags": []}
    for _ in range(12):
        s += "?" + sgc.gen("x")
        d["notes"] += s["x"] + ";"
        d["n"] += 1
        d["score"] = d["score"] * 0.5 + len(s["x"])
        d["ok"] = d["ok"] or s["x"] == "yes"
        if s["x"] not in d["tags"]:
            d["tags"].append(s["x"])
        if d["ok"] and d["n"] > 3:
            break
    s += str(d)


PROGRAMS = (shared, swapped, in_closures, handled, kept_in_dicts)


@pytest.mark.sweep
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_is_shared_and_kept_stays_so(program):
    agree(program, REPLIES, q="x")
