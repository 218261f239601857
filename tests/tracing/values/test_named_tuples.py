"""Named tuples that `collections.namedtuple` makes, in lists that grow and as results: as those of
class statements, and as plain tuples."""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import pytest
from control_flow import agree

import sgc
from sgc.tracing.pieces.text.classes import NoClass, user_class

POOL = ("a", "b c", "", "x\ny", "é")
Finding = namedtuple("Finding", "check severity note", defaults=("none",))
Called = NamedTuple("Called", [("name", str), ("n", int)])  # noqa: UP014
Changed = namedtuple("Changed", "a b")
Changed.total = lambda self: self.a + self.b


@sgc.function
def sorted_by(s, q: str):
    found = []
    for check in ("one", "two", "three", "four"):
        f = s.fork(1)[0]
        f += q + check + sgc.select("ok", choices=["1", "2", "no"])
        if f["ok"] == "no":
            continue
        f += sgc.gen("note", max_tokens=3)
        found.append(Finding(check, int(f["ok"]), f["note"].strip()))
    found.sort(key=lambda x: (-x.severity, x.check))
    worst = max((x.severity for x in found), default=0)
    s += "\n".join(f"{x.check}: {x.note}" for x in found) + str(worst) + sgc.gen("z", max_tokens=2)


@sgc.function
def taken_apart(s, q: str):
    found = []
    for check in q:
        s += check + sgc.select("ok", choices=["1", "2"])
        found.append(Finding(check, int(s["ok"])))
    found = [x._replace(severity=x.severity + 1) for x in found]
    for check, *rest in found:
        s += f"{check} {rest}"
    for x in found:
        match x:
            case (check, 3, _):
                s += f"{check} {x}" + sgc.gen("z", max_tokens=2)
    return found, found[:1]


@sgc.function
def of_a_call(s, q: str):
    found = []
    while len(found) < 4:
        s += q + sgc.gen("z", max_tokens=2)
        found.append(Called(s["z"], len(found)))
        if s["z"] == "a":
            break
    s += str([x._asdict() for x in found])
    return sorted(found)


PROGRAMS = (sorted_by, pytest.param(taken_apart, marks=pytest.mark.slow), of_a_call)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda each: each.name)
def test_as_interpreted(function):
    agree(function, POOL, q="xyzw")


def test_a_class_that_was_added_to_is_no_code():
    with pytest.raises(NoClass, match="source of Changed"):
        user_class(Changed)
