"""Random modules with classes: what is done with their instances ends, and often raises."""

from __future__ import annotations

from random import Random

_ATOMS = ["0", "1", "2.5", "'a'", "None", "True", "(1, 'x')", "[1]", "a", "b"]
_NAMES = ["x", "y", "z"]
_METHODS = {
    "__eq__": "def __eq__(self, other): return {}",
    "__lt__": "def __lt__(self, other): return {}",
    "__hash__": "def __hash__(self): return hash({})",
    "__repr__": "def __repr__(self): return '<%s>' % str({})",
    "__str__": "def __str__(self): return str({})",
    "__len__": "def __len__(self): return {}",
    "__bool__": "def __bool__(self): return bool({})",
    "__iter__": "def __iter__(self):\n        yield {}",
    "__getitem__": "def __getitem__(self, at): return ({}, at)",
    "__contains__": "def __contains__(self, item): return {}",
    "__add__": "def __add__(self, other): return {}",
    "__radd__": "def __radd__(self, other): return {}",
    "__call__": "def __call__(self, *args): return {}, args",
    "__post_init__": "def __post_init__(self): self.z = {}",
    "m": "def m(self, other=3): return {}",
    "p": "@property\n    def p(self): return {}",
    "c": "@classmethod\n    def c(cls, *args): return cls(*args)",
    "s": "@staticmethod\n    def s(other=1): return other",
}
# Of self, and of the module.
_INNER = [
    "self.x",
    "1",
    "'t'",
    "self.y",
    "[self.x]",
    "(self.x, self.k)",
    "K",
    "self.k",
    "self.x + 1",
    "self.m(2)",
    "len(K)",
    "A(1)",
    "repr(self.x)",
    "super().__repr__()",
    "self.x == 1",
    "isinstance(self, A)",
    "NotImplemented",
    "super().__eq__(1)",
]
_OPTIONS = [
    "order=True",
    "frozen=True",
    "eq=False",
    "repr=False",
    "unsafe_hash=True",
    "kw_only=True",
    "frozen=True, order=True",
    "init=False",
    "",
]
_USES = [
    "{} == {}",
    "{} != {}",
    "{} < {}",
    "{} in [{}]",
    "[{}] == [{}]",
    "{} + {}",
    "({}, {})",
    "sorted([{}, {}])",
    "max({}, {})",
    "{{{}: {}}}",
    "{{{}, {}}}",
    "isinstance({}, A) or {}",
    "[{}].index({})",
    "[{}, {}].count(a)",
    "getattr({}, 'x', {})",
    "replace({}, x={})",
]
_ONE = [
    "repr({})",
    "str({})",
    "'{{!r:>5}}'.format({})",
    "len({})",
    "bool({})",
    "list({})",
    "({}).x",
    "({}).y",
    "({}).m()",
    "({}).m",
    "({}).p",
    "({}).c(1)",
    "({}).s()",
    "({})(1)",
    "({})[0]",
    "hash({}) and 1",
    "asdict({})",
    "astuple({})",
    "copy.copy({})",
    "copy.deepcopy({})",
    "({})._x",
    "hasattr({}, 'y')",
    "(not {})",
    "[f.name for f in fields({})]",
    "({})._replace(x=1)",
    "({})._asdict()",
    "json.dumps({})",
    "({}).args",
    "({}).missing",
]


class ClassWriter:
    """Writes one random module with classes."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def module(self) -> str:
        lines = ["import copy, json", "from dataclasses import *".replace("*", _IMPORTED)]
        lines += ["from typing import NamedTuple", "K = [1, 2]"]
        for name in "ABC":
            lines += self._class(name)
        lines += ["def f(a, b):", "    out = []"]
        for _ in range(8):
            tried = ["try:", *("    " + line for line in self._statement())]
            tried += ["except Exception as e:", "    out.append(str(e))"]
            lines += ["    " + line for line in tried]
        return "\n".join([*lines, "    return out, a, b", ""])

    def _class(self, name: str) -> list[str]:
        above = "ABC"["ABC".index(name) - 1] if name != "A" else "ValueError"
        kind = self._rng.randrange(6)
        head, parts = f"class {name}:", [self._init()]
        if kind in (0, 1):
            options = self._rng.choice(_OPTIONS)
            head, parts = f"@dataclass({options})\nclass {name}:", self._fields()
        elif kind == 2:
            head, parts = f"class {name}(NamedTuple):", self._fields(is_tuple=True)
        elif kind == 3:
            head, parts = f"class {name}({above}):", []
        elif kind == 4:
            head, parts = f"@dataclass\nclass {name}({above}):", self._fields()
        names = {"__eq__", "__repr__"} if kind > 2 else set()
        names |= set(self._rng.sample(sorted(_METHODS), self._rng.randrange(7)))
        inner = [each for each in _INNER if kind != 2 or "super" not in each]
        methods = [_METHODS[each].format(self._rng.choice(inner)) for each in sorted(names)]
        shared = [f"k = {self._rng.choice(['3', '[1]', '(1, [2])'])}"]
        return [head, *(f"    {part}" for part in [*parts, *shared, *methods])]

    def _init(self) -> str:
        extra = self._rng.choice(["", "; self._x = x", "; self.y = [x]", "; super().__init__()"])
        return f"def __init__(self, x=1, y=2): self.x = x{extra}"

    def _fields(self, is_tuple: bool = False) -> list[str]:
        forms = [
            "{}: int",
            "{}: int = 1",
            "{}: object = None",
            "{}: str = 'a'",
            "{}: list = field(default_factory=list)",
            "{}: int = field(default=2, repr=False)",
            "{}: int = field(default=4, compare=False)",
            "{}: tuple = ()",
        ]
        forms = [each for each in forms if not (is_tuple and "field" in each)]
        names = _NAMES[: self._rng.randrange(1, 4)]
        first = self._rng.choice(forms).format(names[0])
        return [first, *(self._rng.choice(forms[1:]).format(name) for name in names[1:])]

    def _statement(self) -> list[str]:
        name = self._rng.choice("ab")
        inner = self._expr(1)
        forms = [
            *[[f"out.append({self._expr(2)})"]] * 4,
            *[[f"{name} = {self._expr(0)}"]] * 4,
            [f"{name}.x = {inner}"],
            [f"{name}.y += {inner}"],
            [f"{name}.k.append({inner})"],
            [f"del {name}.x"],
            [f"for v in {inner}: b = v"],
            [f"K.append({inner})"],
            ["try:", f"    raise {inner}", "except A as e:", f"    {name} = e.args"],
            ["try:", f"    {name} = {self._expr(2)}", "except Exception as e:", "    a = str(e)"],
            [
                f"match {inner}:",
                f"    case {self._rng.choice('ABC')}(x=v): {name} = v",
                f"    case A(v, w): {name} = w",
            ],
        ]
        return self._rng.choice(forms)

    def _expr(self, depth: int) -> str:
        form = self._rng.randrange(5) if depth else self._rng.choice([0, 4])
        if form == 1:
            return self._rng.choice(_USES).format(self._expr(depth - 1), self._expr(depth - 1))
        if form in (2, 3):
            return self._rng.choice(_ONE).format(self._expr(depth - 1))
        if form == 4:
            args = [self._rng.choice(_ATOMS) for _ in range(self._rng.randrange(4))]
            return f"{self._rng.choice('ABC')}({', '.join(args)})"
        return self._rng.choice(_ATOMS)


_IMPORTED = "asdict, astuple, dataclass, field, fields, replace"
