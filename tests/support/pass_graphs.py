"""Makes random programs richer, so that more passes change them: bounds, patterns, stops, long
texts and detours.

The texts of random programs are short and plain, so passes for long prompts and constrained
generations would do nothing. Here some nodes get long texts and constraints. The tracer makes no
redundant blocks, tests and parameters either, but other passes do, and files may have them.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sgc.ir import types
from sgc.ir.analysis.dependencies import jump_args, successors
from sgc.ir.graph import Block, Graph, Lit, Node, Ref, Value, make_node
from sgc.ir.types import Kind
from sgc.passes.rewriting import renamed

RULES = "Be brief. Say what you know, and no more than that. " * 30
# Most scripted replies match this pattern, whose matches are shorter than the bound.
PATTERN, BOUND = r"[^\x00]{0,80}", 600


def enriched(graph: Graph, seed: int) -> Graph:
    """The same program with richer nodes, in called programs too."""
    rng = Random(f"enriched {seed}")
    return replace(
        _enriched(graph, rng), called=tuple(_enriched(each, rng) for each in graph.called)
    )


def _enriched(graph: Graph, rng: Random) -> Graph:
    style = rng.choice(("stops", "patterns", "long"))
    blocks = tuple(
        replace(block, nodes=tuple(_richer(node, style, rng) for node in block.nodes))
        for block in graph.blocks
    )
    return replace(graph, blocks=blocks)


def _richer(node: Node, style: str, rng: Random) -> Node:
    given = dict(node.fields)
    if style == "long" and node.op == "const" and rng.random() < 0.5:
        return node.with_fields(text=Lit(RULES + node.text("text")))
    if node.op != "gen" or given.keys() & {"stop", "regex", "dtype", "json_schema", "ebnf"}:
        return node
    if style == "stops":
        return node.with_fields(stop=(Lit("\n"),), max_tokens=Lit(40), temperature=Lit(0.0))
    if style == "patterns" and not given.keys() & {"stop_regex", "logprobs"}:
        return node.with_fields(regex=Lit(PATTERN), max_tokens=Lit(BOUND))
    return node


# -- detours --


def roundabout(graph: Graph, seed: int) -> Graph:
    """The same program with blocks cut in two, redundant tests, and block parameters that stand for
    the program's arguments.
    """
    rng = Random(f"roundabout {seed}")
    for number in range(rng.randrange(1, 4)):
        graph = _cut(graph, f"cut_{number}", rng)
    graph = _tested(graph, rng)
    for number in range(rng.randrange(1, 4)):
        graph = _handed_on(graph, f"given_{number}", rng)
    return graph


def _cut(graph: Graph, name: str, rng: Random) -> Graph:
    block = rng.choice(graph.blocks)
    at = rng.randrange(len(block.nodes))
    jump = make_node("jump", target=Lit(name))
    first = replace(block, nodes=(*block.nodes[:at], jump))
    return _with(graph, block, first, Block(name, (), block.nodes[at:]))


def _tested(graph: Graph, rng: Random) -> Graph:
    """Replaces a jump by a test, of a literal or a comparison of two, with two equal arms."""
    jumping = [block for block in graph.blocks if _is_plain_jump(block.nodes[-1])]
    block = rng.choice(jumping)
    arms = [Block(name, (), block.nodes[-1:]) for name in ("arm_yes", "arm_no")]
    compared = rng.random() < 0.5
    test = Value("tested", types.BOOL)
    args = (Lit("a"), Lit(rng.choice("ab")))
    nodes = (make_node("compute", (test,), fn=Lit("eq"), args=args),) if compared else ()
    branch = make_node(
        "branch",
        test=Ref(test.name) if compared else Lit(rng.random() < 0.5),
        then=Lit("arm_yes"),
        orelse=Lit("arm_no"),
    )
    return _with(graph, block, replace(block, nodes=(*block.nodes[:-1], *nodes, branch)), *arms)


def _handed_on(graph: Graph, name: str, rng: Random) -> Graph:
    """Makes a block take an argument of the program as a parameter, which it then uses."""
    others = {n for b in graph.blocks if b.nodes[-1].op != "jump" for n in successors(b.nodes[-1])}
    free = [block for block in graph.blocks[1:] if block.name not in others]
    texts = [param.value for param in graph.params if param.value.type.kind is Kind.TEXT]
    if not free or not texts:
        return graph
    block, text = rng.choice(free), rng.choice(texts)
    made = []
    for each in graph.blocks:
        nodes = list(each.nodes)
        if each.name == block.name:
            nodes = [renamed(node, {text.name: Ref(name)}) for node in nodes]
        last = nodes[-1]
        if last.op == "jump" and last.text("target") == block.name:
            nodes[-1] = last.with_fields(args=(*jump_args(last), Ref(text.name)))
        params = each.params
        if each.name == block.name:
            params = (*params, Value(name, text.type))
        made.append(Block(each.name, params, tuple(nodes)))
    return replace(graph, blocks=tuple(made))


def _is_plain_jump(node: Node) -> bool:
    return node.op == "jump" and {key for key, _ in node.fields} <= {"target", "args"}


def _with(graph: Graph, block: Block, *instead: Block) -> Graph:
    at = graph.blocks.index(block)
    return replace(graph, blocks=(*graph.blocks[:at], *instead, *graph.blocks[at + 1 :]))
