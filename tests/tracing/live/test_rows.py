"""Dicts whose keys the source writes, changed while lists, dicts and variables hold them. Nothing
here relies on the trace check."""

from __future__ import annotations

import copy
import json

import pytest
from control_flow import agree, equal_or_refused
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
def labelled(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = []
    for topic in s["list"].split(","):
        rows.append({"topic": topic, "label": ""})
    for row in rows:
        s += row["topic"] + sgc.gen("l", stop="\n")
        row["label"] = s["l"]
    good = [row["topic"] for row in rows if "a" in row["label"]]
    s += "/".join(good) + str(len(rows))
    return good


def test_a_loops_variable_changes_rows():
    whole(labelled)


@sgc.function
def counted(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = [{"topic": t, "score": 0, "notes": []} for t in s["list"].split(",")]
    for i, row in enumerate(rows):
        s += f"{i} {row['topic']}" + sgc.gen("l", stop="\n")
        if "a" in s["l"]:
            row["score"] += 2
            row["notes"].append("has a")
        elif s["l"]:
            row["score"] += 1
            row["notes"].append(s["l"])
    best = max(rows, key=lambda row: row["score"])
    best["score"] += 100
    ranked = sorted(rows, key=lambda row: -row["score"])
    for row in ranked:
        s += f"{row['topic']}={row['score']}:{'+'.join(row['notes'])};{row is best}"
    return best["score"]


def test_rows_with_numbers_and_lists():
    whole(counted)


@sgc.function
def grouped(s):
    s += "list" + sgc.gen("list", stop="\n")
    groups = {}
    for word in s["list"].split(","):
        group = groups.setdefault(str(len(word)), {"n": 0, "words": []})
        group["n"] += 1
        group["words"].append(word)
    for name, group in groups.items():
        s += f"{name}: {group['n']} {' '.join(group['words'])}" + sgc.gen("z", stop="\n")
        if s["z"] == "yes":
            groups[name]["n"] += 10
    return [group["n"] for group in groups.values()]


def test_rows_of_a_dict():
    whole(grouped)


@sgc.function
def ranked(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = []
    for word in s["list"].split(","):
        rows.append({"word": word, "size": len(word)})
    rows.sort(key=lambda row: -row["size"])
    for rank, row in enumerate(rows, 1):
        row["rank"] = rank
    for row in rows[:2]:
        s += f"{row['rank']} {row['word']}" + sgc.gen("c", stop="\n")
        if s["c"]:
            row["comment"] = s["c"]
    s += "\n".join(f"{row['rank']} {row.get('comment', '-')} {'comment' in row}" for row in rows)
    s += sgc.gen("z", stop="\n")
    return rows


def test_rows_get_keys():
    whole(ranked)


@sgc.function
def in_any_order(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = [{"word": word} for word in s["list"].split(",")]
    for row in rows:
        s += row["word"] + sgc.gen("z", stop="\n")
        if s["z"] == "yes":
            row["first"] = 1
            row["second"] = None
        elif s["z"]:
            row["second"] = s["z"]
            row["first"] = 2
    for row in rows:
        for key, value in row.items():
            s += f"{key}={value}"
        s += f"{len(row)}"
    return json.dumps(rows), list(rows)


def test_the_order_of_keys_is_that_in_which_they_were_set():
    whole(in_any_order)


@sgc.function
def as_data(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = []
    for word in s["list"].split(","):
        row = {"word": word, "tags": [], "of": {"n": len(word)}}
        if "a" in word:
            row["tags"].append("a")
        row["of"]["n"] += 1
        rows.append(row)
    last = rows[-1]
    s += json.dumps(rows, indent=1) + f"{last}" + str(last["of"]) + sgc.gen("z", stop="\n")
    other = dict(last)
    other["word"] = "other"
    other["tags"].append("both")
    more = {**last, "word": s["z"]}
    same = last == {"word": "e", "tags": ["both"], "of": {"n": 2}}
    s += f"{last['word']} {more['word']} {last['tags']} {same} {other == last}"
    return {"rows": rows, "last": last, "more": more}


def test_rows_are_shown_copied_compared_and_returned():
    whole(as_data)


@sgc.function
def last_of_code(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = []
    for word in s["list"].split(","):
        rows.append({"word": word, "tags": []})
    copy_of = dict(rows[-1])
    copy_of["word"] = "other"
    s += f"{rows[-1]['word']} {copy_of['word']}" + sgc.gen("z", stop="\n")


def test_the_last_item_of_what_code_gives():
    agree(last_of_code, REPLIES, n=6)


@sgc.function
def viewed(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = [{"word": word} for word in s["list"].split(",")]
    for row in rows:
        keys, values, items = row.keys(), row.values(), row.items()
        row["n"] = len(row["word"])
        row["word"] += "!"
        s += f"{sorted(keys)} {list(values)} {dict(items)} {'n' in keys} {len(items)}"
        for key in row:
            s += key
    s += sgc.gen("z", stop="\n")
    return [[*row] for row in rows]


def test_views_show_what_a_row_has_when_they_are_read():
    whole(viewed)


@sgc.function
def tasks(s, topics: list[str]):
    tasks = [{"name": t, "state": "open", "tries": 0} for t in topics]
    for _ in sgc.turns(6):
        task = next((t for t in tasks if t["state"] == "open"), None)
        if task is None:
            break
        s += "Do " + task["name"] + sgc.gen("ok", stop="\n")
        task["tries"] += 1
        if s["ok"] == "yes" or task["tries"] > 1:
            task["state"] = s["ok"]
    s += f"{sum(1 for t in tasks if t['state'] == 'yes')} done" + sgc.gen("z", stop="\n")
    return [f"{t['name']} {t['tries']}" for t in tasks]


def test_the_first_row_that_is_open():
    whole(tasks, topics=["x", "y"])


@sgc.function
def missing(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = [{"word": word} for word in s["list"].split(",")]
    for row in rows:
        if "a" in row["word"]:
            row["label"] = "A"
    try:
        s += "".join(row["label"] for row in rows)
    except KeyError as error:
        s += f"no {error}"
    s += sgc.gen("z", stop="\n")
    if "e" in s["z"]:
        rows[0].pop("label", None)
    return [row.get("label") for row in rows]


def test_a_key_that_is_missing_raises():
    whole(missing)


@sgc.function
def several_forms(s):
    s += "list" + sgc.gen("list", stop="\n")
    found = []
    for word in s["list"].split(","):
        try:
            found.append({"word": word, "ok": True, "n": int(word)})
        except ValueError as error:
            found.append({"word": word, "ok": False, "error": str(error)})
    for each in found:
        if not each["ok"]:
            each["error"] += "!"
    s += str(found) + sgc.gen("z", stop="\n")
    return [each["ok"] for each in found]


def test_rows_of_several_forms():
    whole(several_forms)


@sgc.function
def matched(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = [{"kind": word, "n": 0} for word in s["list"].split(",")]
    for row in rows:
        row["n"] += 1
        match row:
            case {"kind": "bb", "n": n}:
                s += f"b{n}"
            case {"kind": kind}:
                s += kind
    return sum(row["n"] for row in rows)


def test_rows_are_matched():
    whole(matched)


@sgc.function
def in_a_closure(s):
    s += "list" + sgc.gen("list", stop="\n")
    state = {"history": [], "score": 0}

    def step(word):
        state["history"].append({"word": word, "ok": False})
        state["score"] += len(word)

    for word in s["list"].split(","):
        step(word)
    for each in state["history"]:
        each["ok"] = each["word"] == "bb"
    s += f"{state['score']} {[each['ok'] for each in state['history']]}"
    return state


def test_a_state_that_a_function_inside_changes():
    whole(in_a_closure)


def as_text(word, n, tags):
    return f"{word}{n}{len(tags)}"


@sgc.function
def spread(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows = []
    for word in s["list"].split(","):
        rows.append({"word": word, "n": 1, "tags": []})
    for row in rows:
        row["n"] += len(row["word"])
        row["tags"].append("x")
    last = rows[-1]
    other = copy.deepcopy(last)
    other["tags"].append("y")
    s += as_text(**last) + "{word} {n}".format(**last) + f"{len(last['tags'])}{len(other['tags'])}"
    s += f"{sorted(last)} {next(iter(last.values()))} {list(last)} {dict(last.items())['word']}"
    s += "%(word)s %(n)d" % last  # noqa: UP031
    s += sgc.gen("z", stop="\n")
    return json.dumps({"rows": rows, "n": len(rows)})


def test_rows_are_spread_and_listed():
    whole(spread)


@sgc.function
def counted_by_key(s):
    s += "list" + sgc.gen("list", stop="\n")
    counts = {"a": 0, "other": 0}
    facts = {"a": "b"}
    for word in s["list"].split(","):
        counts["a" if word == "a" else "other"] += 1
        facts[word] = "c"
    s += f"{counts} {sum(counts.values())} {max(counts, key=counts.get)}{len(facts)}"
    return sorted(counts.items())


def test_dicts_that_are_looked_up_by_a_key_of_run_time_are_no_rows():
    whole(counted_by_key)


@sgc.function
def rows_in_plain_dicts(s):
    s += "list" + sgc.gen("list", stop="\n")
    rows, best = [], {"n": 0}
    for word in s["list"].split(","):
        row = {"word": word, "of": {"n": len(word)}}
        s += "known" if row.get(s["list"]) else "unknown"
        if row["of"]["n"] >= best["n"]:
            best = row["of"]
        rows.append(row)
    best["n"] += 10
    s += f"{rows}" + json.dumps(rows) + sgc.gen("z", stop="\n")
    return rows, (best, 1)


def test_rows_in_dicts_that_are_looked_up_by_a_key_of_run_time():
    whole(rows_in_plain_dicts)


@sgc.function
def chosen(s, names: list[str]):
    players = {name: {"name": name, "points": 0} for name in names}
    order = list(players.values())
    for turn in range(4):
        player = order[turn % len(order)]
        s += player["name"] + sgc.gen("a", stop="\n")
        if s["a"] == "yes":
            player["points"] += 5
        elif s["a"] in players:
            players[s["a"]]["points"] -= 1
    best = max(players.values(), key=lambda p: p["points"])
    s += best["name"] + str(best["points"]) + sgc.gen("z", stop="\n")
    return [(p["name"], p["points"]) for p in order]


def test_rows_of_a_dict_and_a_list():
    whole(chosen, names=["bb", "c"])


@sgc.function
def updated(s, q):
    rows = [{"name": name, "tags": []} for name in "ab"]
    for row in rows:
        s += row["name"] + sgc.gen("t", stop="\n")
        more = dict(tags=s["t"].split(","))  # noqa: C408
        row.update(more)
        more["tags"].append("late")
        row["name"] += "!"
    return rows


def test_a_list_that_update_gives_is_the_others_too():
    assert equal_or_refused(updated, REPLIES)
