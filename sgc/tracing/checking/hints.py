"""What a test of a graph looks for: the texts, numbers, keys and patterns in the nodes that make
the tested value, and where that value comes from.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeGuard

from sgc.ir.graph import Graph, Lit, Node, Operand, Ref, operand_refs
from sgc.ir.op_specs import Flag

MAX_NODES = 200  # through which one test's value is followed
MAX_CHARS = 200  # of an argument that is a hint
MAX_EACH = 40  # hints of each kind: those nearest to the test
_KEYED = ("item", "get", "has")
_OF_PATTERNS = frozenset(
    {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
)
# Fields whose texts are names of the graph.
_NAMES = frozenset(
    {"default", "fn", "name", "orelse", "path", "signature", "source", "target", "targets", "then"}
)


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of one test, the nearest to the test first. tools, arguments: the names of those
    from which the value comes; is_of_reply: whether the value comes from a generation."""

    texts: tuple[str, ...] = ()
    numbers: tuple[int | float, ...] = ()
    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    arguments: frozenset[str] = frozenset()
    is_of_reply: bool = True

    def beside(self, arguments: Mapping[str, Any]) -> Hints:
        """These hints, with the texts and numbers among the arguments that go into the value."""
        given = [arguments[name] for name in sorted(self.arguments) if name in arguments]
        texts = [each for each in given if type(each) is str and 0 < len(each) <= MAX_CHARS]
        numbers = [each for each in given if type(each) in (int, float)]
        return replace(self, texts=(*texts, *self.texts), numbers=(*numbers, *self.numbers))


NO_HINTS = Hints()


class HintsOf:
    """Finds the hints of the tests of a program and of the programs that it calls."""

    def __init__(self, graph: Graph) -> None:
        self._values = {each.name: _Values(each) for each in (graph, *graph.called)}
        self._found: dict[tuple[str, str], Hints] = {}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys that any test looks up."""
        found = [
            key
            for program, values in self._values.items()
            for block, node in values.last.items()
            if node.op in ("branch", "switch")
            for key in self.of(program, block).keys
        ]
        return tuple(dict.fromkeys(found))[:MAX_EACH]

    def of(self, program: str, block: str) -> Hints:
        """The hints of the test that ends a block."""
        key = program, block
        if key not in self._found:
            self._found[key] = _Following(self._values[program]).of(block)
        return self._found[key]


class _Values:
    """Where the values of one program are made."""

    def __init__(self, graph: Graph) -> None:
        self.last = {block.name: block.nodes[-1] for block in graph.blocks}
        self.arguments = {param.value.name for param in graph.params}
        self.made: dict[str, Node] = {}
        self.given: defaultdict[str, list[Operand]] = defaultdict(list)  # to blocks' parameters
        params = {block.name: block.params for block in graph.blocks}
        for node in graph.nodes():
            self.made.update((value.name, node) for value in node.results)
            if node.op == "jump":
                args = node.get("args")
                assert isinstance(args, tuple)
                for param, arg in zip(params[node.text("target")], args, strict=True):
                    self.given[param.name].append(arg)


class _Following:
    """Follows the value of one test back to the values that it is made of."""

    def __init__(self, values: _Values) -> None:
        self._values = values
        self._texts: dict[str, None] = {}
        self._numbers: dict[int | float, None] = {}
        self._keys: dict[str, None] = {}
        self._patterns: dict[str, None] = {}
        self._sources: set[tuple[str, str]] = set()
        self._seen: set[str] = set()
        self._left: deque[str] = deque()

    def of(self, block: str) -> Hints:
        self._note_node(self._values.last[block])
        for _ in range(MAX_NODES):
            if not self._left:
                break
            self._follow(self._left.popleft())
        return Hints(
            tuple(self._texts)[:MAX_EACH], tuple(self._numbers)[:MAX_EACH],
            tuple(self._keys)[:MAX_EACH], tuple(self._patterns)[:MAX_EACH],
            frozenset(name for kind, name in self._sources if kind == "tool"),
            frozenset(name for kind, name in self._sources if kind == "argument"),
            ("reply", "") in self._sources or not self._sources,
        )  # fmt: skip

    def _follow(self, name: str) -> None:
        node = self._values.made.get(name)
        if name in self._values.arguments:
            self._sources.add(("argument", name))
        elif node is None:
            for operand in self._values.given.get(name, ()):
                self._note(operand)
        elif Flag.ASKS in node.flags:
            self._sources.add(("reply", ""))
        elif Flag.HOST in node.flags:
            self._sources.add(("tool", node.text("name")))
        else:
            self._note_node(node)

    def _note_node(self, node: Node) -> None:
        args = node.get("args") if node.op in ("compute", "attempt") else ()
        fn = node.text("fn") if node.op in ("compute", "attempt") else ""
        if isinstance(args, tuple) and args and fn.startswith("re_") and type(args[0]) is Lit:
            self._patterns[str(args[0].value)] = None
            args = args[2:]
        if isinstance(args, tuple) and len(args) > 1 and fn in _KEYED:
            self._note_keys(args[1])
        for key, operand in node.fields:
            if key == "code":
                self._note_code(node.text("code"))
            elif key not in _NAMES:
                self._note(args if key == "args" and fn else operand)

    def _note_keys(self, key: Operand) -> None:
        if isinstance(key, Lit) and type(key.value) is str:
            self._keys[key.value] = None

    def _note(self, operand: Any) -> None:
        for name in operand_refs(operand):
            if name not in self._seen:
                self._seen.add(name)
                self._left.append(name)
        for value in _literals(operand):
            self._note_value(value)

    def _note_value(self, value: Any) -> None:
        if type(value) is str and value:
            self._texts[value] = None
        elif type(value) in (int, float):
            self._numbers[value] = None

    def _note_code(self, code: str) -> None:
        found = _of_code(code)
        self._patterns.update(dict.fromkeys(found.patterns))
        self._keys.update(dict.fromkeys(found.keys))
        self._texts.update(dict.fromkeys(found.texts))
        self._numbers.update(dict.fromkeys(found.numbers))


def _literals(operand: Any) -> Iterator[Any]:
    if isinstance(operand, Lit):
        yield operand.value
    elif not isinstance(operand, Ref):
        for each in operand:
            yield from _literals(each)


@lru_cache(maxsize=512)
def _of_code(code: str) -> Hints:
    """The hints of a node's code."""
    nodes = list(ast.walk(ast.parse(code)))
    keys, patterns = [*_keys_of(nodes)], [*_patterns_of(nodes)]
    constants = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and node.value not in ("", *keys, *patterns)
    ]
    return Hints(
        tuple(each for each in constants if type(each) is str),
        tuple(each for each in constants if _is_number(each)), tuple(keys), tuple(patterns),
    )  # fmt: skip


