"""Rows written by csv to a text are code, as rows that are read."""

from __future__ import annotations

import csv
import io
from io import StringIO

import pytest
from control_flow import agree_saved, equal_or_refused

import sgc

POOL = ['a,"b, c"\n1,2', "x", 'n,n2\n"q""q",\n', ""]


def written(row):
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(row)
    return out.getvalue()


def table(rows):
    out = StringIO()
    writer = csv.DictWriter(out, ["name", "age"], restval="?", lineterminator="\n")
    writer.writeheader()
    writer.writerow({"name": "first"})
    writer.writerows(rows)
    return out.getvalue()


@sgc.function
def rows_again(s, q: str):
    s += q + sgc.gen("table", max_tokens=20)
    rows = list(csv.reader(io.StringIO(s["table"])))
    for row in rows:
        s += f"{written(row)}\n"
    s += "\n".join(written(r) for r in rows)
    return [written([q, *row, 1]) for row in rows]


@sgc.function
def dicts(s, q: str):
    found = []
    for _ in range(3):
        s += q + sgc.gen("name", max_tokens=20)
        found.append({"name": s["name"], "age": len(s["name"])})
    s += table(found)
    return table([{"name": s["name"]}])


@pytest.mark.parametrize("function", [rows_again, dicts], ids=lambda f: f.name)
def test_written_as_python_writes(function):
    agree_saved(function, POOL, q="x")


def added(out, row):
    csv.writer(out).writerow(row)
    return len(row)


@sgc.function
def to_a_file_of_others(s, q: str):
    """A function writes to what it is given."""
    s += q + sgc.gen("name", max_tokens=20)
    out = io.StringIO()
    added(out, [s["name"]])
    added(out, ["x", s["name"]])
    return out.getvalue()


def test_a_file_that_is_given_is_changed():
    assert equal_or_refused(to_a_file_of_others, POOL) == "refused"
