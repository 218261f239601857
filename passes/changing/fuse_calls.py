"""Fuses calls: the first of several generations in a row asks for all of them at once.

Where providers bill each request with its whole prompt, `gen, const, gen, …` is one request: the
reply goes on past the first stop string, and what it says is matched with what the program appends
(`backends/speculation.py`, which asks again where it does not match). Only marks the node;
other engines do not look at it. In a row are generations of one stream and one block with a stop
string each, sampled alike, with nothing but constant text and arguments between them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sgc.ir.analysis.dependencies import consumed
from sgc.ir.graph import Block, Graph, Lit, Node, Operand
from sgc.ir.sampling import SAMPLING
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.appended import appended_value, constant_text, is_one_of
from sgc.passes.rewriting import with_blocks, with_nodes

BYTES_A_TOKEN = 2  # of constant text, at the least: what is asked for is a bound, not a wish
ARGUMENT_BYTES = 32  # of an argument, as far as anybody can know
MAX_AHEAD = 4096
# What may differ from one generation to the next.
_OWN = frozenset({"max_tokens", "stop"})
_BINDING = (
    "regex", "json_schema", "ebnf", "dtype", "stop_regex", "stop_token_ids", "logprobs",
    "min_tokens", "ignore_eos", "heal", "seed", "keep_stop",
)  # fmt: skip


def fuse_calls(graph: Graph) -> Graph:
    given = {param.value.name for param in graph.params}
    return with_blocks(graph, (_fused(block, given) for block in graph.blocks))


def _fused(block: Block, given: set[str]) -> Block:
    """given: the program's arguments."""
    marked: dict[int, Node] = {}
    for row, n_between in _rows(block, given):
        n_ahead = n_between // BYTES_A_TOKEN + sum(_literal(gen, "max_tokens") for gen in row)
        first = row[0]
        if len(row) > 1 and n_ahead <= MAX_AHEAD and not _literal(first, "ahead"):
            marked[id(first)] = first.with_fields(ahead=Lit(n_ahead))
    return with_nodes(block, (marked.get(id(node), node) for node in block.nodes))


def _rows(block: Block, given: set[str]) -> Iterator[tuple[list[Node], int]]:
    """Generations in a row, with the bytes of text between them."""
    after = {name: node for node in block.nodes for name in consumed(node)}
    taken: set[int] = set()
    for node in block.nodes:
        if id(node) in taken or not _is_fusible(node):
            continue
        row, n_bytes, n_between = [node], 0, 0
        following = after.get(node.results[0].name)
        while following is not None:
            if (text := constant_text(following)) is not None:
                n_between += len(text.encode("utf-8", "surrogatepass"))
            elif is_one_of(appended_value(following), given):
                n_between += ARGUMENT_BYTES
            elif _is_fusible(following) and _is_alike(node, following):
                row.append(following)
                taken.add(id(following))
                n_bytes, n_between = n_bytes + n_between, 0
            else:
                break
            following = after.get(following.results[0].name)
        yield row, n_bytes


def _is_fusible(node: Node) -> bool:
    if node.op != "gen" or any(name in _BINDING for name, _ in node.fields):
        return False
    stop, n_tokens = node.get("stop"), node.get("max_tokens")
    has_stop = isinstance(stop, tuple) and bool(stop) and all(isinstance(s, Lit) for s in stop)
    return has_stop and isinstance(n_tokens, Lit) and type(n_tokens.value) is int


def _is_alike(one: Node, other: Node) -> bool:
    return _sampled(one) == _sampled(other)


def _sampled(node: Node) -> dict[str, Operand]:
    return {row.name: node.get(row.name) for row in SAMPLING if row.name not in _OWN}


def _literal(node: Node, name: str) -> int:
    operand = node.get(name)
    return operand.value if isinstance(operand, Lit) and type(operand.value) is int else 0


PASS = Pass(
    "fuse_calls",
    Preserves.TEXT,
    fuse_calls,
    "generations in a row are asked for at once, where each request is billed",
)
