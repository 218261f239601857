"""Random valid graphs from a seed, covering every op and field of the table.

Tests that say "for all graphs" use them. A graph depends only on its seed.
"""

from __future__ import annotations

import random
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
    Receipt,
    Ref,
    Value,
    make_node,
)
from sgc.ir.limits import MAX_WIDTH
from sgc.ir.op_specs import ANY_VALUE, REQUIRED, FieldSpec, Flag, OpSpec
from sgc.ir.ops import OPS, TABLE
from sgc.ir.rules.node import EFFECTS, PLACES, n_gathered
from sgc.ir.text.parser import parse
from sgc.ir.types import STREAM, TEXT, Kind, Type, choice_of, list_of

TEXTS = (
    "", "a", "Tip: ", 'say "hi"\\', "line\nbreak\r\n\t", "名前", "🙂", "\x00\x1b", "\u2028",
    "\u202e", "# no comment", "%s0", "}", "]", "sgir 1", "\U000e0001", "é", "<|im_end|>",
)  # fmt: skip
INTS = (0, 1, -1, 7, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.5, 1.0, 1e300, 5e-324, 0.1, float("inf"), float("-inf"), float("nan"))
SCALAR_KINDS = (Kind.TEXT, Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.JSON, Kind.MEDIA, Kind.CHOICE)


# The called programs of `map` nodes; the second calls the first.
NOTES = """sgir 1
program @main() {
  return
}
called @note(%item: text, %n: int) {
  %s0     = stream "note" path="note"
  %s1, %x = gen    %s0 name="x"
  publish %s1 "note" keys=["x"] items=[%x]
  return %x
}
called @notes(%items: list[text], %n: int) {
  %s0     = stream "notes" path="notes"
  %xs     = map 0 %items caller=%s0 keys=["n"] args=[%n] names=["x"]
  publish %s0 "notes" keys=["xs"] items=[%xs]
  return
}
"""
CALLED = parse(NOTES).called


def random_graph(seed: int, n_nodes: int = 12) -> Graph:
    return _Maker(random.Random(seed), n_nodes).graph()


