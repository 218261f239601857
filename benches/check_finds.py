"""How many wrong graphs the trace check finds: graphs of the corpus in which one thing was changed.

    python -P benches/check_finds.py [--changes 8] [--every 5] [--rounds-only] [--out FILE.json]

A change is another literal, another value of the same type, a word of a node's code, or the arms of
a test in each other's place; changes that the verifier refuses are drawn anew. Some change nothing
that a run can show, so not all can be found. With --rounds-only, the check does not look for
replies that reach the arms of tests. The share of arms that are reached is told too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import sgc
from sgc.errors import SgcError, TraceError, VerifyError
from sgc.ir.graph import Graph, Lit, Node, Operand, Ref
from sgc.ir.types import Type
from sgc.ir.verify import verify
from sgc.tracing.checking import check
from sgc.tracing.checking.trials import Search
from sgc.tracing.tracer import trace

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"
NAMES = {"name", "orelse", "path", "signature", "source", "target", "targets", "then"}
WORDS = (
    (" == ", " != "), (" < ", " <= "), (" > ", " >= "), (" + 1", " + 2"), (" and ", " or "),
    ("strip()", "lstrip()"), ("lower()", "upper()"), ("[0]", "[-1]"), (" not in ", " in "),
)  # fmt: skip
FUNCTIONS = {"eq": "ne", "lt": "le", "le": "lt", "strip": "lstrip", "lower": "upper", "gt": "ge"}


class _Found(Search):
    """Is kept, to tell what it has reached."""

    last: _Found

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.n_arms = len(self.left)
        _Found.last = self


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"program_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def changed(graph: Graph, seed: str) -> Iterator[Graph]:
    """Graphs with one change each, without end."""
    drawn = random.Random(seed)
    types = {
        value.name: value.type
        for block in graph.blocks
        for value in (*block.params, *(each for node in block.nodes for each in node.results))
    }
    while True:
        number = drawn.randrange(len(graph.blocks))
        block = graph.blocks[number]
        at = drawn.randrange(len(block.nodes))
        node = _changed_node(block.nodes[at], types, drawn)
        if node is None:
            continue
        other = replace(block, nodes=(*block.nodes[:at], node, *block.nodes[at + 1 :]))
        blocks = (*graph.blocks[:number], other, *graph.blocks[number + 1 :])
        found = replace(graph, blocks=blocks)
        try:
            verify(found)
        except (VerifyError, ValueError):
            continue
        yield found


def _changed_node(node: Node, types: dict[str, Type], drawn: random.Random) -> Node | None:
    if node.op == "branch" and drawn.random() < 0.5:
        return node.with_fields(then=node.get("orelse"), orelse=node.get("then"))
    fields = [(key, operand) for key, operand in node.fields if key not in NAMES]
    if not fields:
        return None
    key, operand = drawn.choice(fields)
    made = _changed(key, operand, types, drawn)
    return None if made is None else node.with_fields(**{key: made})


def _changed(
    key: str, operand: Operand, types: dict[str, Type], drawn: random.Random
) -> Operand | None:
    if isinstance(operand, tuple):
        if not operand:
            return None
        at = drawn.randrange(len(operand))
        made = _changed(key, operand[at], types, drawn)
        return None if made is None else (*operand[:at], made, *operand[at + 1 :])
    if isinstance(operand, Ref):
        type_ = types.get(operand.name)
        others = [name for name, other in types.items() if other == type_ and name != operand.name]
        return Ref(drawn.choice(others)) if others else None
    return _changed_literal(key, operand.value, drawn)


def _changed_literal(key: str, value: Any, drawn: random.Random) -> Lit | None:
    if isinstance(value, bool):
        return Lit(not value)
    if isinstance(value, (int, float)):
        return Lit(value + drawn.choice((1, -1)))
    if not isinstance(value, str):
        return None
    if key == "fn":
        return Lit(FUNCTIONS[value]) if value in FUNCTIONS else None
    if key == "code":
        words = [pair for pair in WORDS if pair[0] in value]
        return Lit(value.replace(*drawn.choice(words), 1)) if words else None
    return Lit(value + "x")


def is_found(program: sgc.Function, graph: Graph) -> bool:
    try:
        check.check_trace(program, graph, {})
    except TraceError:
        return True
    return False


def measured(path: Path, n_changes: int) -> dict[str, Any] | None:
    """What is found of one program; None if its graph needs values of arguments."""
    program = loaded(path).program
    try:
        graph = trace(program, is_full=True)
        begun = time.process_time()
        check.check_trace(program, graph, {})
    except SgcError:
        return None
    took = time.process_time() - begun
    reached = _Found.last.n_arms - len(_Found.last.left)
    row = {"program": path.stem, "arms": _Found.last.n_arms, "reached": reached}
    graphs = changed(graph, path.stem)
    found = sum(is_found(program, next(graphs)) for _ in range(n_changes))
    return row | {"changes": n_changes, "found": found, "check_s": round(took, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=8)
    parser.add_argument("--every", type=int, default=5, help="of how many programs one is taken")
    parser.add_argument("--rounds-only", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    check.Search = _Found  # type: ignore[misc]
    if given.rounds_only:
        check.N_ROUNDS, check.N_MORE = check.MAX_ROUNDS, 0
    paths = [path for path in sorted(CORPUS.glob("*/*.py")) if path.stem != "__init__"]
    rows = []
    for path in paths[:: given.every]:
        row = measured(path, given.changes)
        if row is not None:
            print(json.dumps(row), flush=True)
            rows.append(row)
    total = {
        key: round(sum(row[key] for row in rows), 1)
        for key in ("arms", "reached", "changes", "found", "check_s")
    }
    print(json.dumps(total))
    if given.out is not None:
        given.out.write_text(json.dumps({"rows": rows, "total": total}, indent=1) + "\n")


if __name__ == "__main__":
    main()
