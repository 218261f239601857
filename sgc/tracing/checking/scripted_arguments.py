"""The arguments that a trace is checked with, by the parameters' types and schemas."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from random import Random
from typing import Any

from sgc.core.shapes import as_data
from sgc.ir.graph import Graph, Lit, Node, Operand
from sgc.ir.op_specs import NUMERIC
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.interface.argument_shapes import schemas_of
from sgc.tracing.checking.hints import NO_HINTS, Hints
from sgc.tracing.checking.rounds import MAX_REPLY, Round

IMAGES = (b"\x89PNG\r\n\x1a\n first", b"\xff\xd8\xff second")
MAX_KEYS = 16
MAX_DEPTH = 4
MAX_NUMBER = 64  # it may be the number of turns of a loop
_TYPES = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array",
    "dict": "object", "tuple": "tuple",
}  # fmt: skip
_KEYED = ("item", "get", "has")


class Arguments:
    """The arguments of each round of one check."""

    def __init__(self, graph: Graph) -> None:
        self._params = [param.value for param in graph.params]
        self._defaults = {
            param.value.name: _value(param.default)
            for param in graph.params
            if param.default is not None
        }
        self.schemas = schemas_of(graph)
        self.keys = tuple(dict.fromkeys(_keys(graph)))[:MAX_KEYS]

    def of(self, number: int, each: Round, hints: Hints = NO_HINTS) -> dict[str, Any]:
        """The arguments of a round. hints: what a test looks for in them; arguments without hints
        get their defaults every other time."""
        found = {}
        keys = tuple(dict.fromkeys((*hints.keys, *self.keys)))[:MAX_KEYS]
        for index, param in enumerate(self._params):
            is_asked = param.name in hints.arguments or param.name not in self._defaults
            if not is_asked and (number + index) % 2:
                found[param.name] = self._defaults[param.name]
            elif param.name in self.schemas:
                data = Data(Random(f"{number}/{index}"), keys, each, number % 3 == 0)
                found[param.name] = data.of(as_data(self.schemas[param.name]))
            elif param.type.kind in NUMERIC and hints.numbers:
                value = Random(f"{number}/{index}").choice(hints.numbers) + number % 3 - 1
                of = int if param.type.kind is Kind.INT else float
                found[param.name] = of(max(min(value, MAX_NUMBER), -MAX_NUMBER))
            else:
                found[param.name] = _argument(param.type, index, number, each)
        return found


def _value(default: Operand) -> Any:
    if isinstance(default, tuple):
        return [_value(each) for each in default]
    assert isinstance(default, Lit)
    return default.value


def _keys(graph: Graph) -> Iterator[str]:
    """The texts that the program looks up in data."""
    for node in graph.all_nodes():
        args = node.get("args") if node.op in ("compute", "attempt") else ()
        if isinstance(args, tuple) and len(args) > 1 and _fn(node) in _KEYED:
            key = args[1]
            if isinstance(key, Lit) and type(key.value) is str:
                yield key.value


def _fn(node: Node) -> Any:
    fn = node.get("fn")
    return fn.value if isinstance(fn, Lit) else None


def schema_of_text(annotation: str) -> dict[str, Any]:
    """The schema of an annotation that is a text; parts that are not Python's own types become data
    of any type."""
    try:
        return _schema(ast.parse(annotation.strip(), mode="eval").body)
    except SyntaxError:
        return {}


def _schema(tree: ast.expr) -> dict[str, Any]:
    if isinstance(tree, ast.BinOp):
        return {"anyOf": [_schema(tree.left), _schema(tree.right)]}
    if isinstance(tree, ast.Constant) and tree.value is None:
        return {"type": "null"}
    of, parts = tree, []
    if isinstance(tree, ast.Subscript):
        of, within = tree.value, tree.slice
        parts = [*map(_schema, within.elts if isinstance(within, ast.Tuple) else [within])]
    name = _TYPES.get(of.id.lower() if isinstance(of, ast.Name) else "")
    if name == "array" and parts:
        return {"type": "array", "items": parts[0]}
    if name == "object" and len(parts) == 2:
        return {"type": "object", "additionalProperties": parts[1]}
    if name == "tuple":
        return {"type": "tuple", "prefixItems": parts}
    return {"type": name} if name else {}


def _argument(type_: Type, index: int, number: int, each: Round) -> Any:
    if type_.kind is Kind.INT:
        return (3, 1, 17)[(index + number) % 3]
    if type_.kind is Kind.FLOAT:
        return (0.5, 0.0, 1.0)[(index + number) % 3]
    if type_.kind is Kind.BOOL:
        return (index + number) % 2 == 0
    if type_.kind is Kind.MEDIA:
        return IMAGES[(index + number) % len(IMAGES)]
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        n_items = (index + number) % 4
        return [_argument(type_.item, index + i, number, each) for i in range(n_items)]
    return each.text(index)


class Data:
    """Draws data for schemas. keys: keys for dicts; is_whole: whether dicts have all keys."""

    def __init__(self, random: Random, keys: tuple[str, ...], each: Round, is_whole: bool) -> None:
        self._random, self._keys, self._each, self._is_whole = random, keys, each, is_whole

    def of(self, schema: Any, depth: int = 0) -> Any:
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if "anyOf" in schema:
            return self.of(self._random.choice(schema["anyOf"]), depth)
        of = schema.get("type") or self._any_type(depth)
        if of == "object":
            return self._dict(schema, depth)
        if of == "array":
            n_items = self._random.choice((2, 3) if self._is_whole else (0, 1, 2, 3))
            return [self.of(schema.get("items", {}), depth + 1) for _ in range(n_items)]
        if of == "tuple":
            return tuple(self.of(each, depth + 1) for each in schema["prefixItems"])
        return self._scalar(of)

    def _any_type(self, depth: int) -> str:
        kinds = ["string"] * 6 + ["integer", "number", "boolean", "null"]
        if depth < MAX_DEPTH:
            kinds += ["object"] * (4 if self._keys and not depth else 1) + ["array"]
        return self._random.choice(kinds)

    def _dict(self, schema: Any, depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        found = {
            key: self.of(inner, depth + 1)
            for key, inner in properties.items()
            if key in required or self._is_whole or self._random.random() < 0.5
        }
        others = schema.get("additionalProperties", {})
        if properties or depth > MAX_DEPTH:
            return found
        keys = [key for key in self._keys if self._is_whole or self._random.random() < 0.8]
        keys += [self._text() for _ in range(self._random.randrange(3))]
        return {key: self.of(others, depth + 1) for key in keys}

    def _text(self) -> str:
        """A text inside data, which is shorter than others."""
        return self._each.text(self._random.randrange(64))[:MAX_REPLY]

    def _scalar(self, of: str) -> Any:
        if of == "integer":
            return self._random.choice((3, 1, 17, 0, -2))
        if of == "number":
            return self._random.choice((0.5, 0.0, 1.0, 2))
        if of == "boolean":
            return self._random.random() < 0.5
        return None if of == "null" else self._text()
