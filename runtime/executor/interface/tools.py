"""Tools as a caller hands them to a run: the Python that a name stands for, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sgc.ir.graph import Node

PURE = "pure"
EFFECTS = (PURE, "idempotent", "effect")


@dataclass(frozen=True, slots=True)
class ToolImpl:
    """The Python that a tool's name stands for. effect: None is whatever the program says."""

    name: str
    signature: str
    call: Callable[..., Any]
    is_async: bool = False
    effect: str | None = None


class ToolSource(Protocol):
    """The tools that a caller allows."""

    def find(self, node: Node) -> ToolImpl | None:
        """The tool that a call's name stands for; None if it is not allowed."""
        ...


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """Tools by name."""

    by_name: Mapping[str, ToolImpl]

    def find(self, node: Node) -> ToolImpl | None:
        return self.by_name.get(node.text("name"))
