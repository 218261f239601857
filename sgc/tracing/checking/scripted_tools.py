"""Tools with scripted results, for the trace check, which must never call a real tool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any

from sgc.core.failures import find_class
from sgc.ir.analysis.host_calls import pieces_in_python
from sgc.ir.graph import Graph, Lit, Node, Ref
from sgc.ir.types import TEXT, Kind, Type
from sgc.runtime.executor.interface.failures import Failed, MadeUp, class_names
from sgc.runtime.executor.interface.plain import canonical
from sgc.runtime.executor.interface.tools import ToolImpl
from sgc.tracing.checking.rounds import Draw, Round
from sgc.tracing.checking.scripted_arguments import Data, schema_of_text

FAILS_ONE_IN = 2  # calls of a tool whose failures the program handles
OTHER_ONE_IN = 8  # results that are data of another form than the tool declares
PIECE_FAILS_ONE_IN = 4  # runs of a piece in Python
# The exception classes of a tool's failures that a program may distinguish, by the tool's name.
Failures = Mapping[str, tuple[type[Exception], ...]]
_failures: ContextVar[Failures] = ContextVar("sgc_failures", default=MappingProxyType({}))


@contextmanager
def failing(graph: Graph) -> Iterator[None]:
    """Inside, tools whose failures the program handles sometimes fail, with the exception classes
    that the program distinguishes."""
    nodes = tuple(graph.all_nodes())
    tools = [node for node in nodes if node.op == "tool" and node.get("catches") == Lit(True)]
    tools += pieces_in_python(graph)
    told = {value.name for node in nodes if node.op == "outcome" for value in node.results}
    found = (_told_apart(node, told) for node in nodes if node.op == "compute")
    some: list[type[Exception]] = [RuntimeError, *(kind for kind in found if kind is not None)]
    kinds = tuple(dict.fromkeys(some))
    token = _failures.set({node.text("name"): kinds for node in tools})
    try:
        yield
    finally:
        _failures.reset(token)


def _told_apart(node: Node, told: set[str]) -> type[Exception] | None:
    """The exception class for which a node tests a failure, if this process has the class."""
    args = node.get("args")
    if node.text("fn") != "has" or not isinstance(args, tuple) or len(args) != 2:
        return None
    names, name = args
    is_told = isinstance(names, Ref) and names.name in told
    return find_class(str(name.value)) if is_told and isinstance(name, Lit) else None


def _failed(kind: type[Exception], why: str) -> Failed:
    return Failed("", kind.__name__, why, class_names(kind), "")


@dataclass(frozen=True, slots=True)
class ScriptedTools:
    """Stands for every tool. A result depends on the tool's name, its arguments and the draw. own:
    the draws of single tools, by name; keys: the keys of the dicts that tools return.
    """

    draw: Draw
    own: Mapping[str, Draw] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    failures: Failures = field(default_factory=lambda: _failures.get())

    def find(self, node: Node) -> ToolImpl:
        """A scripted tool for any name, so that no run looks for the real one."""
        name, type_ = node.text("name"), node.results[0].type
        schema = schema_of_text(node.text("signature").rpartition("->")[2])

        async def call(*args: Any, **kwargs: Any) -> Any:
            draw = self.own.get(name, self.draw)
            drawn = _drawn(draw, name, canonical([args, kwargs]))
            kinds = self.failures.get(name, ())
            if kinds and drawn % FAILS_ONE_IN == 0:
                kind = kinds[drawn // FAILS_ONE_IN % len(kinds)]
                raise MadeUp(_failed(kind, _text(draw, drawn)))
            if type_.kind is Kind.JSON and schema and drawn // 5 % OTHER_ONE_IN:
                each = Round(draw.texts, drawn % 97, True, draw.texts)
                return Data(Random(drawn), self.keys, each, drawn % 3 == 0).of(schema)
            return _value(type_, draw, drawn)

        return ToolImpl(name, node.text("signature"), call, is_async=True)

    def piece(self, name: str, type_: Type) -> Callable[..., Any]:
        """The stand-in for a piece that runs in Python; its failures are real errors."""

        def call(*args: Any) -> Any:
            draw = self.own.get(name, self.draw)
            drawn = _drawn(draw, name, repr(args))
            kinds = self.failures.get(name, ())
            if kinds and drawn % PIECE_FAILS_ONE_IN == 0:
                raise kinds[drawn // PIECE_FAILS_ONE_IN % len(kinds)](_text(draw, drawn))
            if type_.kind is Kind.JSON:
                some = (_text(draw, drawn), [*draw.texts[: drawn % 3]], drawn % 5)
                return (*some, _value(type_, draw, drawn), None)[drawn // 7 % 5]
            return _value(type_, draw, drawn)

        return call


def _drawn(draw: Draw, name: str, given: str) -> int:
    key = f"{draw.number}/{name}/{given}"
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")


def _text(draw: Draw, drawn: int) -> str:
    return draw.texts[drawn % len(draw.texts)]


def _value(type_: Type, draw: Draw, drawn: int) -> Any:
    if type_.kind is Kind.LIST:
        return [_value(type_.item or TEXT, draw, drawn // 4 + n) for n in range(drawn % 4)]
    text = _text(draw, drawn)
    values: dict[Kind, Any] = {
        Kind.INT: (3, 1, 17)[drawn % 3],
        Kind.FLOAT: (0.5, 0.0, 1.0)[drawn % 3],
        Kind.BOOL: drawn % 2 == 0,
        Kind.JSON: _data(text, drawn),
    }
    return values.get(type_.kind, text)


def _data(text: str, drawn: int) -> Any:
    """The data that a text is, if it is JSON of an object or a list."""
    if text[:1] in ("{", "["):
        with suppress(ValueError):
            return json.loads(text)
    return {"text": text, "number": drawn % 5}
