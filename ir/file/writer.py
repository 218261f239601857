"""Writes a graph as the flat tables of `sgir.proto`. Equal graphs make equal messages.

Strings and types are written once, in order of first use; operands once for each use. The graph
must have passed the verifier. Only `file/sgir.py` calls this.
"""

from __future__ import annotations

from sgc.errors import UsageError
from sgc.ir.analysis.dependencies import all_definitions
from sgc.ir.graph import Graph, Lit, Loc, Node, Operand, Ref, Scalar
from sgc.ir.limits import MAX_INT, MIN_INT
from sgc.ir.ops import OP_TABLE_VERSION
from sgc.ir.types import Type
from sgc.proto import sgir_pb2 as pb

_MAX_LINE = 2**32 - 1


def write_program(graph: Graph) -> tuple[pb.Program, int]:
    """The message of a verified graph, and the number of characters that it expands to.

    Raises UsageError if a literal does not fit the format.
    """
    writer = _Writer(graph)
    return writer.program, writer.n_chars


class _Writer:
    """n_chars: of all strings and types, counted for each use, as in the reader."""

    def __init__(self, graph: Graph) -> None:
        self.n_chars = 0
        self.program = pb.Program(op_table_version=OP_TABLE_VERSION)
        self._strings: dict[str, int] = {}
        self._types: dict[Type, int] = {}
        self._values: dict[str, int] = {}
        self._where = ""
        self.program.name = self._string(graph.name)
        self._write_values(graph)
        self._write_params(graph)
        for block in graph.blocks:
            params = [self._values[value.name] for value in block.params]
            name = self._string(block.name)
            self.program.blocks.add(name=name, params=params, n_nodes=len(block.nodes))
            for node in block.nodes:
                self._write_node(node)
        self._write_facts(graph)
        for each in graph.called:
            program, n_chars = write_program(each)
            self.program.called.append(program)
            self.n_chars += n_chars

    def _string(self, text: str) -> int:
        self.n_chars += len(text)
        if text not in self._strings:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                problem = f"a text holds half a surrogate pair, {text[error.start]!a}"
                raise self._refusal(problem, "a file holds only valid Unicode") from None
            self._strings[text] = len(self._strings)
            self.program.strings.append(text)
        return self._strings[text]

    def _refusal(self, problem: str, hint: str) -> UsageError:
        return UsageError(f"the program cannot be saved: {problem}", where=self._where, hint=hint)

    def _type(self, type_: Type) -> int:
        if type_ not in self._types:
            kind = self._string(type_.kind)
            items = [self._type(type_.item)] if type_.item else []
            options = [self._string(option) for option in type_.options]
            self._types[type_] = len(self._types)
            self.program.types.add(kind=kind, items=items, options=options)
        return self._types[type_]

    def _write_values(self, graph: Graph) -> None:
        for definition in all_definitions(graph):
            name, type_ = definition.value.name, definition.value.type
            self.n_chars += type_.n_chars
            self._values[name] = len(self._values)
            self.program.values.add(name=self._string(name), type=self._type(type_))

    def _write_params(self, graph: Graph) -> None:
        for param in graph.params:
            row = self.program.params.add(value=self._values[param.value.name])
            if param.default is not None:
                row.has_default = True
                row.default = self._operand(param.default)

    def _write_node(self, node: Node) -> None:
        self._where = str(node.loc or "")
        results = [self._values[value.name] for value in node.results]
        row = self.program.nodes.add(op=self._string(node.op), results=results)
        for name, operand in node.fields:
            row.fields.add(name=self._string(name), operand=self._operand(operand))
        if node.loc is not None and 1 <= node.loc.line <= _MAX_LINE:
            self._write_loc(row, node.loc)

    def _write_loc(self, row: pb.Node, loc: Loc) -> None:
        row.line = loc.line
        row.file, row.function = self._string(loc.file), self._string(loc.function)

    def _operand(self, operand: Operand) -> int:
        if isinstance(operand, tuple):
            message = pb.Operand(list=pb.List(items=[self._operand(item) for item in operand]))
        elif isinstance(operand, Ref):
            message = pb.Operand(value=self._values[operand.name])
            self.n_chars += len(operand.name)
        else:
            message = self._literal(operand)
        self.program.operands.append(message)
        return len(self.program.operands) - 1

    def _literal(self, literal: Lit) -> pb.Operand:
        value: Scalar = literal.value
        if value is None:
            return pb.Operand(none=True)
        if isinstance(value, bool):
            return pb.Operand(boolean=value)
        if isinstance(value, str):
            return pb.Operand(text=self._string(value))
        if isinstance(value, float):
            return pb.Operand(number=value)
        if not MIN_INT <= value <= MAX_INT:
            problem = f"an integer of {value.bit_length()} bits"
            raise self._refusal(problem, "a file holds integers of at most 64 bits")
        return pb.Operand(integer=value)

    def _write_facts(self, graph: Graph) -> None:
        self._where = ""
        for guard in graph.guards:
            kind, name, value = map(self._string, (guard.kind, guard.name, guard.value))
            self.program.guards.add(kind=kind, name=name, value=value)
        for receipt in graph.receipts:
            row = self.program.receipts.add(summary=self._string(receipt.summary))
            setattr(row, "pass", self._string(receipt.pass_name))
            row.preserves = self._string(receipt.preserves)
            row.nodes_before, row.nodes_after = receipt.nodes_before, receipt.nodes_after
            row.details.extend(map(self._string, receipt.details))
