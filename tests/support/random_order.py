"""Random functions whose statements read, call, change and branch in one expression, and say in
which order they do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

HEAD = '''
TOTAL = 0

class Box:
    def __init__(self, log):
        self.n, self.items, self.by, self.log = 1, [1, 2], {0: 5, 1: 6}, log

    def up(self, k, by=1, *more, key=0):
        """A method that changes its object."""
        self.log.append(("up", k, by, more, key, self.n))
        self.n += by
        if len(self.items) < 20:  # a loop may go over them
            self.items.append(self.n % 7)
        return self.n

    def __bool__(self):
        self.log.append("bool")
        return self.n % 2 == 0

def program(log):
    def f(k, value=3, *more, key=0):
        log.append((k, value, more, key))
        box.n += 1
        return value

    def g(k, value):
        global TOTAL
        nonlocal c
        TOTAL += 1
        c += value
        log.append((k, TOTAL, c))
        return value

    def each(k, n):
        for i in range(n % 3):
            log.append(("each", k, i))
            yield i

    global TOTAL
    TOTAL = 0
    box, a, b, c, w, xs = Box(log), 1, 2, 3, 4, [1, 2, 3]
'''


LEAF = 0.3  # how often a part is only read, beside others that call


class _Maker:
    def __init__(self, seed: int) -> None:
        self._random, self._n, self.may_bind = Random(seed), 0, True

    def _k(self) -> int:
        self._n += 1
        return self._n

    def number(self, depth: int) -> str:
        """An expression with a number for its value."""
        leaves = ["1", "2", "a", "b", "c", "w", "TOTAL", "box.n", "box.items[0]", "len(box.items)"]
        if depth <= 0 or self._random.random() < LEAF:
            return self._random.choice(leaves)
        return self._random.choice(_NUMBERS)(self, depth - 1)

    def call(self) -> str:
        return f"{self._random.choice('fg')}({self._k()}, {self.number(0)})"

    def inner(self, depth: int) -> str:
        """Such an expression in a comprehension, which may set no variable."""
        before, self.may_bind = self.may_bind, False
        found = self.items(depth)
        self.may_bind = before
        return found

    def items(self, depth: int) -> str:
        """An expression with a list for its value."""
        if depth <= 0:
            return self._random.choice(["xs", "box.items", "[c, TOTAL]", "[]"])
        return self._random.choice(_LISTS)(self, depth - 1)

    def statement(self) -> str:
        return self._random.choice(_STATEMENTS)(self)


_Form = Callable[[_Maker, int], str]
_NUMBERS: list[_Form] = [
    lambda m, d: f"({m.number(d)} + {m.number(d)})",
    lambda m, d: f"({m.number(d)} - {m.number(d)} * {m.number(d)})",
    lambda m, d: f"f({m._k()}, {m.number(d)})",
    lambda m, d: f"g({m._k()}, {m.number(d)})",
    lambda m, d: f"f({m._k()}, {m.number(d)}, *{m.items(d)}, key={m.number(d)})",
    lambda m, d: f"box.up({m._k()}, {m.number(d)}, {m.number(d)}, key={m.number(d)})",
    lambda m, d: f"({m.number(d)} if {m.number(d)} > {m.number(d)} else {m.number(d)})",
    lambda m, d: f"({m.number(d)} and {m.number(d)})",
    lambda m, d: f"({m.number(d)} or {m.number(d)} or {m.number(d)})",
    lambda m, d: f"(box and {m.number(d)} or {m.number(d)})" if d else "a",
    lambda m, d: f"int({m.number(d)} < {m.number(d)} < {m.number(d)})",
    lambda m, d: f"int({m.number(d)} in {m.items(d)})",
    lambda m, d: f"sum(x + {m.number(0)} for x in {m.inner(d)})",
    lambda m, d: f"max({m.items(d)}, default={m.number(d)})",
    lambda m, d: f"len(f'{{{m.call()}}}-{{{m.call()}:>{{1 + abs({m.call()}) % 9}}}}')",
    lambda m, d: f"len({m.items(d)})",
    lambda m, d: f"next(each({m._k()}, {m.number(d)}), {m.number(d)})",
    lambda m, d: f"{{{m.number(d)}: {m.number(d)}, 7: {m.number(d)}}}[7]",
    lambda m, d: f"(lambda v=({m.number(d)}): v + c)()",
    lambda m, d: f"box.by.get({m.number(d)}, {m.number(d)})",
    lambda m, d: f"(w := {m.number(d)})" if m.may_bind else "w",
    lambda m, d: f"-{m.number(d)}",
    lambda m, d: f"({m.number(d)}, {m.number(d)}, {m.number(d)})[1]",
]
_LISTS: list[_Form] = [
    lambda m, d: f"[{m.number(d)}, {m.number(d)}]",
    lambda m, d: f"[{m.number(d)}, *{m.items(d)}, {m.number(d)}]",
    lambda m, d: f"[f({m._k()}, x) for x in {m.inner(d)} if x != {m.number(0)}]",
    lambda m, d: f"[x + y for x in {m.inner(d)} for y in {m.inner(0)}]",
    lambda m, d: f"({m.items(d)} + {m.items(d)})",
    lambda m, d: f"list(each({m._k()}, {m.number(d)}))",
    lambda m, d: f"({m.items(d)} if {m.number(d)} else {m.items(d)})",
    lambda m, d: f"sorted({{{m.number(d)}, {m.number(d)}}})",
    lambda m, d: f"[*{{x: {m.number(d)} for x in {m.inner(d)}}}]",
]
_STATEMENTS: list[Callable[[_Maker], str]] = [
    lambda m: f"a = {m.number(3)} % 11",
    lambda m: f"b, w = {m.number(3)} % 7, {m.number(2)} % 5",
    lambda m: f"c += {m.number(3)}",
    lambda m: f"box.n += {m.number(3)}",
    lambda m: f"box.by[{m.number(2)} % 2] += {m.number(2)}",
    lambda m: f"box.by[{m.number(2)}] = {m.number(2)}",
    lambda m: f"xs = {m.items(3)}[-4:]",
    lambda m: f"box.items.append({m.number(3)} % 13)",
    lambda m: f"xs += {m.items(2)}[:2]",
    lambda m: f"if {m.number(3)}:\n        a += 1",
    lambda m: f"for x in {m.items(3)}[:3]:\n        b = (b + x) % 9",
    lambda m: f"log.append({m.number(3)})",
    lambda m: f"assert {m.number(2)} != {m.number(2)}, f({m._k()})",
]


def source_of(seed: int, n_statements: int = 6) -> str:
    """The text of a module with a random function `program(log)`."""
    maker = _Maker(seed)
    lines = [maker.statement() for _ in range(n_statements)]
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEAD}{body}    return a, b, c, w, xs, box.n, box.items, box.by, TOTAL\n"
