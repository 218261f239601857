"""Classes of hostile code reach nothing of Python's, and end soon."""

from __future__ import annotations

import pytest
from executor.code.hostile import check_it_is_ended

from sgc.ir.code import CodeError
from sgc.runtime.executor.code.run import run_code

# Bodies of the class A, and what the entry does; refused when it is read.
REFUSED = r"""
class A(int): pass
class A(dict): pass
class A(object): pass
class A(B): pass
class A(A): pass
class A(list[int]): pass
class A(metaclass=type): pass
class A(*[]): pass
class A(**{}): pass
class A(BaseException): pass
class A(NamedTuple, ValueError): x: int
class A(type(1)): pass
@dataclass(weakref_slot=True)\nclass A: x: int
@dataclass(frozen=1)\nclass A: x: int
@dataclass(**{})\nclass A: x: int
@dataclass(frozen=x)\nclass A: x: int
@dataclass\n@dataclass\nclass A: x: int
@str\nclass A: x: int
@total_ordering\nclass A: x: int
@total_ordering\nclass A:\n __lt__ = 1
@total_ordering()\nclass A:\n def __lt__(self, x): return 1
@dataclass\n@total_ordering\nclass A:\n def __lt__(self, x): return 1
@total_ordering\n@total_ordering\nclass A:\n def __lt__(self, x): return 1
@total_ordering\nclass A(Enum):\n x = 1\n def __lt__(self, x): return 1
@total_ordering\nclass A(NamedTuple):\n x: int\n def __lt__(self, x): return 1
@dataclass\nclass A(NamedTuple): x: int
@dataclass\nclass A: x: InitVar[int]
@dataclass\nclass A:\n x: int\n _: KW_ONLY
@dataclass\nclass A: x: "InitVar[int]"
class A: __slots__ = ("x",)
class A: __match_args__ = ("x",)
class A: __dict__ = {}
class A: __x = 1
class A: __hash__ = None
class A: x: int; x.y = 3
class A: x, y = 1, 2
class A: x = y = 1; x = 2
class A: x = (y := 1)
class A: x = yield_ = [(z := 1) for q in [1]]
class A: del x
class A: print(1)
class A: import os
class A: for_ = [open]
class A:\n if 1: x = 1
class A:\n for i in []: pass
class A:\n class B: pass
class A:\n def __new__(cls): pass
class A:\n def __init_subclass__(cls): pass
class A:\n def __getattr__(self, name): pass
class A:\n def __getattribute__(self, name): pass
class A:\n def __setattr__(self, name, value): pass
class A:\n def __delattr__(self, name): pass
class A:\n def __del__(self): pass
class A:\n def __get__(self, a, b): pass
class A:\n def __set__(self, a, b): pass
class A:\n def __set_name__(self, a, b): pass
class A:\n def __class_getitem__(cls, x): pass
class A:\n def __instancecheck__(cls, x): pass
class A:\n def __index__(self): return 10 ** 9
class A:\n def __length_hint__(self): return 10 ** 9
class A:\n def __reduce__(self): return open, ("x",)
class A:\n def __enter__(self): pass
class A:\n def __class__(self): pass
class A:\n def __bytes__(self): return b""
class A:\n def __mine(self): pass
class A:\n @staticmethod\n @classmethod\n def f(x): pass
class A:\n @property\n def x(self): return 1\n @x.setter\n def x(self, v): pass
class A:\n @str\n def x(self): return 1
class A:\n @property\n def __len__(self): return 1
class A:\n async def f(self): pass
class A:\n def f(self): return self.__dict__
class A:\n def f(self): return self.__class__
class A:\n def f(self): self.__class__ = 1
class A:\n def f(self): del self.__dict__
class A:\n def f(self): return __class__
class A:\n def f(self): return super
class A:\n def f(self): return super()
class A:\n def f(self): return super(A, self).f()
class A:\n def f(self): return super().__class__
class A:\n def f(self): return super().__getattribute__("x")
class A:\n def f(self): super().x = 1
class A:\n def f(self): return [super().f() for x in [1]]
class A:\n def f(self): return lambda: super().f()
class A:\n def f(): return super().f()
class A: x = super().f()
class A(NamedTuple):\n x: int\n def f(self): return super().count(1)
class A(Enum): pass
class A(Enum, ValueError): x = 1
class A(str, Enum): pass
class A(str, int, Enum): x = 1
class A(float, Enum): x = 1.5
class A(Enum, str): x = "a"
class A: pass\nclass A: pass
class A: pass\ndef A(): pass
def g():\n class A: pass
def g(): return super().x
""".strip().splitlines()


@pytest.mark.parametrize("text", REFUSED)
def test_classes_beyond_the_subset_are_refused(text: str) -> None:
    imports = "from dataclasses import dataclass, field\nfrom enum import Enum\n"
    imports += "from typing import NamedTuple, ClassVar\nfrom functools import total_ordering\n"
    text = text.replace("\\n", "\n")
    with pytest.raises(CodeError, match=r"expected (?s:.*), found"):
        run_code(f"{imports}{text}\ndef f(x):\n    return 1\n", [1])


