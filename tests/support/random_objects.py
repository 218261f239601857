"""Random programs whose objects are known only at run time, as Python source, from a seed.

They put objects of two classes into lists, attributes and variables, several into each, choose some
by what a model says, and change them. What a program shows at its end tells every attribute.
"""

from __future__ import annotations

import random
import textwrap

from random_blocks import ASK, REPLIES, block_of

__all__ = ["REPLIES", "source_of"]

HEAD = """
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import ClassVar

import sgc


class State(Enum):
    NEW = "new"
    OLD = "old"


class Thing:
    def __init__(self, name, n=0):
        self.name = name
        self.n = n
        self.note = None
        self.extra = None
        self.up = None
        self.kids = []
        self.words = []
        self.marks = {}
        self.seen = set()
        self.state = State.NEW
        self.any = 0

    def mark(self, key, by=1):
        self.marks[key] = self.marks.get(key, 0) + by
        return self

    def bump(self, by=1):
        self.n += by
        return self.n

    def add(self, other):
        self.kids.append(other)
        other.up = self
        return other

    def total(self):
        return sum(kid.n for kid in self.kids) + self.n

    def say(self, s):
        s += f"say {self.name}" + sgc.gen("g", stop="\\n")
        self.n += 1
        return s["g"]

    @property
    def label(self):
        return f"{self.name}:{self.n}"

    def __str__(self):
        return "<" + self.label + ">"


class Wordy(Thing):
    def __init__(self, text, kid=None):
        super().__init__(text)
        if "a" in text:
            self.n += 2
        for word in text.split(","):
            self.words.append(word)
        if kid is not None:
            self.kids.append(kid)

    def bump(self, by=1):
        return super().bump(by * 2)

    def say(self, s):
        s += f"WORDY {self.label}" + sgc.gen("g", stop="\\n")
        return s["g"].upper()


class Unknown(Exception):
    def __init__(self, name):
        super().__init__(f"{name} is unknown")
        self.name = name


@sgc.function
def ask(s, q: str):
    s += q + sgc.gen("a", stop="\\n")
    return s["a"].upper()


@sgc.function
def rate(s, q: str):
    s += q + sgc.gen("m", stop="\\n")
    return {"m": len(s["m"]), "of": [s["m"]]}


@dataclass
class Box:
    LIMIT: ClassVar[int] = 2

    things: list = field(default_factory=list)
    n_put: int = 0
    best: "Thing | None" = None
    by: "dict[str, Thing]" = field(default_factory=dict)
    groups: dict = field(default_factory=lambda: defaultdict(list))
    counts: Counter = field(default_factory=Counter)
    rows: list = field(default_factory=list)
    marks: dict = field(default_factory=dict)
    states: Counter = field(default_factory=Counter)
    mixed: list = field(default_factory=list)
    keyed: dict = field(default_factory=dict)

    @contextmanager
    def counted(self):
        self.n_put += 1
        try:
            yield
        except KeyError:
            self.n_put -= 3

    def named(self, name):
        if name not in self.by:
            self.by[name] = Thing(name)
        return self.by[name]

    def __contains__(self, name):
        return any(each.name == name for each in self.things)

    def __getitem__(self, name):
        for each in self.things:
            if each.name == name:
                return each
        raise KeyError(name)

    def must(self, name):
        if not name:
            raise ValueError("no name")
        if name not in self.by:
            raise Unknown(name)
        return self.by[name]

    def put(self, thing):
        self.things.append(thing)
        self.n_put += 1
        if self.best is None or thing.n > self.best.n:
            self.best = thing

    def find(self, name):
        return next((each for each in self.things if each.name == name), None)

    def busy(self):
        return [each for each in self.things if each.n > 0]

    def __iter__(self):
        return iter(self.things)

    def __len__(self):
        return len(self.things)


def tally(text):
    found = {}
    for word in text.split(","):
        found[word] = found.get(word, 0) + 1
    return found


def change(thing, by):
    thing.n += by
    if by > 1:
        thing.words.append(str(by))
    return thing


@sgc.function
def program(s):
    box, xs, calls = Box(), [], []
    a, b = Thing("a"), Thing("b", 1)
    by, kept = {}, []
"""

