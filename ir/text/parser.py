"""Parses the text form: a recursive descent over the tokens, driven by the table of ops.

The parser refuses text that no graph can hold (unknown ops, kinds and fields, a field given twice)
and leaves all other rules to the verifier. Fields may be in any order; comments are dropped, so a
parsed graph has no receipts and, without `locate`, no source lines.
"""

from __future__ import annotations

from dataclasses import replace

from sgc.ir.graph import (
    Block,
    Graph,
    Guard,
    Lit,
    Loc,
    Node,
    Operand,
    Param,
    Ref,
    Value,
    order_fields,
)
from sgc.ir.limits import MAX_DEPTH
from sgc.ir.op_specs import OpSpec
from sgc.ir.ops import OPS
from sgc.ir.text.cursor import Cursor
from sgc.ir.text.literals import WORDS, read_number, value_ref
from sgc.ir.text.printer import ENTRY_BLOCK, TEXT_VERSION, implied_types
from sgc.ir.text.tokens import Token
from sgc.ir.types import Kind, Type

_KINDS = tuple(map(str, Kind))


def parse(text: str, source: str = "<text>", *, locate: bool = False) -> Graph:
    """The graph of a text; ParseError names line, column, expected and found.

    locate: each node's source line is its line in this text, for programs written in the text form.
    source: the name of the text in errors and source lines.
    """
    return _Parser(text, source, locate).graph()


def parse_node(text: str, source: str = "<text>") -> Node:
    """One node, as `node_text` prints it."""
    parser = _Parser(text, source, locate=False)
    node = parser.node()
    parser.skip_newlines()
    parser.expect("end", what="the end of the text")
    return node


