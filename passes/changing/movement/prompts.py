"""Finds the prompts of a program in which text may move: each stream's, around its first argument.

A prompt is a run of `const` and `append` nodes of one block. All that stands in front of it is
constant, and nothing reads the states within it. Changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sgc.ir.analysis.dependencies import Tree, consumed, prompt_tree
from sgc.ir.graph import Block, Graph, Loc, Node, Ref
from sgc.passes.changing.movement.pieces import SLOT, Kind, Piece, cut

MAX_CHARS = 50_000  # of a prompt's text; longer ones are left alone

_APPENDS = frozenset({"const", "append"})
_READS = frozenset({"text_of", "span", "append_span", "separate_reasoning"})
# What they append is the same in every run, or nothing at all.
_CONSTANT = frozenset({"const", "role_begin", "role_end", "cache", "fork"})
_ENDS_PROMPT = frozenset({"gen", "gen_n", "select", "role_end"})


@dataclass(frozen=True)
class Prompt:
    """nodes: with their places in the block; before: the constant text in front, turns apart.

    frozen: why its text must stay as it is, "" if it may change; is_last: a generation or the end
    of the turn follows directly.
    """

    block: int
    nodes: tuple[Node, ...]
    places: tuple[int, ...]
    before: str
    frozen: str
    is_last: bool

    @cached_property
    def text(self) -> str:
        """Constants, and SLOT for each argument."""
        return "".join(n.text("text") if n.op == "const" else SLOT for n in self.nodes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the program calls the arguments, in order."""
        values = [node.get("value") for node in self.nodes if node.op == "append"]
        return tuple(v.name if isinstance(v, Ref) else "text" for v in values)

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
    """Those with a piece of constant text behind an argument, in order."""
    n_uses = Counter(name for node in graph.nodes() for name in node.refs())
    makers = {value.name: node for node in graph.nodes() for value in node.results}
    may_go_on = any(node.op == "deopt" for node in graph.nodes())
    tree = prompt_tree(graph)
    reads = [node for node in graph.nodes() if node.op in _READS]
    for number, block in enumerate(graph.blocks):
        following = {name: i for i, node in enumerate(block.nodes) for name in consumed(node)}
        seen: set[int] = set()
        for place, node in enumerate(block.nodes):
            if place in seen or node.op not in _APPENDS:
                continue
            places, follower = _run(block, place, following, n_uses)
            seen.update(places)
            nodes = tuple(block.nodes[i] for i in places)
            ops = [each.op for each in nodes]
            start, end = consumed(node)[0], nodes[-1].results[0].name
            front = _front(start, makers) if "append" in ops else None
            if front is None or "const" not in ops[ops.index("append") :]:
                continue
            is_read = any(_reads(tree, each, end) for each in reads)
            frozen = _frozen(nodes, front[1], is_read, may_go_on)
            is_last = follower is not None and follower.op in _ENDS_PROMPT
            found = Prompt(number, nodes, tuple(places), front[0], frozen, is_last)
            if frozen or Kind.TEXT in found.kinds[found.kinds.index(Kind.ARGUMENT) :]:
                yield found


def _front(state: str, makers: dict[str, Node]) -> tuple[str, str] | None:
    """The text in front of a state, and whose turn that is in; None if it differs by run."""
    nodes: list[Node] = []
    while (node := makers.get(state)) is not None and node.op in _CONSTANT:
        nodes.append(node)
        state = consumed(node)[0]
    if node is None or node.op != "stream":
        return None
    turns = [each for each in nodes if each.op in ("role_begin", "role_end")]
    role = turns[0].text("role") if turns and turns[0].op == "role_begin" else ""
    texts = (each.text("text") if each.op == "const" else "\n" for each in reversed(nodes))
    return "".join(texts), role


def _run(
    block: Block, place: int, following: dict[str, int], n_uses: Counter[str]
) -> tuple[list[int], Node | None]:
    """The places of the run that begins at a place, and the node that takes its last state."""
    places = [place]
    while True:
        state = block.nodes[places[-1]].results[0].name
        after = following.get(state)
        if after is None or n_uses[state] > 1:
            return places, None
        if block.nodes[after].op not in _APPENDS:
            return places, block.nodes[after]
        places.append(after)


def _frozen(nodes: tuple[Node, ...], role: str, is_read: bool, may_go_on: bool) -> str:
    if may_go_on:
        return "the program may go on in its source, which asks with the text as it was"
    if is_read:
        return "the program reads this text back"
    if role == "assistant":
        return "it is the beginning of the reply"
    text = "".join(node.text("text") for node in nodes if node.op == "const")
    if len(text) > MAX_CHARS:
        return f"it has over {MAX_CHARS} characters"
    return "it holds the character that stands for an argument" if SLOT in text else ""


def _reads(tree: Tree, node: Node, end: str) -> bool:
    """Whether a node makes a value of text in front of a state."""
    by_name = {name: each.name for name, each in node.fields if isinstance(each, Ref)}
    start, last = by_name.get("start"), by_name.get("end") or by_name["stream"]
    begins_behind = start is not None and tree.is_at_or_above(end, start)
    return tree.is_at_or_above(end, last) and not begins_behind