TAIL = """
for each in (a, b):
    names = [kid.name for kid in each.kids]
    s += each.label + "/" + ",".join(each.words) + "/" + ",".join(names)
    marks = [f"{key}={n}" for key, n in each.marks.items()]
    s += ";".join(marks) + "/" + ",".join(sorted(each.seen))
    s += f"{each.state.value}"
    s += f"{each.any}"
for each in box:
    s += f"{each.name} {each.n} {each.note} {each.up is None}"
for each in xs:
    s += str(each)
for name, each in by.items():
    s += f"{name}={each}"
for each in kept:
    s += "".join(each)
for of, call in calls:
    s += f"{of}{call['a']}{call.ret_value}"
if a.extra:
    s += "".join(a.extra)
if box.best is not None:
    s += "best " + box.best.name
for name, each in box.by.items():
    s += f"{name}:{each.label}"
for name, group in box.groups.items():
    s += f"{name}:{len(group)}"
for row in box.rows:
    s += row["k"] + row.get("v", "-")
for each in box.mixed:
    s += f"{each}"
for key, state in box.keyed.items():
    s += f"{key}"
    s += state.name
states = [f"{key.name}{n}" for key, n in box.states.items()]
s += ",".join(states)
counts = [f"{key}{n}" for key, n in box.counts.items()]
s += ",".join(counts)
return f"{len(box)} {len(xs)} {box.n_put} {a is b}"
"""

