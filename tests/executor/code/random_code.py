"""Random functions over the subset: they end, and many raise."""

from __future__ import annotations

from random import Random

_ATOMS = ["0", "1", "-2", "3", "2.5", "'ab'", "''", "'c d'", "None", "True", "[]", "[1, 2, 3]",
          "{'a': 1}", "(1, 'x')", "{1, 2}", "a", "b", "c", "d"]  # fmt: skip
_WORDS = "+ - * / // % ** & | ^ << >> == != < <= > >= in is and or"
_BINARY = [*_WORDS.split(" "), "not in", "is not"]
_METHODS = ["upper()", "split()", "get('a')", "items()", "append(1)", "pop()", "count(1)", "keys()",
            "index(2)", "strip('a')", "replace('a', 'b')", "copy()", "sort()", "extend([1])",
            "join(['x', 'y'])", "title()", "update({'z': 2})", "add(3)", "union([4])",
            "x"]  # fmt: skip
_CALLS = ["len", "str", "repr", "int", "float", "list", "tuple", "sorted", "sum", "max", "min",
          "abs", "bool", "reversed", "enumerate", "set", "dict", "any", "all", "iter", "round",
          "range", "ord", "chr", "next", "h", "bin"]  # fmt: skip
_NAMES = ["a", "b", "c", "d"]


class Writer:
    """Writes one random module."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def module(self) -> str:
        lines = ["K = [1, 2]", "def h(x, y=2, *z): return (x, y, z)"]
        lines += ["def f(a, b):", *self._block(1, 3), f"    return {self._expr(2)}, a, b", ""]
        return "\n".join(lines)

    def _block(self, depth: int, n: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self._rng.randint(1, n)):
            lines += ["    " * depth + line for line in self._statement(depth)]
        return lines

    def _inner(self, depth: int) -> list[str]:
        return [line[4 * depth :] for line in self._block(depth + 1, 2)]

    def _statement(self, depth: int) -> list[str]:
        kinds = ["assign", "assign", "aug", "unpack", "call", "item"]
        if depth < 4:
            kinds += ["if", "for", "try", "def", "while", "match"]
        return list(getattr(self, f"_{self._rng.choice(kinds)}")(depth))

    def _assign(self, depth: int) -> list[str]:
        return [f"{self._name()} = {self._expr(3)}"]

    def _aug(self, depth: int) -> list[str]:
        return [
            f"{self._name()} {self._rng.choice(['+', '-', '*', '|', '//', '%'])}= {self._expr(1)}"
        ]

    def _unpack(self, depth: int) -> list[str]:
        star = self._rng.choice(["", "*"])
        return [f"{self._name()}, {star}{self._name()} = {self._expr(2)}"]

    def _call(self, depth: int) -> list[str]:
        return [self._expr(3)]

    def _item(self, depth: int) -> list[str]:
        return [f"{self._name()}[{self._expr(1)}] = {self._expr(1)}"]

    def _if(self, depth: int) -> list[str]:
        rest = ["else:", *self._inner(depth)] if self._rng.random() < 0.5 else []
        return [f"if {self._expr(2)}:", *self._inner(depth), *rest]

    def _for(self, depth: int) -> list[str]:
        tail = self._rng.choice([[], ["    break"], ["    if c: continue"]])
        rest = ["else:", *self._inner(depth)] if self._rng.random() < 0.3 else []
        items = self._rng.choice(["range(3)", "[1, 'a']", "'xyz'", f"list({self._expr(1)})[:3]"])
        return [f"for {self._name()} in {items}:", *self._inner(depth), *tail, *rest]

    def _while(self, depth: int) -> list[str]:
        return ["for w in range(2):", "    while True:", "        break", *self._inner(depth)]

    def _try(self, depth: int) -> list[str]:
        error = self._rng.choice(
            ["TypeError", "(ValueError, KeyError)", "Exception", "LookupError"]
        )
        last = ["finally:", *self._inner(depth)] if self._rng.random() < 0.3 else []
        handler = [f"except {error} as e:", f"    {self._name()} = str(e)", *self._inner(depth)]
        return ["try:", *self._inner(depth), *handler, *last]

    def _def(self, depth: int) -> list[str]:
        outer = ["    nonlocal a, b"] if self._rng.random() < 0.5 and depth == 1 else []
        use = self._rng.choice(
            [f"c = g({self._expr(1)})", "c = list(g(1))[:3]", "d = [g(1), g(2)]"]
        )
        last = self._rng.choice(["return", "yield", "yield from"])
        return ["def g(x, y=1):", *outer, *self._inner(depth), f"    {last} {self._expr(1)}", use]

    def _match(self, depth: int) -> list[str]:
        pattern = self._rng.choice(
            ["[1, *d]", "{'a': c, **d}", "int(c) | float(c)", "str()", "(a, b)", "None | True", "c"]
        )
        return [f"match {self._expr(1)}:", f"    case {pattern}:"] + [
            "    " + line for line in self._inner(depth)
        ]

    def _name(self) -> str:
        return self._rng.choice(_NAMES)

    def _expr(self, depth: int) -> str:
        kind = self._rng.randrange(14) if depth else 0
        one = lambda: self._expr(depth - 1)  # noqa: E731
        forms = {
            0: lambda: self._rng.choice(_ATOMS),
            1: lambda: f"({one()} {self._rng.choice(_BINARY)} {one()})",
            2: lambda: f"({one()} {self._rng.choice(_BINARY)} {one()})",
            3: lambda: f"{self._name()}.{self._rng.choice(_METHODS)}",
            4: lambda: f"{self._rng.choice(_CALLS)}({one()})",
            5: lambda: f"({one()} if {one()} else {one()})",
            6: lambda: f"[{self._name()} for d in [1, 2] for c in {one()} if {one()}]",
            7: lambda: f"{self._name()}[{one()}]",
            8: lambda: f"{self._name()}[{one()}:{one()}]",
            9: lambda: "f'{" + self._name() + "!r:>4}{" + self._name() + "}'",
            10: lambda: f"(lambda x: {one()})({one()})",
            11: lambda: f"[*{one()}, {one()}]",
            12: lambda: f"list({self._name()} for c in {one()})",
            13: lambda: f"(not {one()})",
        }
        return forms.get(kind, forms[0])()
