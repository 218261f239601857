"""Statements of random programs: loops that carry texts, numbers and lists from one iteration to
the next in variables, objects, dicts and lists, and reads of these.

`{t}` is the place of the value, `{n}` its own name, `{x}` a text of the iteration, `{s}` the
stream.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

HEAD = """\
from datetime import date, timedelta

TABLE = {"yes": "Y", "no": "N", "": "E"}
NUMBERS = {"yes": 1, "7": 7}
MIXED = {"yes": 1, "no": "N", "": None}
KNOWN = {"yes", "x,y"}
ROWS = ["r0", "r1", "r2"]
SIZES = {11, 3, 0, 1000, -2}


class Kept:
    kind = "kept"

    def __init__(self, v):
        self.v = v

    def change(self, v):
        self.v = v


class Store:
    # Its methods have the names of Python's, and may fail half way.

    def __init__(self, first):
        self.items = [*first]
        self.n = 0

    def append(self, item):
        self.n += 1
        if item == "no":
            raise ValueError(item, self.n)
        self.items.append(item)

    def add(self, *items):
        for item in items:
            self.append(item)

    def list(self):
        return self.items

    def count(self, item):
        self.n += 1
        return self.items.count(item)


def later(day, n):
    day += timedelta(days=n)
    return day


def put(items, item):
    items.append(item)
    return len(items)


def tally(counts, key, by=1):
    counts[key] = counts.get(key, 0) + by
    return len(counts)


def each_of(items):
    for item in items:
        yield item


def counting(items):
    n = 0
    for item in items:
        if item == "no":
            continue
        n += len(item)
        yield f"{n}{item[:3]}"
