"""Templates with verdicts: reads them, makes programs of them, and judges a pass's result.

`benches/movement.py` and `tests/passes/changing/test_movement.py` use it. The judge does not know
the rules: it compares the words in front of the first argument, before and after the pass.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sgc.ir.graph import Block, Graph, Lit, Loc, Node, Param, Ref, Value, make_node
from sgc.ir.types import STREAM, TEXT

FOLDER = Path(__file__).resolve().parent
MOVED_SHARE = 0.75  # of the words of `lead` (DESIGN.md, "Code movement")

_TOKEN = re.compile(r"\{\{|\}\}|\{=(\w+)\}|\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """messages: pairs of role ("" for none) and text; lead: texts that should move in front; could:
    other texts that may.
    """

    name: str
    messages: tuple[tuple[str, str], ...]
    may: bool = False
    lead: tuple[str, ...] = ()
    could: tuple[str, ...] = ()


SETS = ("development", "evaluation")


def read(name: str) -> list[Template]:
    found = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return [_template(row) for row in found["template"]]


def _template(row: dict[str, object]) -> Template:
    messages = row.get("messages") or [["", row["text"]]]
    lead, could = (tuple(row.get(k, ())) for k in ("lead", "could"))  # type: ignore[arg-type,call-overload]
    if row["verdict"] not in ("may", "must_not") or (row["verdict"] == "may") != bool(lead):
        raise ValueError(f"{row['name']}: a template may move if and only if something must lead")
    whole = "\n".join(text for _, text in messages)  # type: ignore[attr-defined]
    for text in (*lead, *could):
        if text not in whole:
            raise ValueError(f"{row['name']}: {text!r} is not in it")
    lead, could = (tuple(map(_unescaped, texts)) for texts in (lead, could))
    return Template(
        str(row["name"]),
        tuple((role, text) for role, text in messages),  # type: ignore[attr-defined]
        row["verdict"] == "may",
        lead,
        could,
    )


def _unescaped(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def program(template: Template) -> Graph:
    """The template as a program with one stream, and a generation at its end."""
    maker = _Maker()
    for role, text in template.messages:
        if role:
            maker.add("role_begin", role=Lit(role))
        maker.text(text)
        if role:
            maker.add("role_end", role=Lit(role))
    is_chat = bool(template.messages[0][0])
    if is_chat:
        maker.add("role_begin", role=Lit("assistant"))
    maker.generate("reply")
    if is_chat:
        maker.add("role_end", role=Lit("assistant"))
    return maker.graph()


class _Maker:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.params: dict[str, Param] = {}
        self._emit("stream", (Value("state.0", STREAM),), name=Lit("template"))

    def _emit(self, op: str, results: tuple[Value, ...], **fields: object) -> None:
        loc = Loc("template.py", len(self.nodes) + 1)
        self.nodes.append(make_node(op, results, loc, **fields))  # type: ignore[arg-type]

    def add(self, op: str, *values: Value, **fields: object) -> None:
        """Adds a node that continues the stream."""
        stream = Ref(self.nodes[-1].results[0].name)
        state = Value(f"state.{len(self.nodes)}", STREAM)
        self._emit(op, (state, *values), stream=stream, **fields)

    def text(self, text: str) -> None:
        position = 0
        held = ""
        for found in _TOKEN.finditer(text):
            held += text[position : found.start()]
            position = found.end()
            if found.group() in ("{{", "}}"):
                held += found.group()[0]
                continue
            self._const(held)
            held = ""
            if found.group(1):
                self.generate(found.group(1))
            else:
                name = found.group(2)
                self.params.setdefault(name, Param(Value(name, TEXT)))
                self.add("append", value=Ref(name))
        self._const(held + text[position:])

    def _const(self, text: str) -> None:
        if text:
            self.add("const", text=Lit(text))

    def generate(self, name: str) -> None:
        self.add("gen", Value(f"{name}.text", TEXT), name=Lit(name))

    def graph(self) -> Graph:
        end = self.nodes[-1].results[0].name
        self._emit("publish", (), stream=Ref(end), name=Lit("template"))
        self._emit("return", ())
        block = Block("entry", (), tuple(self.nodes))
        return Graph("template", tuple(self.params.values()), (block,))


def prefix(graph: Graph) -> str:
    """The constant text before the first value of the only stream, with newlines for role marks."""
    return "".join(_constants(graph))


def _constants(graph: Graph) -> Iterator[str]:
    for node in graph.nodes():
        if node.op == "const":
            yield node.text("text")
        elif node.op in ("append", "gen"):
            return
        elif node.op.startswith("role_"):
            yield "\n"


@dataclass(frozen=True, slots=True)
class Verdict:
    """outcome: moved, missed, wrong or kept; wrong_words: those that moved and must not."""

    outcome: str
    gained: str
    wrong_words: tuple[str, ...] = ()


def judge(template: Template, before: Graph, after: Graph) -> Verdict:
    """The verdict on a template: any new leading word that is not allowed makes it wrong."""
    old, new = _words(prefix(before)), _words(prefix(after))
    led = new - old
    gained = prefix(after)
    must, may = (_words("\n".join(t)) for t in (template.lead, (*template.lead, *template.could)))
    wrong = tuple((led - may).elements()) or tuple((old - new).elements())
    if wrong:
        return Verdict("wrong", gained, wrong)
    if not template.may:
        return Verdict("wrong" if before != after else "kept", gained)
    share = (led & must).total() / must.total()
    return Verdict("moved" if share >= MOVED_SHARE else "missed", gained)


def _words(text: str) -> Counter[str]:
    return Counter(text.split())
