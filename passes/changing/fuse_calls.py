"""Fuses calls: the first of several consecutive generations requests the text of all of them.

Providers bill each request with its whole prompt, so `gen, const, gen, …` becomes one request: the
reply continues past the first stop string, and is matched with the text that the program appends
(`backends/speculation.py`, which sends another request if it does not match). The pass only marks
the node; other engines ignore the mark. Generations are consecutive if they are of one stream and
one block, each has a stop string, all have the same sampling parameters, and only constant text and
arguments lie between them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sgc.ir.analysis.dependencies import consumed
from sgc.ir.graph import Block, Graph, Lit, Node, Operand
from sgc.ir.sampling import SAMPLING
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.appended import appended_value, constant_text, is_one_of
from sgc.passes.rewriting import with_blocks, with_nodes

BYTES_A_TOKEN = 2  # of constant text, a lower bound: max_tokens must suffice
ARGUMENT_BYTES = 32  # of an argument, a guess
MAX_AHEAD = 4096
# Fields that may differ between the generations.
_MAY_DIFFER = frozenset({"max_tokens", "stop"})
_BINDING = (
    "regex", "json_schema", "ebnf", "dtype", "stop_regex", "stop_token_ids", "logprobs",
    "min_tokens", "ignore_eos", "heal", "seed", "keep_stop",
)  # fmt: skip


def fuse_calls(graph: Graph) -> Graph:
    given = {param.value.name for param in graph.params}
    return with_blocks(graph, (_fused(block, given) for block in graph.blocks))


def _fused(block: Block, given: set[str]) -> Block:
    """The block with its marks. given: the program's arguments."""
    marked: dict[int, Node] = {}
    for row, n_between in _rows(block, given):
        n_ahead = n_between // BYTES_A_TOKEN + sum(_literal(gen, "max_tokens") for gen in row)
        first = row[0]
        if len(row) > 1 and n_ahead <= MAX_AHEAD and not _literal(first, "ahead"):
            marked[id(first)] = first.with_fields(ahead=Lit(n_ahead))
    return with_nodes(block, (marked.get(id(node), node) for node in block.nodes))


def _rows(block: Block, given: set[str]) -> Iterator[tuple[list[Node], int]]:
    """Consecutive generations, with the bytes of text between them."""
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
    return {row.name: node.get(row.name) for row in SAMPLING if row.name not in _MAY_DIFFER}


def _literal(node: Node, name: str) -> int:
    operand = node.get(name)
    return operand.value if isinstance(operand, Lit) and type(operand.value) is int else 0


PASS = Pass(
    "fuse_calls",
    Preserves.TEXT,
    fuse_calls,
    "generations in a row are asked for at once, where each request is billed",
)