"""

# The statement that makes the place, and the expression for the place.
PLACES: tuple[tuple[str, str], ...] = (
    ("{n} = {first}", "{n}"), ("{n} = {first}", "{n}"), ("{n} = {first}", "{n}"),
    ("{n} = Kept({first})", "{n}.v"), ("{n} = {{'k': 0, 'v': {first}}}", "{n}['v']"),
    ("{n} = [{first}, w]", "{n}[0]"), ('{n} = (Kept({first}), "z")', "{n}[0].v"),
    ("{n} = {{'a': [{first}]}}", "{n}['a'][0]"),
)  # fmt: skip


@dataclass(frozen=True)
class Carried:
    """A value that a loop carries. first: its initial values; updates: statements of an iteration;
    shown: expressions that show it; reads: statements that show it.
    """

    kind: str
    first: tuple[str, ...]
    updates: tuple[str, ...]
    shown: tuple[str, ...]
    reads: tuple[str, ...] = ()


CARRIED = (
    Carried("carried text", ('""', '"a,"', "w"), (
        "{t} += {x}", '{t} = {x}[:3] + "," + {t}', '{t} = f"{{{t}}}|"',
        '{t} = {t}.replace("e", "")',
        'if "e" in {x}:\n    {t} += "e"', '{t} = {x} or {t}', "{t} += str(len({t}))",
        "try:\n    {t} += str(int({x}))\nexcept ValueError as error:\n    {t} += str(error.args)",
        "{t} += str([y for y in SIZES if y != len({x})])",
    ), ("{t}", "{t}[-9:]", "str(len({t}))", '{t}.split(",")[-1]', '("L" if len({t}) > 5 else "S")'),
        ('if {t} == "":\n    {s} += "none"', 'for y in {t}.split(",")[:3]:\n    {s} += y[:4]')),
    Carried("carried number", ("0", "1", "n", "-3"), (
        "{t} += 1", "{t} += len({x}[:4])", "{t} = {t} * 2 + 1", "{t} -= 2", "{t} = -{t}",
        'if {x} == "no":\n    {t} = 0', "{t} = max({t}, len({x}))", "{t} = {t} // 2",
    ), ("str({t})", 'f"{{{t}:03}}"', '"ab"[{t} % 2]', '("P" if {t} > 0 else "M")', "ROWS[{t} % 3]",
        '"x" * ({t} % 4)', "str({t} in (0, 3))", "str(NUMBERS.get({t}))"),
        ("try:\n    {s} += ROWS[{t}]\nexcept IndexError as error:\n    {s} += str(error)",
         "if {t} == 3:\n    {s} += 'three'")),
    Carried("carried float", ("0.0", "0.5", "-0.0"), (
        "{t} += 0.5", "{t} = ({t} + len({x}[:4])) / 2", "{t} = {t} * -1", "{t} -= 1",
    ), ("str({t})", 'f"{{{t}:.2f}}"', "str({t} > 1)", "str(int({t}))", "str(round({t}, 1))")),
    Carried("carried bool", ("False", "True"), (
        "{t} = not {t}", '{t} = {t} or {x} == "yes"', '{t} = {x} == "no" and {t}',
        '{t} = "e" in {x}', 'if {x} == "no":\n    {t} = True',
    ), ("str({t})", '("T" if {t} else "F")', "str({t} is True)", "str(1 + {t})", 'f"{{{t}}}"'),
        ("if {t}:\n    {s} += 'so'",)),
    Carried("carried list", ("[]", '["a"]', "[w, w]", "[[]][0]"), (
        "{t}.append({x})", "{t}.append({x})", "{t} += [{x}, w]", "{t} = [*{t}, {x}]",
        "{t}.extend([{x}, {x}[:2]])", "{t}.insert(0, {x})", "{t}.insert(1, {x})", "put({t}, {x})",
        "{t} += {x}.split(',')", "{t}.extend({x}.split('e')[:2])", "{t}[:1] = {x}.split()",
        "{t}.append({x})\nif len({t}) > 3:\n    {t}.pop(0)", "if {t}:\n    {t}.pop()",
        "{t}.append({x})\n{t}[0] = w", "{t}.append({x})\n{t}[-1] += '!'", "{t}.sort()",
        "{t}.reverse()", 'if "no" in {t}:\n    {t}.remove("no")', "{t} = {t}[1:] + [{x}]",
        "if {x} not in {t}:\n    {t}.append({x})", "{t}.append({x})\ndel {t}[0]", "{t}.clear()",
        "{t} = [y for y in {t} if y != {x}]", "{t} = [y + 'k' for y in {t}][:4]",
        "try:\n    {t}.append(str(int({x})))\nexcept ValueError:\n    {t}.append('bad')",
        "{t} = sorted({t})", "{t} = {t} * 2\ndel {t}[4:]", "{s} += str({t}.pop())",
        "if {t}:\n    {s} += {t}.pop(0)", "{t}.append({x})\n{t} = {t}[-2:]",
    ), ('"/".join({t})', "str(len({t}))", '({t} or ["none"])[-1]', "str({t})", "str({t}[:2])",
        "str({t}[::-1])", 'str("no" in {t})', 'str({t}.count("yes"))', "str({t} == [w])",
        '"/".join([y for y in {t} if y != "no"])', 'str(any(y == "no" for y in {t}))',
        'str(all(y for y in {t}))', "str(sum(len(y) for y in {t}))", "str([len(y) for y in {t}])",
        'str([y[:2] + z[:2] for y in {t}[:3] for z in {t}[:2] if y != z])', '{t}[0]',
        "str(sorted({t}))",
        '",".join(y[:3] for y in {t} if "e" in y)', "str(not {t})", "str(max({t}, default='none'))",
        "str(sorted({{y[:2] for y in {t}}}))", "str({{y: len(y) for y in {t} if y}})",
        "str(len(set({t}))) + str(dict(zip({t}, {t}[1:])))",
        'str([TABLE.get(y, "?") for y in {t}])', "str([[y] for y in {t}][:2])"),
        ('for y in {t}:\n    {s} += y[:3]\n    if y == "no":\n        break',
         'for y in {t}:\n    if y == "no" and len({t}) < 9:\n        {t}.append("k")\n'
         "{s} += str({t})",
         'for y in [*{t}]:\n    if y == "no":\n        {t}.remove(y)\n{s} += str({t})',
         "for i, y in enumerate({t}):\n    {s} += f'{{i}}{{y[:2]}}'",
         "for y, z in zip({t}, {t}[1:]):\n    {s} += str(y == z)",
         "while {t}:\n    {s} += {t}.pop()[:2]\n    if len({t}) > 9:\n        break",
         "for y in reversed({t}):\n    {s} += y[:2]",
         "for y, z in groupby({t}, len):\n    {s} += str(y) + '-'.join(z)[:5]",
         "for y, z in groupby(sorted({t}), key=lambda y: y[:1]):\n    z = list(z)\n"
         "    {s} += y + str(len(z)) + z[-1][:2]",
         "{n}_g = ({n}_y[:2] for {n}_y in {t} if {n}_y != 'no')\nfor {n}_z in {n}_g:\n"
         "    {s} += {n}_z",
         "{n}_g = (len({n}_y) for {n}_y in {t})\n{s} += str(sum({n}_g))",
         "k = len({t})", "words = [*{t}]", "w = {t}[-1] if {t} else w")),
    Carried("alias of a list", ("[]", '["a"]'), (
        "{n}_keep = {t}\n{t}.append({x})", "{t}.append({x})\n{n}_keep = {t}",
        "{n}_keep = [*{t}]\n{t}.append({x})", "{t} += [{x}]\n{n}_keep = {t}",
        'if {x} == "no":\n    {n}_keep = {t}\n{t}.append({x})',
        "{t}, {n}_keep = {n}_keep, {t}\n{t}.append({x})",
        "{n}_keep.append({x})\n{t} = {n}_keep",
        "{n}_keep.append({x})\nif {t} is not {n}_keep:\n    {t}.append(w)",
        "{t} = {t} + [{x}]\n{n}_keep.append('k')", "{n}_keep = {t}\n{t} += {x}.split(',')",
        "{n}_keep += {x}.split()", "{t} = {n}_keep\n{n}_keep *= 2\ndel {t}[5:]",
    ), ("str({t}) + str({n}_keep)", "str({t} is {n}_keep)", "str(len({n}_keep)) + str({t})")),
    Carried("alias of a constant", (
        "date(2026, 1, 30)", 'date.fromisoformat("2026-02-0" + str(len(w)))',
    ), (
        "{n}_keep = {t}\n{t} += timedelta(days=len({x}[:9]))", "{t} += timedelta(days=1)",
        "{t} -= timedelta(days=len({x}[:9]))\n{n}_keep = {t}",
        "if {x} == 'no':\n    {n}_keep = {t}\n{t} += timedelta(days=2)",
        "{t}, {n}_keep = {n}_keep or {t}, {t}\n{t} += timedelta(days=3)",
        "{n}_keep = later({t}, len({x}[:9]))", "words.append({t})\n{t} += timedelta(days=4)",
        "d['day'] = {t}\n{t} = {t} + timedelta(days=5)",
    ), ("str({t}) + str({n}_keep)", 'f"{{{t}:%d}}"', "str({t} == {n}_keep)", "str({t}.day)")),
    Carried("alias of a tuple", ("()", '("a",)', "(w, w)"), (
        "{n}_keep = {t}\n{t} += ({x}[:9],)", "{t} += ({x}[:3], w)", "{t} = {t}[-2:]",
        "{t} += ({x}[:9],)\n{n}_keep = {t}", "{t} *= 2\n{t} = {t}[:4]",
        "if {x} == 'no':\n    {n}_keep = {t}\n{t} += (w,)",
        "d['row'] = {t}\n{t} += ({x}[:2],)",
    ), ("str({t}) + str({n}_keep)", "str(len({t}))", '"/".join({t})', "str({t} == {n}_keep)")),
    Carried("list of dicts", ("[]",), (
        '{n}_d = {{"x": {x}}}\n{n}_d["n"] = len({t})\n{t}.append({n}_d)',
        '{n}_d = {{"x": {x}, "n": 0}}\n{t}.append({n}_d)\n{n}_d["n"] += 1',
        '{t}.append({{"x": {x}, "n": 1}})', '{t}.append({{"x": {x}, "n": 1}})\n{t}[-1]["n"] = 2',
        '{t}.append({{"x": {x}, "n": len({t})}})\n{n}_d = {t}[-1]',
    ), ("str({t})", 'str({t}[-1]["n"])', '{t}[0]["x"]', '"/".join([y["x"] for y in {t}])',
        'str(sum(y["n"] for y in {t}))'),
        ('for y in {t}:\n    {s} += y["x"][:3]', 'for y in {t}:\n    y["n"] = 5\n{s} += str({t})')),
    Carried("list of lists", ("[]", "[[]]", '[["a"], []]'), (
        "{t}.append([{x}])", "{t}.append([])", "if {t}:\n    {t}[-1].append({x})",
        "{n}_d = [{x}]\n{t}.append({n}_d)\n{n}_d.append(w)", "{t}.append([{x}, str(len({t}))])",
        "{t} = [[*y, {x}] for y in {t}][:3]",
    ), ("str({t})", "str(len({t}))", "str([len(y) for y in {t}])",
        "str([y for z in {t} for y in z])"),
        ("for y in {t}:\n    for z in y:\n        {s} += z[:2]",)),
    Carried("best or none", ("None",), (
        "if {t} is None or len({x}) > len({t}):\n    {t} = {x}", "if {t} is None:\n    {t} = {x}",
        'if {x} != "no":\n    {t} = {x}', "{t} = {t} or {x}",
    ), ("str({t})", '({t} or "none")', 'str({t} is None)')),
    Carried("number or none", ("None", "0"), (
        'if {x} == "yes":\n    {t} = len({x})', 'if {x} == "no":\n    {t} = None',
        "if {t} is not None:\n    {t} += 1", '{t} = None if {x} == "" else i',
        'if {t}:\n    {s} += str({t} % 3)\nelse:\n    {t} = 7',
        "{n}_d = {t}\nif {n}_d is not None and {n}_d > 2:\n    {t} = {n}_d // 2",
    ), ("str({t})", 'str({t} is None)', "str({t} == 1)", "str(-1 if {t} is None else {t} + 1)")),
    Carried("count by key", ("{{}}", '{{"yes": 0, "no": 0}}'), (
        '{n}_d = "yes" if {x} == "yes" else "no"\n{t}[{n}_d] = {t}.get({n}_d, 0) + 1',
        '{t}["last"] = {x}', '{t}["n"] = {t}.get("n", 0) + 1',
        'if {x} in {t}:\n    {t}["yes"] = 9', '{t}.setdefault("all", []).append({x})',
    ), ("str({t})", "str(len({t}))", 'str({t}.get("yes"))', 'str("no" in {t})',
        "str(sorted({t}))")),
    Carried("count by a helper", ("{{}}", '{{"yes": 0}}'), (
        "tally({t}, {x})", "tally({t}, {x}[:2], by=2)", "tally(key='n', counts={t})",
        "{n}_d = tally({t}, {x})\n{s} += str({n}_d)",
        "try:\n    tally({t}, {x}, int({x}))\nexcept ValueError:\n    tally({t}, 'bad')",
    ), ("str({t})", "str(len({t}))", "str(sorted({t}))", "str({t}.get('n'))",
        "str(max({t}.values(), default=0))")),
    Carried("counted by default", ("defaultdict(int)",), (
        "{t}[{x}[:2]] += 1", "{s} += str({t}[{x}])", "{t}['a'] += len({x})",
        "if {t}[{x}] > 1:\n    {s} += 'more'", "{s} += format({t}[{x}[:1]])",
    ), ("str(len({t}))", "str(dict({t}))", "str(sorted({t}))", "str({t}['a'])")),
    Carried("made by default", ("defaultdict(list)",), (
        "{t}[{x}[:2]].append({x})", "{t}['a'].append({x})", "{s} += str(len({t}[{x}]))",
        "if {x} in {t}:\n    {t}['in'].append(w)", "{t}['a'] += {x}.split()",
    ), ("str(len({t}))", "str(dict({t}))", "str(sorted({t}))", "str({t}.get('a'))")),
    Carried("store", ("Store([])", "Store([w])"), (
        "try:\n    {t}.append({x})\nexcept ValueError as error:\n    {s} += str(error)",
        "try:\n    {t}.add(w, {x}, 'z')\nexcept ValueError as error:\n    {s} += str(error.args)",
        "{t}.list().append({x})", "{s} += str({t}.count({x}))",
        "{n}_d = {t}.list()\n{n}_d += {x}.split(',')",
    ), ("str({t}.items)", "str({t}.n)", "str({t}.n) + '/'.join({t}.list())")),
    Carried("generator", ("each_of([w, 'no', 'a'])", "counting(w.split(','))"), (
        "{s} += next({t}, 'end')", "{t} = counting({x}.split(','))", "{t} = each_of([{x}, *{t}])",
        "for y in {t}:\n    {s} += y[:2]\n    if y != 'no':\n        break",
        "for i, y in enumerate({t}, 1):\n    {s} += f'{{i}}{{y[:2]}}'",
        "{n}_d = {t}\n{s} += next({n}_d, 'end')", "{t} = each_of([*{t}, {x}])",
        "{s} += next(counting({x}.split(',')), 'none')",
        "{n}_d = [*{t}, 'no']\n{t} = each_of({n}_d)",
    ), ("'/'.join({t})", "str(len([*{t}]))", "next({t}, 'end')"),
        ("for y in {t}:\n    {s} += y[:3]",)),
    Carried("look-up", ('""',), (
        '{t} += TABLE.get({x}, "?")', '{t} += str({x} in TABLE)', '{t} += str({x} in KNOWN)',
        "{t} += str(NUMBERS.get({x}, 0))", '{t} += str(MIXED.get({x}, 2.5))',
        "try:\n    {t} += TABLE[{x}]\nexcept KeyError as error:\n    {t} += str(error)",
        "{n}_d = {{{x}, w}} & KNOWN\n{t} += str(sorted({n}_d)) + str(len({n}_d))",
        "{t} += ROWS[len({x}) % 3]", "if {x} in TABLE:\n    {t} += TABLE[{x}]",
        'if {x} not in KNOWN:\n    {t} += "new"', "{t} += str({x}[:1] in ROWS)",
        "try:\n    {t} += ROWS[len({x})]\nexcept LookupError as error:\n    {t} += str(error)",
    ), ("{t}",)),
)  # fmt: skip
KINDS = tuple(each.kind for each in CARRIED)

HEADS = (
    "for i in range(3):", "for i in range(5):", "for i in range(8):", "for i in range(1, 8, 3):",
    "for i in range(4, 0, -1):", "for i in range(0):", "for _ in sgc.turns(4):",
    "for _ in range(n):", "for i in range(6, -1, n - 3 or 1):",
    'for _ in filter(len, w.split(",")):', 'for _ in map(str.upper, each_of(w.split(","))):',
    'for _ in ("a", "b", "c", "d", "e"):', "while (k := k + 1) % 6:", "for i in [1, 2, 3, 4]:",
    'for i in each_of(w.split(",")):', 'for i, _ in enumerate(counting([w, "no", "yes"])):',
)  # fmt: skip
INSIDE = ("{s} += str(i)", 'if {x} == "no":\n    continue', 'if {x} == "yes":\n    break',
          "pass", "pass", 'if i == 2:\n    {s} += "two"', "i = i * 2", "k = i")  # fmt: skip


@dataclass(frozen=True)
class Carrying:
    """A loop as lines. kinds: the kind and the last update of each carried value."""

    kinds: tuple[tuple[str, str], ...]
    before: list[str]
    head: str
    turn: list[str]
    inside: list[str]
    after: list[str]


def carrying(rng: random.Random, name: str, x: str, stream: str, is_called: bool) -> Carrying:
    before, turn, after, kinds = ["i = 0"], [], [], []
    qx = x.replace('"', "'")
    for number in range(rng.choice([1, 1, 2, 3])):
        each, own = rng.choice(CARRIED), f"{name}_{number}"
        make, place = rng.choice(PLACES)
        first = rng.choice(each.first).replace("{{", "{").replace("}}", "}")
        given = {"t": place.format(n=own), "n": own, "x": x, "s": stream, "q": qx}
        before.append(make.format(n=own, first="1" if is_called and first == "n" else first))
        if each.kind.startswith("alias of"):
            before.append(f"{own}_keep = " + ("[]" if each.kind == "alias of a list" else "None"))
        for update in rng.choices(each.updates, k=rng.choice([1, 1, 2, 3])):
            lines = update.format(**given).split("\n")
            turn += lines
            kinds.append((each.kind, lines[-1].strip()))
        if rng.random() < 0.3:
            turn.append(f"{stream} += " + rng.choice(each.shown).format(**given))
        if each.reads and rng.random() < 0.5:
            after += rng.choice(each.reads).format(**given).split("\n")
        after.append(f"{stream} += " + rng.choice(each.shown).format(**given))
    head = rng.choice(HEADS)
    if is_called and ("range(n)" in head or "n - 3" in head):
        head = "for i in range(7):"
    inside = rng.choice(INSIDE).format(s=stream, x=x).split("\n")
    return Carrying(tuple(kinds), before, head, turn, inside, after)
