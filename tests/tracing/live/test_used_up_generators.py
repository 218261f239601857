"""Generator expressions over calls that ask a model, in arguments of methods."""

from __future__ import annotations

from collections import deque

import pytest
from control_flow import agree

import sgc

REPLIES = ["a,bb,c", "7", "x,7", "2", "no,yes,no", "", "a,a"]


@sgc.function
def judged(s, text: str, n: int = 0):
    s += f"Rate {text} {n}" + sgc.gen("n")
    return len(s["n"])


@sgc.function
def tagged(s, text: str, known: list[str]):
    s += f"Tags of {text}, {known}" + sgc.gen("xs", max_tokens=9)
    return [x for x in s["xs"].split(",") if x]


def parts_of(s, q):
    s += q + sgc.gen("xs")
    return s["xs"].split(",")


class Article:
    def __init__(self, title):
        self.title = title
        self.tags = []


@sgc.function
def extends_by_what_is_new(s, q: str):
    articles, known = [], []
    for x in parts_of(s, q):
        article = Article(x)
        article.tags.extend(t for t in tagged(x, known).ret_value if t not in article.tags)
        known += [t for t in article.tags if t not in known]
        articles.append(article)
    s += str([(a.title, a.tags) for a in articles]) + str(known)


@sgc.function
def extends_by_answers(s, q: str):
    marks = []
    same = marks
    xs = parts_of(s, q)
    marks.extend(judged(x, len(marks)).ret_value for x in xs if x)
    s += str(same)
    marks.extend(judged(x + y).ret_value for x in xs if len(same) < 6 for y in ["1", x])
    s += str(same)


@sgc.function
def extends_by_lists(s, q: str):
    rows, xs = [], parts_of(s, q)
    rows.extend([judged(y, len(rows)).ret_value for y in xs] for x in xs)
    rows.extend({y: judged(y).ret_value for y in tagged(x, xs).ret_value} for x in xs)
    s += str(rows)


@sgc.function
def keeps_what_was_added(s, q: str):
    marks = deque([0])
    xs = parts_of(s, q)
    try:
        marks.extend(6 // (judged(x).ret_value - 1) for x in xs)
        found = None
    except ZeroDivisionError as error:
        s += str(error)
        found = marks.extend(int(x) + judged(x).ret_value for x in xs if x.isdigit())
    s += str(marks) + str(found)


@sgc.function
def extends_nothing(s, q: str):
    log = []
    found = {"a": log}

    def noted(x):
        log.append(x)
        return parts_of(s, x)

    try:
        noted("first")
        found.get(noted("it")[0]).extend(judged(x).ret_value for x in noted("items"))
    except AttributeError as error:
        s += str(error)
    s += str(log)


@sgc.function
def evaluates_in_order(s, q: str):
    log = []

    def noted(what, value):
        log.append(what)
        return value

    xs = parts_of(s, q)
    noted("to", xs).extend(
        noted("item", str(judged(x).ret_value)) for x in noted("over", xs[:]) if noted("if", x)
    )
    s += str(xs) + str(log)


@sgc.function
def same_name(s, q: str):
    x, xs = [q], parts_of(s, q)
    x.extend(str(judged(x).ret_value) for x in xs)
    s += str(x)
    xs.extend(xs for xs in [str(judged(x).ret_value) for x in xs])
    s += str(xs)


@sgc.function
def joins_and_sums(s, q: str):
    xs, seen = parts_of(s, q), []
    s += ", ".join(str(judged(t).ret_value) for t in tagged(q, xs).ret_value if t not in seen)
    s += str(sum(judged(t).ret_value for t in tagged(q + "2", xs).ret_value if t in xs))
    seen.append({judged(t).ret_value for t in tagged(q, xs).ret_value})
    s += str(len(set(judged(x).ret_value for x in xs))) + str(seen)  # noqa: C401


class Bag:
    def __init__(self):
        self.items = []

    def extend(self, items):
        self.items.append("more")
        for each in items:
            self.items.append(each)
            if len(self.items) > 3:
                return


@sgc.function
def extends_its_own(s, q: str):
    bag, xs = Bag(), parts_of(s, q)
    bag.extend(x + q for x in xs)
    s += str(bag.items)


PROGRAMS = [
    extends_by_what_is_new, extends_by_answers, extends_by_lists, keeps_what_was_added,
    extends_nothing, evaluates_in_order, same_name, joins_and_sums, extends_its_own,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_runs_are_as_interpreted(program):
    graph = agree(program, REPLIES, q="a")
    assert not [node for node in graph.nodes() if node.op == "deopt"]
