"""Finds the prompts of a program in which text may move: each stream's, around its first argument.

A prompt is a run of `const` and `append` nodes of one block. Everything in front of it is constant,
and nothing reads the states within it. This module changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sgc.ir.analysis.dependencies import Tree, consumed, prompt_tree
from sgc.ir.analysis.interpreted import deopts
from sgc.ir.graph import Graph, Node, Ref
from sgc.ir.op_specs import Flag
from sgc.passes.changing.movement.pieces import SLOT, Kind, Piece, cut
from sgc.passes.facts.appended import appended_value, constant_text
from sgc.passes.facts.text_runs import Run, text_runs

MAX_CHARS = 50_000  # of a prompt's text; longer ones are left alone

_SAME_IN_ALL_RUNS = frozenset({Flag.CONSTANT, Flag.SAME})


@dataclass(frozen=True)
class Prompt:
    """text: the prompt's text, with SLOT for each argument; names: the arguments' names; before:
    the constant text in front, with a newline between turns; frozen: why the text must stay as it
    is, empty if it may change; is_last: whether a generation or the end of the turn follows.
    """

    nodes: Run
    text: str
    names: tuple[str, ...]
    before: str
    frozen: str
    is_last: bool

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return cut(self.text)

    @property
    def kinds(self) -> list[Kind]:
        return [piece.kind for piece in self.pieces]

    def shown_pieces(self) -> list[str]:
        """The text of each piece, arguments as `{name}`."""
        names = iter(self.names)
        return [_named(piece.text, names) for piece in self.pieces]

    def shown(self, order: Sequence[int] | None = None) -> str:
        """The text, or its pieces in another order, with arguments as `{name}`."""
        text = self.text if order is None else self.reordered(order)
        return _named(text, iter(self.names))

    def reordered(self, order: Sequence[int]) -> str:
        """The text with its pieces in another order; white space at its start and end stays."""
        pieces = self.pieces
        parts = [self.text.removesuffix(self.text.lstrip()), pieces[order[0]].text]
        for left, right in pairwise(order):
            parts += [self._gap(left, right), pieces[right].text]
        return "".join([*parts, pieces[-1].gap])

    def _gap(self, left: int, right: int) -> str:
        """Former neighbours keep their white space; others get the widest that was beside them."""
        if right == left + 1:
            return self.pieces[left].gap
        # For a piece that moved to the front, also the gap before it.
        beside = [left, right - 1, *([left - 1] if left > right else [])]
        gaps = [self.pieces[i].gap for i in beside if 0 <= i < len(self.pieces) - 1]
        return max(gaps, key=lambda gap: (gap.count("\n"), len(gap)), default="") or "\n"


def _named(text: str, names: Iterator[str]) -> str:
    return "".join(f"{{{next(names, '')}}}" if each == SLOT else each for each in text)


def prompts(graph: Graph) -> Iterator[Prompt]:
    """The prompts with a piece of constant text after an argument, in order."""
    n_uses = Counter(name for node in graph.nodes() for name in node.refs())
    makers = {value.name: node for node in graph.nodes() for value in node.results}
    tree = prompt_tree(graph)
    reads = [node for node in graph.nodes() if node.op == "text_of" or node.spec.span]
    may_go_on = bool(deopts(graph.nodes()))
    for nodes, follower in (run for block in graph.blocks for run in text_runs(block, n_uses)):
        texts = [constant_text(node) for node in nodes]
        front = _front(consumed(nodes[0])[0], makers) if None in texts else None
        if front is None or not any(texts[texts.index(None) :]):
            continue
        is_read = any(_reads(tree, each, nodes[-1].results[0].name) for each in reads)
        frozen = _frozen("".join(filter(None, texts)), front[1], is_read, may_go_on)
        operands = filter(None, map(appended_value, nodes))
        found = Prompt(
            nodes,
            "".join(SLOT if text is None else text for text in texts),
            tuple(each.name if isinstance(each, Ref) else "text" for each in operands),
            front[0],
            frozen,
            follower is not None and (Flag.ASKS in follower.flags or follower.op == "role_end"),
        )
        if frozen or Kind.TEXT in found.kinds[found.kinds.index(Kind.ARGUMENT) :]:
            yield found


def _frozen(text: str, role: str, is_read: bool, may_go_on: bool) -> str:
    reasons = {
        "the program may continue in the interpreter, which uses the original text": may_go_on,
        "the program reads this text back": is_read,
        "it is the beginning of the reply": role == "assistant",
        f"it has over {MAX_CHARS} characters": len(text) > MAX_CHARS,
        "it holds the character that stands for an argument": SLOT in text,
    }
    return next((reason for reason, is_so in reasons.items() if is_so), "")


def _front(state: str, makers: dict[str, Node]) -> tuple[str, str] | None:
    """The text in front of a state, and the role of its turn; None if it differs between runs."""
    nodes: list[Node] = []
    while (node := makers.get(state)) is not None and node.flags & _SAME_IN_ALL_RUNS:
        nodes.append(node)
        state = consumed(node)[0]
    if node is None or Flag.EMPTY not in node.flags:
        return None
    turn = next((each for each in nodes if Flag.ROLE in each.flags), node)
    role = turn.text("role") if turn.op == "role_begin" else ""
    texts = (constant_text(each) for each in reversed(nodes))
    return "".join("\n" if text is None else text for text in texts), role


def _reads(tree: Tree, node: Node, end: str) -> bool:
    """Whether a node reads text in front of a state as a value."""
    states = {name: each.name for name, each in node.fields if isinstance(each, Ref)}
    first, last = node.spec.span or ("", "stream")
    begins_behind = first in states and tree.is_at_or_above(end, states[first])
    return tree.is_at_or_above(end, states[last]) and not begins_behind
