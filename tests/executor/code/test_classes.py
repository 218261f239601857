"""Classes of a graph's code do what Python's do: the same text, run by both."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from executor.code.comparing import by_python, by_us, needed

MODULE = '''
import collections
import copy
import dataclasses
import functools
import json
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from enum import Enum, IntEnum, StrEnum, auto
from functools import total_ordering
from typing import ClassVar, NamedTuple
LIMIT = 3
NOTES = []

def scaled(x, by=LIMIT):
    return x * by

class Plain:
    """A class with nothing."""

class Box:
    size = 2
    made = []
    double: int = size * 2
    pairs = [(n, n) for n in range(2)]

    def __init__(self, *items, name="box"):
        self.items, self._name = list(items), name

    def __repr__(self):
        return f"<{self._name} {self.items!r}>"

    def __len__(self):
        return len(self.items)

    def __getitem__(self, at):
        return self.items[at]

    def __setitem__(self, at, value):
        self.items[at] = value

    def __delitem__(self, at):
        del self.items[at]

    def __contains__(self, item):
        return item in self.items

    def __iter__(self):
        for item in self.items:
            yield item

    def __eq__(self, other):
        if not isinstance(other, Box):
            return NotImplemented
        return self.items == other.items

    def __call__(self, x):
        return [x, *self.items]

    def __add__(self, other):
        return Box(*self.items, *other)

    def __radd__(self, other):
        return Box(other, *self.items)

    def __iadd__(self, other):
        self.items.append(other)
        return self

    def __neg__(self):
        return Box(*[-item for item in self.items])

    def __bool__(self):
        return self.size > 1

    def __format__(self, spec):
        return f"{spec}|{self._name}"

    @property
    def first(self):
        return self.items[0]

    @classmethod
    def of(cls, n):
        cls.made.append(n)
        return cls(*range(n))

    @staticmethod
    def count(items=()):
        return len(items)

    def note(self, x):
        NOTES.append(x)
        self.made.append(x)
        return NOTES, self.made, Box.made

class Small(Box):
    size = 1

    def __init__(self, item):
        super().__init__(item, name="small")
        self.extra = scaled(item)

    @property
    def first(self):
        return super().first + 1

    @classmethod
    def of(cls, n):
        return super().of(1)

@dataclass(order=True)
class Doc:
    title: str
    words: list = field(default_factory=list, compare=False)
    score: float = 0.5
    kinds: ClassVar[list] = ["a"]
    hidden: int = field(default=3, repr=False, compare=False)
    later: int = field(init=False)

    def __post_init__(self):
        self.later = len(self.title)

    def best(self):
        return max(self.words, key=len)

@dataclass
class Long(Doc):
    pages: int = 1

@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0

    def moved(self, by):
        return replace(self, x=self.x + by)

@dataclass(eq=False, repr=False)
class Bare:
    x: int

@dataclass(kw_only=True)
class Named:
    x: int
    y: tuple = (1, "a")

class Pair(NamedTuple):
    left: int
    right: str = "r"

    def swapped(self):
        return Pair(self.right, self.left)

    @property
    def both(self):
        return f"{self.left}{self.right}"

class Triple(Pair):
    def third(self):
        return self[0], self.count(1), self.index("r")

class Fault(Exception):
    pass

class Coded(Fault):
    def __init__(self, code, *more):
        super().__init__(f"code {code}", *more)
        self.code = code

class Missing(KeyError):
    def __str__(self):
        return "missing " + super().__str__()

@dataclass
class Kept(ValueError):
    why: str

class Color(Enum):
    RED = 1
    GREEN = "g"
    CRIMSON = 1
    BOTH = (1, "x")

    @property
    def low(self):
        return self.name.lower()

    def mixed(self, other):
        return Color.RED if self is other else other

    @classmethod
    def first(cls):
        return list(cls)[0]

class Level(IntEnum):
    LOW = 1
    HIGH = auto()

class Word(StrEnum):
    YES = "yes"
    NO = auto()

class Team(str, Enum):
    CORE = "core"
    WEB = "web"

class Size(int, Enum):
    S = 1
    L = 3

@total_ordering
class Rank:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, Rank) and self.n == other.n

    def __gt__(self, other):
        if not isinstance(other, Rank):
            return NotImplemented
        return self.n > other.n

    def __hash__(self):
        return hash(self.n)

    def __repr__(self):
        return f"R{self.n}"

@functools.total_ordering
@dataclass
class Ranked(Doc):
    rank: int = 1

    def __le__(self, other):
        return self.rank and self.rank <= other.rank

class Best(Rank):
    def __ge__(self, other):
        return super().__ge__(other) or "best"

class Turns:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n

class Key:
    def __init__(self, n):
        self.n = n
    def __eq__(self, other):
        return self.n == other.n
    def __hash__(self):
        return hash(self.n)
    def __lt__(self, other):
        return self.n < other.n
    def __repr__(self):
        return f"Key({self.n})"
'''

CASES = Path(__file__).with_name("class_cases.txt").read_text("utf-8").splitlines()


def source(body: str) -> str:
    """A function with this body, after what it needs of the module."""
    body = body.replace("\\n", "\n")
    return f"{needed(MODULE, body)}\ndef f():\n{indent(body, '    ')}\n"


@pytest.mark.sweep
@pytest.mark.parametrize("body", CASES)
def test_classes_do_what_pythons_do(body: str) -> None:
    assert by_us(source(body), []) == by_python(source(body), [])