SIMPLE = (
    "calls.append((a.n, ask(s['g'])))",
    "calls += [(each.n, ask(each.name)) for each in xs[:2]]",
    "for of, call in calls[-2:]:\n    b.words.append(call.ret_value)",
    "rated = {each.name: rate(each.name) for each in xs[:2]}\n"
    "for name, call in rated.items():\n    call.ret_value['of'].append(name)\n"
    "    s += ','.join(call.ret_value['of']) + call['m']",
    "try:\n    box.must(s['g']).n += 1\n    box.must(s['g'][:1]).bump()\n"
    "except (Unknown, ValueError) as error:\n    s += str(error)",
    "try:\n    s += box.must(s['g']).label\nexcept Unknown as error:\n    s += error.name\n"
    "except ValueError:\n    s += '?'",
    "s += ','.join(type(each).__name__ for each in xs) + str(type(a) is type(b))",
    "xs = sorted(xs, key=attrgetter('n'), reverse=True)[:Box.LIMIT + box.LIMIT]",
    ASK,
    ASK,
    'a = Thing(s["g"])',
    'b = Thing(s["g"], len(s["g"]))',
    "a.n += 1",
    "b.bump(2)",
    "b = a",
    "a, b = b, a",
    "box.put(a)",
    "box.put(b)",
    "xs.append(b)",
    "xs.append(Thing('x', a.n))",
    "change(a, 2).n += 1",
    "a.add(b)",
    "a.words.append(s['g'])",
    "a.words = a.words[-2:]",
    "w = a.words\nw.append('w')\ns += '|'.join(b.words)",
    "a.note = s['g']",
    "s += a.say(s)",
    "for each in xs[:2]:\n    s += each.say(s)",
    "xs.append(Wordy(s['g']))",
    "b = Wordy(s['g'], a)",
    "with box.counted():\n    a.n += 1\n    s += str(a.marks[s['g']])",
    "a.note = None",
    "a = max(xs, key=lambda each: each.n, default=a)",
    "b = min(box.busy(), key=lambda each: each.n, default=b)",
    "xs.sort(key=lambda each: each.n)",
    "xs = sorted(box.things, key=lambda each: each.name, reverse=True)",
    "xs = [each for each in xs if each.n != 1]",
    "xs = box.things",
    "xs = list(box.things)",
    "xs = xs[1:]",
    "box.things = box.busy()",
    "s += f'{a.label} {a.total()} {len(box)} {len(xs)}'",
    "s += a.name + ' ' + str(b)",
    "a.n = sum(each.n for each in box.things)",
    "for word in s['g'].split(','):\n    xs.append(Thing(word, len(word)))",
    "for word in s['g'].split(','):\n    box.put(Thing(word))",
    "if xs:\n    b = xs.pop()",
    "if xs:\n    b = xs[0]",
    "if a.kids:\n    b = a.kids[-1]",
    "node, k = a, 0\nwhile node and k < 3:\n    node.n += 1\n    k += 1\n    node = node.up",
    "found = box.find(s['g'])\nif found is not None:\n    found.bump(3)",
    "if box.best is not None:\n    box.best.n -= 1",
    "if a.note:\n    s += a.note",
    "xs += [a, b]",
    "a = max(xs, key=Thing.total, default=a)",
    "a.kids = b.kids",
    "a.words = b.words",
    "c = Wordy(s['g'], a)\ns += f'{c} {c.bump()} {c.total()} {c.words[0]}'",
    "if xs:\n    xs[0], xs[-1] = xs[-1], xs[0]",
    "roles = {'a': a, 'b': b}\nif s['g'] in roles:\n    roles[s['g']].n += 5",
    "s += str(getattr(a, 'n', 0)) + str(hasattr(b, 'missing'))",
    "del a.kids[1:]",
    "grow = lambda thing: change(thing, 1)\ngrow(a)",
    "s += '+'.join(map(str, xs))",
    "s += str(any(each is a for each in xs))",
    "pair = (a, len(xs))\npair[0].n += pair[1]",
    "pairs = [(each, each.n) for each in xs]\nfor one, n in pairs:\n    one.n += n",
    "try:\n    b = xs[2]\nexcept IndexError:\n    s += 'none'",
    "a.marks[s['g']] = 1",
    "a.mark(s['g'])",
    "b.mark('a', 2).mark(s['g'])",
    "m = a.marks\nm['m'] = len(m)",
    "a.marks = b.marks",
    "b.marks = {}",
    "a.marks.pop(s['g'], 0)",
    "if s['g'] in a.marks:\n    del a.marks[s['g']]",
    "try:\n    s += str(a.marks[s['g']])\nexcept KeyError:\n    s += 'no mark'",
    "for key in sorted(a.marks):\n    s += key",
    "for key, n in a.marks.items():\n    a.marks[key] = n + 1",
    "s += str(sum(b.marks.values())) + str(len(b.marks)) + str(bool(a.marks))",
    "a.marks.update(b.marks)",
    "best = max(a.marks, key=a.marks.get, default='')\ns += best",
    "a.seen.add(s['g'])",
    "b.seen.add('b')",
    "b.seen.discard(s['g'])",
    "if s['g'] in b.seen:\n    a.seen.update(['x', s['g']])",
    "b.seen = a.seen",
    "a.seen = set()",
    "for word in s['g'].split(','):\n    if word not in a.seen:\n        a.seen.add(word)",
    "box.by[s['g']] = a",
    "box.by[b.name] = b",
    "b = box.named(s['g'])",
    "box.named('a').bump()",
    "b = box.by.get(s['g'], b)",
    "found = box.by.get(s['g'])\nif found is not None:\n    found.n += 7",
    "a = box.by.setdefault('s', a)",
    "for each in box.by.values():\n    each.n += 1",
    "xs = list(box.by.values())",
    "a = max(box.by.values(), key=lambda each: each.n, default=a)",
    "box.by.pop(s['g'], None)",
    "s += str(len(box.by)) + ','.join(box.by)",
    "xs = [each for each in box.by.values() if each.n]",
    "box.groups[s['g']].append(a)",
    "for each in xs:\n    box.groups[each.name].append(each)",
    "for each in box.groups[s['g']]:\n    each.n += 3",
    "box.groups['z'] = list(xs)",
    "box.counts[s['g']] += 1",
    "for word in s['g'].split(','):\n    box.counts[word] += 1",
    "top = box.counts.most_common(1)\nif top:\n    s += top[0][0]",
    "box.rows.append({'k': s['g'], 'v': a.name})",
    "row = {'k': 'r'}\nbox.rows.append(row)",
    "for row in box.rows:\n    row['v'] = s['g']",
    "if box.rows:\n    box.rows[-1]['k'] += '!'",
    "if s['g'] in box:\n    a = box[s['g']]",
    "try:\n    b = box[s['g']]\nexcept KeyError:\n    s += 'none'",
    "by[s['g']] = a",
    "by[b.name] = Thing(s['g'])",
    "b = by.get(s['g'], b)",
    "for each in by.values():\n    each.n += 2",
    "a = by.pop(a.name, a)",
    "kept.append(a.words)",
    "for each in kept[:3]:\n    each.append('k')",
    "if kept:\n    kept[-1].append(s['g'])",
    "a.extra = [s['g'], 'e']",
    "if b.extra is None:\n    b.extra = []\nb.extra.append('x')",
    "a.extra = b.extra",
    "b.extra = None",
    "if a.extra:\n    a.extra[0] += '?'",
    "box.marks['pair'] = (a, len(xs))\nbox.marks['pair'][0].n += 1",
    "xs.extend(a.kids)",
    "if kept:\n    a.words = kept[-1]",
    "own = {}\nfor word in s['g'].split(','):\n    own[word] = len(word)\na.marks = own",
    "own = {}\nb.marks = own\nown[s['g']] = 5\ns += str(len(b.marks))",
    "a.extra = b.words",
    "b.words = a.extra or []",
    "a.marks = tally(s['g'])\na.marks['t'] = 2",
    "lowest = min(('a', 'b', 'x'), key=lambda key: a.marks.get(key, 0))\ns += lowest",
    "s += str({'n': [each.n for each in xs], 'of': [each.label for each in box]})",
    "named = {each.name: each for each in xs}\nif s['g'] in named:\n    named[s['g']].n += 4",
    "sizes = {}\nfor word in s['g'].split(','):\n    sizes[word] = len(word)\ns += str(sizes)",
    "if a in xs:\n    s += str(xs.index(a))",
    "if b in box.things:\n    box.things.remove(b)",
    "a.state = State.OLD",
    "b.state = a.state",
    "if a.state is State.OLD:\n    a.n += 1",
    "box.states[a.state] += 1",
    "for each in xs:\n    box.states[each.state] += 1",
    "xs = [each for each in xs if each.state is State.NEW]",
    "a.any = s['g']",
    "b.any = len(s['g'])",
    "a.any = (s['g'], a.n)",
    "a.any = b.any",
    "if isinstance(a.any, int):\n    a.n += a.any",
    "if isinstance(b.any, tuple):\n    s += b.any[0]",
    "box.mixed.append(s['g'])",
    "box.mixed.append(a.any)",
    "box.mixed.append((a.n, s['g']))",
    "for each in box.mixed:\n    if isinstance(each, str):\n        s += each",
    "box.keyed[s['g'] or (a.n, 'k')] = a.state",
    "box.keyed[a.n] = State.OLD",
    "if s['g'] in box.keyed:\n    a.state = box.keyed[s['g']]",
)
BLOCKS = (
    "if a is b:",
    "if a is not b and b.n > a.n:",
    "if 'a' in s['g']:",
    "if box.best is a:",
    "for a in xs:",
    "for each in box:",
    "for each in list(xs):",
    "for n, a in enumerate(xs):",
    "for _ in range(2):",
    "for _ in sgc.turns(3):",
)


LIVE = ("in xs:", "in box:", "(xs):")  # loops that would never end if their lists grew
GROWS = ("put", "xs.append", "xs +=")


def source_of(seed: int) -> str:
    """The text of one program."""
    rng = random.Random(f"objects {seed}")
    lines = [ASK, *block_of(rng, rng.randrange(4, 12), 2, SIMPLE, BLOCKS, LIVE, GROWS)]
    return HEAD + textwrap.indent("\n".join(lines) + TAIL, "    ")
