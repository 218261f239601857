"""Copies of dicts out of arguments and JSON, which have keys of their own. Nothing here relies on
the trace check."""

from __future__ import annotations

import json

import pytest
from control_flow import agree, agree_or_refuse
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer

REPLIES = ("a,bb,ccc", "", "dddd,e", "bb", "yes", "3")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)


def whole(program, n=10, **arguments):
    return agree(program, REPLIES, n=n, **arguments)


@sgc.function
def copied_rows(s, rows: list[dict]):
    copies = [dict(row) for row in rows]
    more = []
    for row in rows:
        more.append({"label": "", **row, "n": len(more)})
    for row in copies:
        s += f"{row['w']}" + sgc.gen("l", stop="\n")
        row["label"] = s["l"]
    for row in more[:1]:
        row["n"] += 5
    found = {str(row["w"]): row for row in copies if "a" in row["label"]}
    for row in found.values():
        row["w"] = str(row["w"]) + "!"
    s += json.dumps(copies) + f"{more}" + str(len(found)) + sgc.gen("z", stop="\n")
    return copies, more, [row.get("label") for row in rows]


@pytest.mark.parametrize("rows", [[], [{"w": "x", "t": [1]}, {"w": 2}], [{"w": "", "n": 1}]])
def test_copies_of_dicts_out_of_arguments(rows):
    whole(copied_rows, n=4, rows=rows)


@sgc.function
def kept_from_arguments(s, rows: list[dict]):
    hits = []
    for row in rows:
        hits.append({**row, "why": sorted(str(row["w"])), "seen": []})
    for hit in hits:
        s += f"{hit['w']}" + sgc.gen("l", stop="\n")
        hit["why"].append(s["l"])
        hit["seen"].append(hit["why"][:1])
        if "a" in s["l"]:
            hit.setdefault("mark", s["l"])
            hit["n"] = hit.get("n", 0)
    best = max(hits, key=lambda hit: len(hit["why"]))
    best.pop("t", None)
    s += f"{best} {'mark' in best} {best == dict(best)} {len(best)}"
    other = {**best, "w": "other"}
    other["why"] += ["both"]
    for key in best:
        s += key
    return hits, other


@pytest.mark.parametrize("rows", [[{"w": "x", "t": [1]}, {"w": 2}], [{"w": "", "n": 1}]])
def test_open_rows_have_lists_of_their_own(rows):
    whole(kept_from_arguments, n=4, rows=rows)


@sgc.function
def looked_up(s, rows: list[dict]):
    copies = [{**row, "label": "none"} for row in rows]
    for row in copies:
        s += f"{row['w']}" + sgc.gen("k", stop="\n")
        row["label"] += "!"
        s += f"{row.get(s['k'])} {s['k'] in row} {row.get(row['w'], '-')}"
        try:
            s += f"{row[s['k']]} {row[s['k'] + 'bel']}"
        except KeyError as error:
            s += f"no {error}"
    return copies


@pytest.mark.parametrize("rows", [[{"w": "label"}, {"w": "x", "x": 2}], [{"w": "", "a": 1}]])
def test_open_rows_are_looked_up_by_keys_of_run_time(rows):
    agree(looked_up, ("a", "label", "w", "la"), n=8, rows=rows)


@sgc.function
def sorted_json(s, rows: list[dict]):
    for row in rows:
        s += "".join(sorted(row["w"])) + sgc.gen("l", stop="\n")


@pytest.mark.parametrize("of", ["ba", True, None, {"b": 1, "a": 2}, [1, "a"]])
def test_sorted_of_what_cannot_be_raises_what_python_raises(of):
    compiled = sorted_json.compile()
    agree_or_refuse(sorted_json, compiled, REPLIES, n=1, rows=[{"w": of}])
