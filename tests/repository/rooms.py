"""Rooms and imports: the table of docs/architecture.md, and who imports whom."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("sgc", "ir", "passes", "runtime", "kernels", "proto")
_ROW = re.compile(r"^\| `([a-z_/.]+)` \| (.+) \|$", re.M)


@cache
def rooms() -> list[str]:
    """From the top floor down: folders (`ir/text/`) and single files (`ir/verify.py`)."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return [row[1] for row in _ROW.finditer(page)]


@cache
def modules() -> dict[str, Path]:
    """Every module of the product by its import name; generated ones are left out."""
    found = {}
    for top in TOPS:
        for path in (ROOT / top).rglob("*.py"):
            inside = path.relative_to(ROOT)
            is_linked = any(parent.is_symlink() for parent in path.parents)
            if is_linked or path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
                continue
            parts = inside.with_suffix("").parts
            name = ".".join(parts if top == "sgc" else ("sgc", *parts))
            found[name.removesuffix(".__init__")] = path
    return found


@cache
def imports() -> nx.DiGraph:
    """An edge from each module to those that it imports anywhere: inside functions and under
    `TYPE_CHECKING`, too.
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(modules())
    for name, path in modules().items():
        for imported in _imported(path):
            target = _module_of(imported)
            if target not in (None, name, "sgc"):
                graph.add_edge(name, target)
    return graph


def room_of(name: str) -> str | None:
    """The row of the table that a module belongs to: its own, or that of the closest folder."""
    place = modules()[name].relative_to(ROOT).as_posix()
    fitting = [
        room for room in rooms() if room == place or (room[-1] == "/" and place.startswith(room))
    ]
    return max(fitting, key=len, default=None)


@dataclass(frozen=True, slots=True)
class Code:
    """What a file has of imports and of calls by name (`eval`, `torch.load`)."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    called: frozenset[str]


@cache
def code(path: Path) -> Code:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imports = tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return Code(imports, frozenset(_called(node.func) for node in nodes if type(node) is ast.Call))


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return f"{name}.{attribute}"
    return ""


def _imported(path: Path) -> Iterator[str]:
    for node in code(path).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module_of(name: str) -> str | None:
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name or None