def _is_number(value: object) -> TypeGuard[int | float]:
    return type(value) in (int, float)


def _keys_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The constants that are looked up: `x["a"]`, `x.get("a")`, `"a" in x`."""
    for node in nodes:
        found: ast.AST | None = None
        if isinstance(node, ast.Subscript):
            found = node.slice
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            found = node.left
        elif isinstance(node, ast.Call) and node.args and _method(node) in ("get", "pop"):
            found = node.args[0]
        if isinstance(found, ast.Constant) and type(found.value) is str:
            yield found.value


def _patterns_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name, texts = _method(node), [*map(_text_of, node.args)]
        if name in _OF_PATTERNS:
            yield from [each for each in texts[:1] if each]
        elif name == "strptime" and texts[1:2] != [""]:
            yield from [_of_format(each) for each in texts[1:2]]
        elif name in _PARSED:
            yield _PARSED[name]
            if not isinstance(node.args[0], ast.Name):  # a part of what is read is known
                yield _DIGIT


# What functions read that raise an error for most texts.
_DIGIT = "[1-9]"
_DATE = "20[0-9][0-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
_PARSED = {"fromisoformat": _DATE, "Decimal": "[1-9][0-9]?", "Fraction": "[1-9][0-9]?"}
_PARTS = {
    "%Y": "20[0-9][0-9]", "%y": "[0-9][0-9]", "%m": "(0[1-9]|1[0-2])", "%d": "(0[1-9]|1[0-9])",
    "%H": "[01][0-9]", "%I": "(0[1-9]|1[0-2])", "%M": "[0-5][0-9]", "%S": "[0-5][0-9]",
    "%p": "(AM|PM)", "%b": "(Jan|Mar|Dec)", "%B": "(May|June|July)", "%a": "(Mon|Fri)",
    "%A": "(Monday|Friday)", "%j": "0[1-9][1-9]", "%f": "[0-9]{6}", "%z": "[+]0[1-9]00",
}  # fmt: skip


def _of_format(form: str) -> str:
    """A pattern of the texts that `strptime` reads by a format."""
    parts = re.split("(%.)", form)
    return "".join(_PARTS.get(each, "") or re.escape(each) for each in parts)


def _text_of(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is str else ""


def _method(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))
