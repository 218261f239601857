"""The rules of valid graphs. A graph that passes can be printed, saved, rewritten and run.

The verifier runs in linear time, and reports all breaches at once:

    R1 fields         required fields are present, unknown fields are not; each occurs once, in the
                      order of the op's row; static fields are literals; operands have the kinds
                      of the row, and are lists where the row says so
    R2 results        their number and kinds are those of the row (fork: the trunk and n children)
    R3 names          names of values are unique, and so are those of blocks
    R4 linear-stream  a stream state is consumed at most once on any path
    R5 dominance      the definition of a value dominates its uses
    R6 blocks         there is at least one, and not too many; each ends with its only terminator;
                      the entry block has no parameters
    R7 params         no argument is a stream; defaults have their parameters' types
    R8 keys           record and publish have a key for every item, prefetch a kind for every piece
    R9 span           the end of a span continues its start
    R10 choices       a select has choices, and its result's options include them all
    R11 depth         the nesting of lists of literals and of types is bounded
    R12 flow          a terminator names blocks that exist, with arguments for their parameters
    R13 functions     compute and attempt name a function, with arguments that it takes
    R14 tools         a tool has a known effect, and a key for each named argument; what is shown
                      goes to a known place
    R15 joins         a join takes no more children than there are; each item has an owner;
                      a part whose KV may be joined is its first or a next one
    R16 calls         a map runs an earlier called program, with arguments for all its parameters;
                      called programs keep every rule, hold no programs, and nest within bounds
    R17 code          code is in the subset of `ir/code.py`, with arguments for its parameters

The verifier does not check that a list's items have its item type; that method, role and sampling
values are known to the executor (which reports them at run time); that a stream's name and path are
those of its call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sgc.errors import VerifyError
from sgc.ir.graph import Graph
from sgc.ir.rules import calls as rules_calls
from sgc.ir.rules import flow as rules_flow
from sgc.ir.rules import graph as rules_graph
from sgc.ir.rules import node as rules_node
from sgc.ir.rules.graph import Rule, of_each_node
from sgc.ir.rules.violation import Breach, SourceLine
from sgc.ir.text.literals import shown_name

CALLS = "R16 calls"
RULES: tuple[tuple[str, Rule], ...] = (
    ("R1 fields", of_each_node(rules_node.fields)),
    ("R2 results", of_each_node(rules_node.results)),
    ("R3 names", rules_graph.check_names),
    ("R4 linear-stream", rules_graph.check_linear_streams),
    ("R5 dominance", rules_graph.check_dominance),
    ("R6 blocks", rules_graph.check_blocks),
    ("R7 params", rules_node.check_params),
    ("R8 keys", of_each_node(rules_node.keys, "record", "future", "publish", "prefetch")),
    ("R9 span", rules_graph.check_spans),
    ("R10 choices", of_each_node(rules_node.choices, "select")),
    ("R12 flow", of_each_node(rules_flow.flow)),
    ("R13 functions", of_each_node(rules_flow.functions, "compute", "attempt")),
    ("R14 tools", of_each_node(rules_node.tools)),
    ("R15 joins", of_each_node(rules_node.joins, "join_first", "winner_values", "append_span")),
    (CALLS, of_each_node(rules_calls.maps)),
    ("R17 code", of_each_node(rules_flow.code, "evaluate", "perform")),
)
SIZE_RULES: tuple[tuple[str, Rule], ...] = (
    ("R6 blocks", rules_graph.check_count),
    ("R11 depth", rules_node.check_depth),
)


def verify(graph: Graph, source_line: SourceLine | None = None) -> None:
    """Raises one VerifyError that lists every breach; does nothing if there is none.

    source_line: returns the text of a user's line, to be shown with a breach.
    """
    breaches = find_breaches(graph)
    if breaches:
        raise VerifyError("\n".join(breach.render(source_line) for breach in breaches))


def find_breaches(graph: Graph) -> list[Breach]:
    """Every breach, by rule and then in the order of the graph."""
    return list(iter_breaches(graph))


def iter_breaches(graph: Graph) -> Iterator[Breach]:
    """Every breach, computed lazily, for callers that need only some."""
    yield from _breaches(graph, graph.called)
    for number, each in enumerate(graph.called):
        for breach in _breaches(each, graph.called[:number]):
            yield replace(breach, message=f"in @{shown_name(each.name)}: {breach.message}")
    yield from rules_calls.check_called(CALLS, graph)


def _breaches(graph: Graph, called: tuple[Graph, ...]) -> Iterator[Breach]:
    """The breaches of one program. called: the programs that it may run."""
    # The other rules recurse into operands and types, and compare blocks: sizes are checked first.
    is_large = False
    for breach in _run(graph, SIZE_RULES, called):
        is_large = True
        yield breach
    if not is_large:
        yield from _run(graph, RULES, called)


def _run(
    graph: Graph, rules: tuple[tuple[str, Rule], ...], called: tuple[Graph, ...]
) -> Iterator[Breach]:
    context = rules_graph.Context(graph, called)
    for rule, check in rules:
        yield from check(rule, context)
