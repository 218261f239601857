"""Builds the prompt tree of an expected run: walks the blocks, with a few turns of each loop.

Two streams that begin with equal text share a path of the tree. At a branch, the walk takes the arm
taken least so far, so a second walk takes the other arm; the walks are deterministic. Of
generations and arguments, only the size is estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import cached_property

from sgc.ir.analysis.dependencies import consumed, jump_args, jump_target, successors
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref, operand_refs
from sgc.ir.op_specs import Flag
from sgc.passes.hints.caching.rules import CacheRules, Expected
from sgc.passes.hints.caching.tree import ROOT, PromptTree
from sgc.passes.rewriting import reached

TURNS = 4  # of a loop
MAX_NODES = 50_000  # of a walk
MAX_BLOCKS = 300  # of a program; in larger ones loops are not detected
# Guesses, in tokens.
MEDIA, VALUE, GENERATED = 1000, 256, 128
MAPPED = 8  # items of a list
# A mark within a message splits its text, which is worth it only for this many tokens. Otherwise
# the mark goes at the end of the message before.
LEAST_CUT = 64

_CLASS = ("json_schema", "regex", "ebnf", "dtype", "choices", "among")


class Walk:
    """One run. tree: the tree of its prompts; mapped: the `map` nodes that it passed."""

    def __init__(
        self, graph: Graph, rules: CacheRules, expected: Expected, taken: Counter[str]
    ) -> None:
        """taken: how often earlier walks passed each block; this walk adds its own counts."""
        self._graph, self._rules, self._expected, self._taken = graph, rules, expected, taken
        self._blocks = {block.name: block for block in graph.blocks}
        self._place: dict[str, int] = {}  # the places of stream states
        self._begin: dict[int, float] = {}  # tokens before the message of a place
        equal = expected.equal
        if expected.rows == 1:
            equal = frozenset(param.value.name for param in graph.params)
        self._is_equal = dict.fromkeys(equal, True)  # whether values are the same in all rows
        self._turn: Counter[str] = Counter()
        self.tree = PromptTree()
        self.mapped: list[Node] = []

    def run(self) -> Walk:
        block: Block | None = self._graph.blocks[0]
        n_nodes = 0
        while block is not None and n_nodes < MAX_NODES:
            self._turn[block.name] += 1
            self._taken[block.name] += 1
            n_nodes += len(block.nodes)
            for node in block.nodes:
                self._take(node)
            block = self._following(block)
        return self

    def is_equal(self, operand: Operand) -> bool:
        """Whether an operand is the same in all rows."""
        return all(self._is_equal.get(name, False) for name in operand_refs(operand))

    # -- nodes --

    def _take(self, node: Node) -> None:
        if Flag.CALLS in node.flags:
            self.mapped.append(node)
        if node.is_terminator:
            return
        parents = consumed(node)
        states = [value.name for value in node.results if value.type.is_stream]
        if parents and states:
            before = self._place.get(parents[0], ROOT)
            after = self._after(node, before)
            for name in states:
                self._place[name] = after
            if after != before and self._may_mark(node, before, after):
                self.tree.places[after].states.append(states[0])
        for name in states:
            self._place.setdefault(name, ROOT)
        if not states and Flag.PURE in node.flags:
            known = all(self.is_equal(operand) for _, operand in node.fields)
            self._is_equal |= {value.name: known for value in node.results}

    def _may_mark(self, node: Node, before: int, after: int) -> bool:
        tokens = self.tree.places[after].tokens
        begin = tokens if node.op == "role_begin" else self._begin.get(before, 0.0)
        self._begin[after] = begin
        return node.op == "role_end" or tokens - begin >= LEAST_CUT

    def _after(self, node: Node, place: int) -> int:
        child_after, flags = self.tree.child_after, node.flags
        if Flag.SAME in flags:
            return place
        if Flag.ASKS in flags:
            self.tree.places[place].asked[_class_of(node)] += self._n_requests(node)
            return child_after(place, self._own(node), self._n_generated(node), is_equal=False)
        if Flag.MEDIA in flags:
            return self._value(place, node.get("value"), MEDIA)
        if Flag.ROLE in flags:
            return child_after(place, (node.op, node.text("role")), 0)
        match node.op:
            case "const":
                return self._value(place, node.get("text"), 0)
            case "append":
                return self._value(place, node.get("value"), self._n_tokens(node.get("value")))
            case _:
                return child_after(place, self._own(node), VALUE, is_equal=False)

    def _n_requests(self, node: Node) -> int:
        n = None if self._rules.n_in_one else dict(node.fields).get("n")
        return n.value if isinstance(n, Lit) and type(n.value) is int else 1

    def _value(self, place: int, operand: Operand, tokens: float) -> int:
        if isinstance(operand, Lit):
            text = str(operand.value)
            return self.tree.child_after(
                place, ("text", text), len(text) / self._rules.chars_per_token
            )
        names = tuple((name, self._instance(name)) for name in operand_refs(operand))
        return self.tree.child_after(place, ("value", names), tokens, self.is_equal(operand))

    def _n_tokens(self, operand: Operand) -> int:
        names = operand_refs(operand)
        return self._expected.tokens.get(names[0], VALUE) if len(names) == 1 else VALUE

    def _n_generated(self, node: Node) -> int:
        limit = dict(node.fields).get("max_tokens")
        is_known = isinstance(limit, Lit) and type(limit.value) is int
        return int(limit.value) if is_known else GENERATED  # type: ignore[union-attr,arg-type]

    def _own(self, node: Node) -> Hashable:
        """The key of a text that only this node appends, in this turn of its loop."""
        name = node.results[0].name
        return "own", name, self._instance(name)

    def _instance(self, name: str) -> int:
        """The turn of the loop in which a value was made; 0 for an argument."""
        block = self._defined_in.get(name)
        return 0 if block is None else self._turn[block]

    @cached_property
    def _defined_in(self) -> dict[str, str]:
        found = {v.name: block.name for block in self._graph.blocks for v in block.params}
        for block in self._graph.blocks:
            found |= {v.name: block.name for node in block.nodes for v in node.results}
        return found

    # -- blocks --

    def _following(self, block: Block) -> Block | None:
        end = block.nodes[-1]
        if (name := jump_target(end)) is not None:
            return self._jump(end, self._blocks[name])
        targets = successors(end)
        return self._blocks[min(targets, key=lambda t: self._rank(block, t))] if targets else None

    def _jump(self, node: Node, target: Block) -> Block | None:
        if self._turn[target.name] > 2 * TURNS:
            return None
        for param, arg in zip(target.params, jump_args(node), strict=True):
            if isinstance(arg, Ref) and arg.name in self._place:
                self._place[param.name] = self._place[arg.name]
            self._is_equal[param.name] = self.is_equal(arg)
        return target

    def _rank(self, block: Block, target: str) -> tuple[bool, bool, int]:
        """Sorts arms: first arms that stay in a loop, up to TURNS; then the arms taken least."""
        fails = _fails(self._blocks[target].nodes[-1])
        goes_round = block.name in self._reach(target) and self._turn[block.name] < TURNS
        return fails, not goes_round, self._taken[target]

    def _reach(self, name: str) -> set[str]:
        """The blocks reachable from a block, itself included."""
        return reached([name], self._after_block) if len(self._blocks) <= MAX_BLOCKS else set()

    @cached_property
    def _after_block(self) -> dict[str, tuple[str, ...]]:
        return {name: successors(block.nodes[-1]) for name, block in self._blocks.items()}


def _fails(last: Node) -> bool:
    """Whether the run ends at a terminator without a result."""
    return not successors(last) and Flag.OUTPUT not in last.flags


def _class_of(node: Node) -> Hashable:
    """The other fields that must be equal for requests to share a cache entry: the constraints."""
    held = {name: operand for name, operand in node.fields if name in _CLASS}
    return repr(sorted(held.items()))