HEAD = """
import copy, collections, functools, itertools, json, heapq, bisect, operator
import dataclasses
from dataclasses import dataclass, field, asdict, astuple, fields, replace
from typing import NamedTuple
def plus(a, b): return a + b
@dataclass(order=True)
class Node:
    value: object = None
    next: object = None
@dataclass(frozen=True)
class Cold:
    value: object = None
class Pair(NamedTuple):
    left: object
    right: object = None
class Plain:
    def __init__(self, x=None):
        self.x = x
    def go(self, n):
        return self.go(n + 1)
    def other(self):
        return [self.other() for _ in [1]]
class Fault(Exception): pass
class Evil:
    def __init__(self, n=0): self.n = n
    def __eq__(self, other):
        while True: pass
    def __lt__(self, other):
        while True: pass
    def __hash__(self):
        while True: pass
    def __repr__(self):
        while True: pass
    def __len__(self):
        while True: pass
    def __bool__(self):
        while True: pass
    def __iter__(self):
        while True: yield 1
    def __contains__(self, x):
        while True: pass
    def __call__(self, *a):
        while True: pass
    def __add__(self, other):
        return self + other
    def __getitem__(self, at):
        while True: pass
    @property
    def value(self):
        while True: pass
class Big:
    text = "a" * 10 ** 6
    def __repr__(self): return self.text
    def __len__(self): return 10 ** 18
    def __getitem__(self, at): return self.text
    def __hash__(self): return 1
    def __eq__(self, other): return False
    def __mul__(self, n): return [0] * n
@functools.total_ordering
class Ranked:
    def __init__(self, n=0): self.n = n
    def __lt__(self, other):
        while True: pass
@functools.total_ordering
class Round:
    def __lt__(self, other): return self >= other
class Ever:
    def __iter__(self): return self
    def __next__(self): return self
class Deep:
    def __init__(self, inner): self.inner = inner
    def __eq__(self, other): return self.inner == other.inner
    def __lt__(self, other): return self.inner < other.inner
    def __hash__(self): return hash((self.inner, 1))
    def __repr__(self): return f"Deep({self.inner!r})"
    def __iter__(self): return iter(self.inner)
    def __len__(self): return len(self.inner)
    def __call__(self): return self.inner()
    def __bool__(self): return bool(self.inner)
    def __add__(self, other): return self.inner + other
    def __contains__(self, x): return x in self.inner
    def __getitem__(self, at): return self.inner[at]
    def __next__(self): return next(self.inner)
    @property
    def deep(self): return self.inner.deep
def linked(kind, n):
    x = None
    for i in range(n): x = kind(x)
    return x
class Loop:
    def __repr__(self): return repr(self)
    def __str__(self): return str(self)
    def __eq__(self, other): return self == other
    def __hash__(self): return hash(self)
    def __len__(self): return len(self)
    def __bool__(self): return bool(self)
    def __iter__(self): return iter(self)
    def __call__(self): return self()
    def __format__(self, spec): return f"{self}"
    @property
    def x(self): return self.x
"""