class _Maker:
    def __init__(self, rng: random.Random, n_nodes: int) -> None:
        self.rng = rng
        self.n_nodes = n_nodes
        self.names: set[str] = set()
        self.values: list[Value] = []
        self.open: list[str] = []  # stream states that are not yet consumed
        self.paths: dict[str, list[str]] = {}  # the states that each state continues

    def graph(self) -> Graph:
        params = tuple(self.param() for _ in range(self.rng.randrange(4)))
        self.values = [param.value for param in params]
        names = ["entry"] if self.rng.random() < 0.7 else ["b 1", "b2", "出口"]
        blocks = tuple(self.block(name, is_entry=name == names[0]) for name in names)
        guards = tuple(
            Guard(self.rng.choice(["source", "a b"]), self.text(), self.text())
            for _ in range(self.rng.randrange(3))
        )
        receipt = Receipt("fold", "requests", self.text(), 3, 2, ("line 1", ""))
        receipts = (receipt,) * self.rng.randrange(2)
        name = self.rng.choice(["tips", "<lambda>"])
        return Graph(name, params, blocks, guards, receipts, CALLED)

    def text(self) -> str:
        return self.rng.choice(TEXTS)

    def name(self) -> str:
        stem = self.rng.choice(("x", "s1", "a b", "", 'q"', "ü", "1", "\n", "x.y"))
        while stem in self.names:
            stem += self.rng.choice("0123456789")
        self.names.add(stem)
        return stem

    def type(self, depth: int = 0) -> Type:
        if depth < 3 and self.rng.random() < 0.2:
            return list_of(self.type(depth + 1))
        kind = self.rng.choice(SCALAR_KINDS)
        if kind is Kind.CHOICE and self.rng.random() < 0.5:
            return choice_of(("A", 'B "quoted"'))
        return Type(kind)

    def param(self) -> Param:
        value = Value(self.name(), self.type())
        has_default = self.rng.random() < 0.5 and value.type.kind is not Kind.MEDIA
        return Param(value, self.default(value.type) if has_default else None)

    def default(self, type_: Type) -> Operand:
        if type_.item is not None:
            is_empty = type_.item.kind is Kind.MEDIA
            return () if is_empty else tuple(self.default(type_.item) for _ in range(2))
        if type_.options:
            return Lit(type_.options[0])
        return self.literal(type_.kind)

    def literal(self, kind: Kind) -> Lit:
        if kind is Kind.JSON:
            return Lit(None)
        if kind is Kind.BOOL:
            return Lit(self.rng.random() < 0.5)
        pools: dict[Kind, tuple[str | int | float, ...]] = {Kind.INT: INTS, Kind.FLOAT: FLOATS}
        return Lit(self.rng.choice(pools.get(kind, TEXTS)))

    def block(self, name: str, is_entry: bool) -> Block:
        """A block; other blocks than the entry are unreachable, so they use only the arguments."""
        outer_values, outer_open, outer_paths = list(self.values), self.open, self.paths
        params = () if is_entry else (self.define(STREAM), self.define(self.type()))
        self.open, self.paths = [v.name for v in params if v.type.is_stream], {}
        self.paths = {name: [name] for name in self.open}
        ops = [row for row in TABLE if Flag.TERMINATOR not in row.flags]
        picked = [TABLE[0], *self.rng.choices(ops, k=self.n_nodes)]
        nodes = [node for row in picked if (node := self.node(row)) is not None]
        nodes += filter(None, [self.node(OPS["return"])])
        self.values, self.open, self.paths = outer_values, outer_open, outer_paths
        return Block(name, params, tuple(nodes))

    def define(self, type_: Type) -> Value:
        value = Value(self.name(), type_)
        if not type_.is_stream:
            self.values.append(value)
        return value

    def node(self, spec: OpSpec) -> Node | None:
        if not self.open and any(row.consumes for row in spec.fields):
            return None
        if spec.name == "span":
            return self.span()
        if spec.name in ("image", "video") and all(
            v.type.kind is not Kind.MEDIA for v in self.values
        ):
            return None
        fields: dict[str, Operand] = {}
        for row in spec.fields:
            if row.is_required or self.rng.random() < 0.4:
                fields[row.name] = self.operand(row)
        if spec.name in ("record", "future", "publish") and "keys" in fields:
            n_items = self.rng.randrange(1, 3)
            fields["keys"] = tuple(Lit(f"k{index}") for index in range(n_items))
            fields["items"] = tuple(self.item(spec.field("items")) for _ in range(n_items))
        elif spec.name in ("future", "publish"):
            fields.pop("items", None)
        elif spec.name == "select":
            name = "choices" if fields.get("among", Lit(None)) == Lit(None) else "among"
            fields = {each: fields[each] for each in fields if each not in ("choices", "among")}
            fields[name] = self.operand(replace(spec.field(name), default=REQUIRED))
        elif spec.name in ("append_span", "share"):
            end = self.rng.choice(list(self.paths))
            fields |= {"start": Ref(self.rng.choice(self.paths[end])), "end": Ref(end)}
            if "kv" in fields:
                fields["kv"] = Lit(self.rng.choice(["", "first", "next"]))
        elif spec.name == "prefetch":
            fields |= {"kinds": (Lit("const"),), "pieces": (self.literal(Kind.TEXT),)}
        elif spec.name == "separate_reasoning":
            taken = fields["stream"]
            assert isinstance(taken, Ref)
            fields["start"] = Ref(self.rng.choice(self.paths[taken.name]))
        elif spec.name in ("compute", "attempt"):
            fields = {"fn": Lit("int"), "args": (self.literal(Kind.TEXT),)}
        elif spec.name in ("evaluate", "perform"):
            code = "def size(text):\n    return [len(text)]"
            fields = {"code": Lit(code), "args": (self.literal(Kind.TEXT),)}
        if spec.name == "evaluate":
            fields |= {"changed": (Lit(0),)} if self.rng.random() < 0.5 else {}
            fields |= {"is_several": Lit(True)} if self.rng.random() < 0.5 else {}
            fields |= {"gives": Lit("list[int]")} if self.rng.random() < 0.5 else {}
        elif spec.name == "perform":
            fields["n"] = Lit(self.rng.randrange(1, 4))
            fields |= {"catches": Lit(True)} if self.rng.random() < 0.5 else {}
            fields |= {"is_apart": Lit(True)} if self.rng.random() < 0.5 else {}
        elif spec.name == "tool":
            fields["effect"] = Lit(self.rng.choice(EFFECTS))
            fields["keys"] = (Lit("key"),)
            if fields.get("timeout_s", Lit(None)) != Lit(None):
                fields["timeout_s"] = Lit(1.5)
        elif spec.name == "show":
            fields["to"] = Lit(self.rng.choice(PLACES))
        elif spec.name == "join_first" and "k" in fields:
            fields["k"] = Lit(1)
        elif spec.name == "winner_values":
            fields["owners"] = (Lit(0),)
            fields["items"] = (self.item(spec.field("items")),)
        elif spec.name == "map":
            if not self.paths:
                return None
            fields |= {"program": Lit(self.rng.randrange(2)), "keys": (Lit("n"),)}
            fields |= {"args": (Lit(3),), "width": Lit(self.rng.randrange(1, MAX_WIDTH))}
            fields["ordinal"] = Lit(self.rng.choice([None, 0, 7]))
        elif spec.name == "fork":
            fields["n"] = Lit(self.rng.randrange(1, 4))
        node = make_node(spec.name, (), self.loc(), **fields)
        return replace(node, results=self.results(spec, fields))

    def results(self, spec: OpSpec, fields: dict[str, Operand]) -> tuple[Value, ...]:
        kinds = [kind or self.rng.choice(SCALAR_KINDS) for kind in spec.results]
        if spec.name == "map":
            kinds *= n_gathered(make_node("map", **fields))
        elif spec.variadic_results:
            n = fields["n"]
            assert isinstance(n, Lit)
            assert isinstance(n.value, int)
            kinds += kinds[-1:] * (n.value - 1)
        if spec.name == "compute":
            kinds = [Kind.INT]
        values = tuple(self.define(self.result_type(kind, fields)) for kind in kinds)
        stream = fields.get("stream")
        before = self.paths[stream.name] if isinstance(stream, Ref) else []
        for value in values:
            if value.type.is_stream:
                self.open.append(value.name)
                self.paths[value.name] = [*before, value.name]
        return values

    def result_type(self, kind: Kind, fields: dict[str, Operand]) -> Type:
        if kind is Kind.LIST:
            return list_of(self.rng.choice([TEXT, TEXT, self.type(1)]))
        choices = fields.get("choices")
        if kind is Kind.CHOICE and isinstance(choices, tuple) and self.rng.random() < 0.5:
            texts = [choice.value for choice in choices if isinstance(choice, Lit)]
            if len(texts) == len(choices):  # a reference may be any text
                return choice_of(tuple(dict.fromkeys(map(str, texts))))
        return Type(kind)

    def span(self) -> Node | None:
        if not self.paths:
            return None
        end = self.rng.choice(list(self.paths))
        start = self.rng.choice(self.paths[end])
        return make_node("span", (self.define(TEXT),), self.loc(), start=Ref(start), end=Ref(end))

    def operand(self, row: FieldSpec) -> Operand:
        if row.default is None and self.rng.random() < 0.2:
            return Lit(None)
        if row.kinds == {Kind.STREAM}:
            return self.stream(row) if row.consumes or self.paths else Lit(None)
        if row.is_list:
            return tuple(self.item(row) for _ in range(self.rng.randrange(1, 4)))
        return self.item(row)

    def stream(self, row: FieldSpec) -> Ref:
        if row.consumes:
            return Ref(self.open.pop(self.rng.randrange(len(self.open))))
        return Ref(self.rng.choice(list(self.paths)))

    def item(self, row: FieldSpec, depth: int = 0) -> Operand:
        kinds = row.kinds & ANY_VALUE if depth else row.kinds
        fitting = [value for value in self.values if value.type.kind in kinds]
        literals = sorted(kinds - {Kind.CHOICE, Kind.MEDIA})
        if fitting and not row.static and (not literals or self.rng.random() < 0.6):
            return Ref(self.rng.choice(fitting).name)
        kind = self.rng.choice(literals)
        if kind is Kind.LIST:
            n_items = self.rng.randrange(3) if depth < 3 else 0
            return tuple(self.item(row, depth + 1) for _ in range(n_items))
        return self.literal(kind)

    def loc(self) -> Loc | None:
        if self.rng.random() < 0.3:
            return None
        return Loc(self.rng.choice(["tips.py", "a\nb.py"]), self.rng.randrange(1, 99), "tips")