class _Parser(Cursor):
    def __init__(self, text: str, source: str, locate: bool) -> None:
        super().__init__(text, source)
        self._locate = locate

    def graph(self) -> Graph:
        self._header()
        guards = []
        while self.at("word", "guard"):
            guards.append(self._guard())
        self.expect("word", "program", what="`guard` or `program`")
        graph = self._program()
        called = []
        while self.at("word", "called"):
            self.take()
            called.append(self._program())
        self.expect("end", what="the end of the text")
        return replace(graph, guards=tuple(guards), called=tuple(called))

    def _program(self) -> Graph:
        name = self.sigil("@", "the program's name, such as `@tips`")
        self.expect("mark", "(")
        params = self.separated(")", self._param)
        self.expect("mark", "{")
        self.end_line()
        blocks = self._blocks()
        self.expect("mark", "}", what="a node, a block's label or `}`")
        self.skip_newlines()
        return Graph(name, params, blocks)

    def _header(self) -> None:
        self.skip_newlines()
        self.expect("word", "sgir", what=f"the header `sgir {TEXT_VERSION}`")
        if self.token.text != str(TEXT_VERSION):
            raise self.error(
                f"version {TEXT_VERSION} of the text form, which is all this sgc reads"
            )
        self.take()
        self.end_line()

    def _guard(self) -> Guard:
        self.take()
        if not self.at("word") and not self.at("string"):
            raise self.error("the kind of the guard")
        kind = self.take()
        text = self.unquoted(kind) if kind.kind == "string" else kind.text
        guard = Guard(text, self.string("the guard's name"), self.string("the guard's value"))
        self.end_line()
        return guard

    def _param(self) -> Param:
        value = self._value()
        return Param(value, self._operand() if self.skip("=") else None)

    def _blocks(self) -> tuple[Block, ...]:
        blocks: list[Block] = []
        if not self.at_sigil("^") and not self.at("mark", "}"):
            blocks.append(Block(ENTRY_BLOCK, (), self._nodes()))
        while self.at_sigil("^"):
            name = self.sigil("^", "a block's label")
            params = self.separated(")", self._value) if self.skip("(") else ()
            self.expect("mark", ":")
            self.end_line()
            blocks.append(Block(name, params, self._nodes()))
        return tuple(blocks)

    def _nodes(self) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while not self.at("mark", "}") and not self.at_sigil("^") and not self.at("end"):
            nodes.append(self.node())
            if not self.at("mark", "}"):
                self.end_line()
        return tuple(nodes)

    # Nodes.

    def node(self) -> Node:
        start = self.token
        results = self._results()
        op = self.expect("word", what="the name of an op" if results else "a node")
        spec = OPS.get(op.text)
        if spec is None:
            raise self.error(f"one of the ops {', '.join(OPS)}", at=op)
        fields = order_fields(spec.name, self._fields(spec))
        values = self._typed(results, spec, op)
        loc = Loc(self.source, start.line) if self._locate else None
        return Node(spec.name, values, fields, loc)

    def _results(self) -> list[tuple[str, Type | None]]:
        results: list[tuple[str, Type | None]] = []
        while self.at_sigil("%"):
            name = self.sigil("%", "a result")
            results.append((name, self._type() if self.skip(":") else None))
            if not self.skip(","):
                self.expect("mark", "=", what="`:`, `,` or `=` after a result")
                return results
        if results:
            raise self.error("a result such as `%x` after `,`")
        return results

    def _typed(
        self, results: list[tuple[str, Type | None]], spec: OpSpec, at: Token
    ) -> tuple[Value, ...]:
        implied = implied_types(spec, len(results))
        values: list[Value] = []
        for (name, written), default in zip(results, implied, strict=True):
            type_ = written or default
            if type_ is None and len(results) <= len(spec.results):
                raise self.error(
                    f"the type of {value_ref(name)}, such as `{value_ref(name)}: text`", at=at
                )
            if type_ is None:
                raise self.error(f"at most {len(spec.results)} results of {spec.name}", at=at)
            values.append(Value(name, type_))
        return tuple(values)

    def _fields(self, spec: OpSpec) -> dict[str, Operand]:
        positional = [row.name for row in spec.fields if row.positional]
        fields: dict[str, Operand] = {}
        while not (self.at("newline") or self.at("end") or self.at("mark", "}")):
            at = self.token
            if at.kind == "word" and at.text not in WORDS:
                name = self._field_name(spec)
            elif positional:
                name = positional.pop(0)
            else:
                raise self.error("the name of a field")
            if name in fields:
                raise self.error(f"field {name} once", at=at)
            fields[name] = self._operand()
        return fields

    def _field_name(self, spec: OpSpec) -> str:
        word = self.take()
        names = [row.name for row in spec.fields]
        if word.text not in names:
            raise self.error(f"one of the fields of {spec.name}: {', '.join(names)}", at=word)
        self.expect("mark", "=")
        return word.text

    # Values, types and operands.

    def _value(self) -> Value:
        name = self.sigil("%", "a parameter such as `%topic: text`")
        self.expect("mark", ":")
        return Value(name, self._type())

    def _type(self, depth: int = 0) -> Type:
        token = self.expect("word", what="a type")
        if token.text not in _KINDS or depth > MAX_DEPTH:
            limit = f" nested at most {MAX_DEPTH} deep" if depth > MAX_DEPTH else ""
            raise self.error(f"a type{limit}: one of {', '.join(_KINDS)}", at=token)
        kind = Kind(token.text)
        if kind is Kind.LIST:
            self.expect("mark", "[", what="`[` and the type of the list's items")
            item = self._type(depth + 1)
            self.expect("mark", "]")
            return Type(kind, item=item)
        if kind is Kind.CHOICE and self.skip("["):
            return Type(kind, options=self.separated("]", lambda: self.string("an option")))
        return Type(kind)

    def _operand(self, depth: int = 0) -> Operand:
        token = self.token
        if self.at_sigil("%"):
            return Ref(self.sigil("%", "a value"))
        if self.skip("["):
            if depth >= MAX_DEPTH:
                raise self.error(f"lists nested at most {MAX_DEPTH} deep", at=token)
            return self.separated("]", lambda: self._operand(depth + 1))
        if token.kind == "string":
            return Lit(self.unquoted(self.take()))
        if token.kind == "number":
            self.take()
            return Lit(self.checked(lambda: read_number(token.text), token))
        if token.kind == "word" and token.text in WORDS:
            return Lit(WORDS[self.take().text])
        raise self.error("a value such as `%x`, a literal or a list")
