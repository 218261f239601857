"""Finds the prompts of a program in which text may move: each stream's, around its first argument.

A prompt is a run of `const` and `append` nodes of one block. Everything in front of it is constant,
and nothing reads the states within it. This module changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sgc.ir.analysis.dependencies import Tree, consumed, prompt_tree
from sgc.ir.analysis.interpreted import deopts
from sgc.ir.graph import Block, Graph, Loc, Node, Ref
from sgc.ir.op_specs import Flag
from sgc.passes.changing.movement.pieces import SLOT, Kind, Piece, cut
from sgc.passes.facts.appended import appended_value, constant_text

MAX_CHARS = 50_000  # of a prompt's text; longer ones are left alone

_SAME_IN_ALL_RUNS = frozenset({Flag.CONSTANT, Flag.SAME})


@dataclass(frozen=True)
class Prompt:
    """nodes: of one block; before: the constant text in front, with a newline between turns.

    frozen: why its text must stay as it is, "" if it may change; is_last: a generation or the end
    of the turn follows directly.
    """

    nodes: tuple[Node, ...]
    before: str
    frozen: str
    is_last: bool

    @cached_property
    def text(self) -> str:
        """The constant texts, with SLOT for each argument."""
        texts = map(constant_text, self.nodes)
        return "".join(SLOT if text is None else text for text in texts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The arguments' names, in order."""
        values = [value for node in self.nodes if (value := appended_value(node)) is not None]
        return tuple(value.name if isinstance(value, Ref) else "text" for value in values)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return cut(self.text)

    @property
    def kinds(self) -> list[Kind]:
        return [piece.kind for piece in self.pieces]

    @property
    def shown(self) -> list[str]:
        """The text of each piece, arguments as `{name}`."""
        names = iter(self.names)
        return [shown(self.text[piece.start : piece.end], names) for piece in self.pieces]

    @property
    def loc(self) -> Loc | None:
        return self.nodes[0].loc


def shown(text: str, names: Iterable[str]) -> str:
    """A text with its arguments as `{name}`."""
    given = iter(names)
    return "".join(f"{{{next(given)}}}" if each == SLOT else each for each in text)


def prompts(graph: Graph) -> Iterator[Prompt]:
    """The prompts with a piece of constant text after an argument, in order."""
    n_uses = Counter(name for node in graph.nodes() for name in node.refs())
    makers = {value.name: node for node in graph.nodes() for value in node.results}
    tree = prompt_tree(graph)
    reads = [node for node in graph.nodes() if node.op == "text_of" or node.spec.span]
    may_go_on = bool(deopts(graph.nodes()))
    for block in graph.blocks:
        for nodes, follower in _runs(block, n_uses):
            is_argument = [constant_text(node) is None for node in nodes]
            front = _front(consumed(nodes[0])[0], makers) if any(is_argument) else None
            if front is None or all(is_argument[is_argument.index(True) :]):
                continue
            is_read = any(_reads(tree, each, nodes[-1].results[0].name) for each in reads)
            is_last = follower is not None and (
                Flag.ASKS in follower.flags or follower.op == "role_end"
            )
            frozen = _frozen(nodes, front[1], is_read, may_go_on)
            found = Prompt(nodes, front[0], frozen, is_last)
            if frozen or Kind.TEXT in found.kinds[found.kinds.index(Kind.ARGUMENT) :]:
                yield found


def _runs(block: Block, n_uses: Counter[str]) -> Iterator[tuple[tuple[Node, ...], Node | None]]:
    """Runs of constants and arguments, each with the node that takes its last state; None if
    several nodes do, or none.
    """
    following = {name: node for node in block.nodes for name in consumed(node)}
    seen: set[int] = set()
    for first in block.nodes:
        run: list[Node] = []
        follower: Node | None = first
        while follower is not None and _is_text(follower) and id(follower) not in seen:
            run.append(follower)
            seen.add(id(follower))
            state = follower.results[0].name
            follower = following.get(state) if n_uses[state] == 1 else None
        if run:
            yield tuple(run), follower


def _is_text(node: Node) -> bool:
    return constant_text(node) is not None or appended_value(node) is not None


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


def _frozen(nodes: tuple[Node, ...], role: str, is_read: bool, may_go_on: bool) -> str:
    if may_go_on:
        return "the program may go on in its source, which asks with the text as it was"
    if is_read:
        return "the program reads this text back"
    if role == "assistant":
        return "it is the beginning of the reply"
    text = "".join(constant_text(node) or "" for node in nodes)
    if len(text) > MAX_CHARS:
        return f"it has over {MAX_CHARS} characters"
    return "it holds the character that stands for an argument" if SLOT in text else ""


def _reads(tree: Tree, node: Node, end: str) -> bool:
    """Whether a node reads text in front of a state as a value."""
    states = {name: each.name for name, each in node.fields if isinstance(each, Ref)}
    first, last = node.spec.span or ("", "stream")
    begins_behind = first in states and tree.is_at_or_above(end, states[first])
    return tree.is_at_or_above(end, states[last]) and not begins_behind