# Each ends in a limit.
HOSTILE = """
return Ranked() >= Ranked(1)
return max([Ranked(), Ranked(1)])
return Round() > Round()
return functools.total_ordering(Plain)
return Plain().go(0)
return Plain().other()
return Evil() == 1
return Evil() in [Evil(1)]
return [Evil()] == [Evil(1)]
return sorted([Evil(), Evil()])
return max(Evil(), Evil())
return {Evil(): 1}
return {1} == {Evil()}
return hash(Evil())
return str(Evil())
return f"{[Evil()]}"
return len(Evil())
return bool(Evil())
return 1 if Evil() else 2
return list(Evil())
return [*Evil()]
return sum(Evil())
return max(Evil(1), key=Evil())
return list(map(Evil(), [1]))
return "".join(str(x) for x in Evil())
return 2 in Evil()
return Evil() + 1
return Evil()[0]
return Evil().value
return getattr(Evil(), "value")
return hasattr(Evil(), "value")
match Evil():\\n     case Evil(value=1): return 1
return "{0.value}".format(Evil())
return "{0[a]}".format(Evil())
a, *b = Evil()
return set(Evil())
return any(x == 2 for x in Evil())
return all(Evil())
return collections.Counter(Evil())
return collections.deque(Evil())
return heapq.heapify([Evil(), Evil()])
return bisect.bisect([Evil()], Evil())
return itertools.groupby([Evil(), Evil()]) and [k for k, g in itertools.groupby([Evil(), Evil()])]
return functools.reduce(Evil(), [1, 2])
return min([Evil(), Evil()], default=1)
return [Evil()].index(2)
return [Evil()].count(2)
return [Evil()].remove(2)
return Node(Evil()) == Node(Evil())
return Node(Evil()) < Node(Evil())
return hash(Cold(Evil()))
return {Cold(Evil())}
return repr(Node(Evil()))
return Pair(Evil()) == Pair(Evil())
return repr(Pair(Evil()))
return json.dumps({"a": Pair(1)}, default=Evil()) and json.dumps(Evil(), default=Evil())
return list(Ever())
return sum(1 for _ in Ever())
return 1 in Ever()
return Pair._make(Ever())
return Pair._make(Evil())
return repr([Big()] * 10 ** 5)
return str({i: Big() for i in range(10 ** 5)})
return f"{[Big()] * 10 ** 6}"
return "%s" % ([Big()] * 10 ** 6,)
return [Big() for i in range(10 ** 6)].index(Big())
return {Big() for i in range(10 ** 6)}
return [x for x in Big()]
return list(Big())
return 1 in Big()
return Big() * 10 ** 9
return Pair(1) * 10 ** 9
return 10 ** 9 * Pair(1)
x = Pair(1)\\n    while True: x = x + x
return [Node() for i in range(10 ** 7)]
return [Pair(1) for i in range(10 ** 7)]
return [Plain() for i in range(10 ** 7)]
return [Fault() for i in range(10 ** 7)]
return [Plain() for i in range(10 ** 7)]
return [restored(Node, {}) for i in range(10 ** 7)]
return [copy.copy(Plain()) for i in range(10 ** 7)]
x = [Node() for i in range(100)]\\n    while True: x = copy.deepcopy(x)
x = [Node() for i in range(1000)]\\n    while True: x == x[:]
x = [Node(i) for i in range(1000)]\\n    while True: sorted(x)
x = [Node(i) for i in range(1000)]\\n    while True: [asdict(each) for each in x]
return linked(Node, 10 ** 4) == linked(Node, 10 ** 4)
return linked(Node, 10 ** 4) < linked(Node, 10 ** 4)
return repr(linked(Node, 10 ** 4))
return hash(linked(Cold, 10 ** 4))
return {linked(Cold, 10 ** 4)}
return repr(linked(Pair, 10 ** 4))
return linked(Pair, 10 ** 4) == linked(Pair, 10 ** 4)
return asdict(linked(Node, 10 ** 4))
return astuple(linked(Node, 10 ** 4))
return copy.deepcopy(linked(Plain, 10 ** 4))
return linked(Plain, 10 ** 4)
return linked(Node, 10 ** 6)
return linked(Plain, 10 ** 6)
return linked(Pair, 10 ** 6)
return linked(Fault, 10 ** 6)
return json.dumps(linked(Pair, 10 ** 4))
return linked(Deep, 10 ** 4) == linked(Deep, 10 ** 4)
return linked(Deep, 10 ** 4) < linked(Deep, 10 ** 4)
return hash(linked(Deep, 10 ** 4))
return repr(linked(Deep, 10 ** 4))
return list(linked(Deep, 10 ** 4))
return len(linked(Deep, 10 ** 4))
return linked(Deep, 10 ** 4)()
return bool(linked(Deep, 10 ** 4))
return linked(Deep, 10 ** 4) + 1
return 1 in linked(Deep, 10 ** 4)
return linked(Deep, 10 ** 4)[0]
return next(linked(Deep, 10 ** 4))
return linked(Deep, 10 ** 4).deep
raise linked(Fault, 10 ** 6)
return str(linked(Fault, 10 ** 4))
x = Node()\\n    x.next = x\\n    return repr(x)
x = Node()\\n    x.next = x\\n    return asdict(x)
x, y = Node(), Node()\\n    x.next, y.next = y, x\\n    return x == y
x = Node()\\n    x.value = [x, x]\\n    return repr(x)
return repr(Loop())
return str(Loop())
return f"{Loop()}"
return Loop() == 1
return hash(Loop())
return len(Loop())
return bool(Loop())
return list(Loop())
return Loop()()
return Loop().x
return "{0}".format(Loop())
x = None\\n    for i in range(10 ** 6): x = Plain(iter([x]))
x = Plain(map(str, []))\\n    for i in range(10 ** 6): x.x = map(str, x.x)
x = Plain()\\n    for i in range(10 ** 6): x = Plain(x.go)
x = Plain()\\n    for i in range(10 ** 6): setattr(x, str(i) * 10, i)
x = Plain()\\n    for i in itertools.count(): x.x = [x.x, x.x]
while True: hasattr(Plain(), "x")
while True: fields(Node)
while True: replace(Node())
while True: Node() == Node()
while True: repr(Node())
while True: isinstance(Plain(), Plain)
while True: Plain.go
""".strip().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", [50_000, pytest.param(5_000_000, marks=pytest.mark.slow)])
def test_hostile_classes_end_soon_and_take_little_memory(n_steps: int) -> None:
    check_it_is_ended(HOSTILE, HEAD, n_steps)
