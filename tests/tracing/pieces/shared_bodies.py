"""Bodies for test_held_elsewhere.py: parts that two values share, statements that end half done,
and helpers that change what they are given.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter, defaultdict, deque
from decimal import Decimal
from functools import lru_cache

SIZES = {8, 0, 16}


def added(w, acc=None):
    if acc is None:
        acc = {}
    acc[w] = len(acc)
    return acc


def tallied(words, counts):
    out = {}

    def bump(out, w):
        out[w] = out.get(w, 0) + 1

    for w in words:
        bump(out, w)
        bump(counts, w)
    return out


@lru_cache
def letters(w):
    return list(w.casefold())


def indexed(rows):
    found = {}
    for row in rows:
        found[row["w"]] = row
    return found


def first_of(rows):
    out = []
    out.append(rows[0])
    return out[0]


def number(w):
    return int(w.strip("x"), 16)


def a_parameter_is_set_anew(s, a):
    acc = {}
    for w in a.split(","):
        added(w, acc)
        s += "."
    return acc


def an_inner_parameter_has_a_locals_name(s, a):
    counts = {"k": 1}
    out = tallied(a.split(), counts)
    return out, counts


def what_a_cache_gives_is_one_object(s, a):
    xs = letters(a)
    xs.append("!")
    return letters(a), xs


def a_pop_fails_after_it(s, a):
    q = deque(a.split(","))
    try:
        n = int(q.popleft())
        s += "."
    except ValueError:
        n = -1
    return n, list(q)


def a_pop_fails_in_a_loop(s, a):
    q = deque(a.split(","))
    total = 0
    for _ in range(9):
        try:
            total += int(q.pop())
            s += "."
        except ValueError:
            s += "bad."
        except IndexError:
            break
    return total, len(q)


def a_key_is_added_before_it_fails(s, a):
    groups = defaultdict(list)
    try:
        groups[a].append(Decimal(a))
        s += "."
    except ArithmeticError:
        s += "no"
    return dict(groups), len(groups)


def a_sum_is_begun_before_it_fails(s, a):
    counts = defaultdict(int)
    try:
        counts[a] += int(a)
        s += "."
    except ValueError:
        s += "no"
    return dict(counts)


def a_heap_is_popped_before_it_fails(s, a):
    h = sorted(a.split(","))
    try:
        n = int(heapq.heappop(h))
        s += "."
    except ValueError:
        n = -1
    return n, h


def several_are_popped_before_one_fails(s, a):
    g = sorted(a + "xy")
    try:
        s += str([number(g.pop()) for _ in range(2)])
    except ValueError:
        s += "no"
    return g


def a_defaultdict_gives_a_part(s, a):
    d = defaultdict(list)
    for w in a.split(","):
        d[len(w)].append(w)
    max(d.values(), key=len).append("!")
    return dict(d)


def a_dict_gives_a_part_by_a_copy(s, a):
    d = {w: [w] for w in a.split(",")}
    first = first_of([*d.values()])
    first.append("!")
    return d


def the_best_row_is_changed(s, a):
    rows = [{"w": w, "n": len(w)} for w in sorted(a.split(","))]
    best = max(rows, key=lambda row: (row["n"], row["w"]))
    best["best"] = True
    return rows


def an_index_of_rows_is_changed(s, a):
    rows = [{"w": w} for w in sorted(a.split(","))]
    index = indexed(rows)
    for k in sorted(index):
        index[k]["seen"] = True
    return rows, index


def json_lies_in_a_dict_too(s, a):
    new, c = json.loads(json.dumps({"k": a})), {}
    c["n"] = new
    s += "."
    new["q"] = 1
    return c, new


def json_lies_in_a_list_often(s, a):
    new, xs = json.loads(json.dumps({"k": a})), []
    for i in range(3):
        xs.append(new)
        s += "."
        new["q"] = i
    return xs


def json_is_emptied(s, a):
    new, c = json.loads(json.dumps({"k": [a]})), {}
    while len(c) < 2:
        c[len(c)] = new
        s += "."
    new.clear()
    return c


def parts_of_json_are_changed(s, a):
    new, c = json.loads(json.dumps({"k": [a]})), {}
    c["k"] = new["k"]
    s += "."
    new["k"].append(1)
    return c, new


def a_view_is_read_after_a_change(s, a):
    d = Counter(a.split())
    keys = d.keys()
    s += "."
    d[a] += 1
    return list(keys), len(keys)


def a_loop_goes_over_a_view(s, a):
    d = Counter(a.split())
    for k, n in d.items():
        s += f"{k}{n}"
        d[k] = n + 1
    for k in list(d.keys()):
        d[k + "x"] = 0
        s += "."
    return d


def draws_move_on(s, a):
    rng = random.Random(len(a))
    return [rng.getrandbits(9), rng.getrandbits(9), rng.expovariate(1), rng.triangular(0, 1)]


def numbers_keep_their_order(s, a):
    found = Counter(a)
    return [n for n in SIZES if found[str(n)] < 9]


BODIES = [
    a_parameter_is_set_anew, an_inner_parameter_has_a_locals_name, what_a_cache_gives_is_one_object,
    a_pop_fails_after_it, a_pop_fails_in_a_loop, a_key_is_added_before_it_fails,
    a_sum_is_begun_before_it_fails, a_heap_is_popped_before_it_fails,
    several_are_popped_before_one_fails, a_defaultdict_gives_a_part, a_dict_gives_a_part_by_a_copy,
    the_best_row_is_changed, an_index_of_rows_is_changed, json_lies_in_a_dict_too,
    a_view_is_read_after_a_change, a_loop_goes_over_a_view, json_lies_in_a_list_often,
    json_is_emptied, parts_of_json_are_changed, draws_move_on,
    numbers_keep_their_order,
]  # fmt: skip
SAID = [
    a_dict_gives_a_part_by_a_copy, an_index_of_rows_is_changed, the_best_row_is_changed,
    parts_of_json_are_changed,
]  # fmt: skip
