"""Places cache marks, which tell a provider which prefixes of prompts to cache.

The pass plans over the tree of prompts that a run, or many rows, will send: fork trunks, the turns
of a chat, equal beginnings of several streams, calls, rows. Each mark must save more than its write
costs (`caching/tree.py`); a prompt that is sent once gets no mark. The pass only inserts `cache`
nodes; other engines ignore them. Existing marks are replaced.

The pass does not see a common prefix of two different constants, since a mark stands between nodes.
The rules depend on the model, so the pass is in no level: `for_rules` makes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sgc.ir.analysis.dependencies import consumed, definitions
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref, Value, make_node
from sgc.ir.op_specs import Flag
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.calls import arguments_of, program_of
from sgc.passes.hints.caching.rules import CacheRules, Expected
from sgc.passes.hints.caching.tree import best_marks
from sgc.passes.hints.caching.walk import MAPPED, Walk
from sgc.passes.rewriting import closed, operand, renamed, with_blocks, with_nodes

NAME = "place_caches"
MAX_WALKS = 4  # through a program's branches


def for_rules(rules: CacheRules, expected: Expected | None = None) -> Pass:
    """The pass for a model's rules. expected: the expected runs."""

    def run(graph: Graph) -> Graph:
        return place_caches(graph, rules, expected or Expected())

    doc = "providers are told which beginnings of prompts to keep"
    return Pass(NAME, Preserves.REQUESTS, run, doc, whole=True)


def place_caches(graph: Graph, rules: CacheRules, expected: Expected) -> Graph:
    """The program and the programs it calls, with marks where they pay."""
    bare = replace(_without_marks(graph), called=tuple(map(_without_marks, graph.called)))
    called = dict(enumerate(bare.called))
    marked = _placed(bare, rules, expected, called)
    made = replace(marked, called=tuple(called[i] for i in range(len(called))))
    is_same = made.blocks == graph.blocks and all(
        new.blocks == old.blocks for new, old in zip(made.called, graph.called, strict=True)
    )
    return graph if is_same else made


def _placed(graph: Graph, rules: CacheRules, expected: Expected, called: dict[int, Graph]) -> Graph:
    """The program with its marks; replaces called programs in `called` by marked ones."""
    chosen: set[str] = set()
    maps: dict[int, Expected] = {}
    taken: Counter[str] = Counter()
    for _ in range(MAX_WALKS):
        walk = Walk(graph, rules, expected, taken).run()
        for number in best_marks(walk.tree, rules, expected.rows):
            chosen.update(walk.tree.places[number].states)
        for node in walk.mapped:
            number, calls = _calls(node, graph, walk, expected, called)
            maps.setdefault(number, calls)
        if all(taken[block.name] for block in graph.blocks):
            break
    for number, calls in maps.items():
        called[number] = _placed(called[number], rules, calls, called)
    return _with_marks(graph, chosen, rules)


def _calls(
    node: Node, graph: Graph, walk: Walk, expected: Expected, called: dict[int, Graph]
) -> tuple[int, Expected]:
    """The program that a map calls, and its expected runs: a row per item."""
    program, fixed, items = program_of(node), arguments_of(node), node.get("items")
    source = items.name if isinstance(items, Ref) else ""
    n_items = max(expected.lengths.get(source, MAPPED), 1)
    all_equal = all(walk.is_equal(arg) for arg in fixed.values())
    tokens = {
        key: expected.tokens[arg.name]
        for key, arg in fixed.items()
        if isinstance(arg, Ref) and arg.name in expected.tokens
    }
    params = (param.value.name for param in called[program].params)
    item = next((name for name in params if name not in fixed), "")
    if source in expected.tokens:
        tokens[item] = expected.tokens[source]
    rows = n_items * (expected.rows if all_equal else 1)
    return program, Expected(rows, frozenset(fixed), tokens)


# -- marks in and out --


def _with_marks(graph: Graph, chosen: set[str], rules: CacheRules) -> Graph:
    """Adds a `cache` after each chosen state; for implicit rules, also at each beginning."""
    if rules.is_implicit:
        chosen = chosen | {n.results[0].name for n in graph.nodes() if Flag.EMPTY in n.flags}
    if not chosen:
        return graph
    used = set(definitions(graph))
    kept = {name: _fresh(f"{name}_kept", used) for name in sorted(chosen)}
    blocks = (with_nodes(block, _marked(block, kept, rules.ttl)) for block in graph.blocks)
    return with_blocks(graph, blocks)


def _fresh(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    used.add(name)
    return name


def _marked(block: Block, kept: dict[str, str], ttl: str) -> Iterator[Node]:
    states = {name: Ref(mark) for name, mark in kept.items()}
    for node in block.nodes:
        yield _going_on(node, states)
        for value in node.results:
            if value.name in kept:
                result = Value(kept[value.name], value.type)
                ttls = {"ttl": Lit(ttl)} if ttl else {}
                yield make_node("cache", (result,), node.loc, stream=Ref(value.name), **ttls)


def _without_marks(graph: Graph) -> Graph:
    """The program without its `cache` nodes."""
    marks = [node for node in graph.nodes() if node.op == "cache"]
    before = closed({node.results[0].name: node.get("stream") for node in marks})
    blocks = (
        with_nodes(b, (renamed(n, before) for n in b.nodes if n.op != "cache"))
        for b in graph.blocks
    )
    return with_blocks(graph, blocks)


def _going_on(node: Node, names: Mapping[str, Operand]) -> Node:
    """Renames the states that a node consumes; operands that only read a state stay."""
    if not any(name in names for name in consumed(node)):
        return node
    consuming = node.spec.consuming
    return replace(
        node,
        fields=tuple(
            (key, operand(op, names) if key in consuming else op) for key, op in node.fields
        ),
    )
