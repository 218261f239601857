"""Tools as a caller passes them to a run: the Python function of each name that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sgc.ir.graph import Node

PURE = "pure"
EFFECTS = (PURE, "idempotent", "effect")


@dataclass(frozen=True, slots=True)
class ToolImpl:
    """The Python function of a tool's name. effect: None accepts what the program says."""

    name: str
    signature: str
    call: Callable[..., Any]
    is_async: bool = False
    effect: str | None = None


class ToolSource(Protocol):
    """The tools that a caller allows."""

    def find(self, node: Node) -> ToolImpl | None:
        """The tool that a call names; None if it is not allowed."""
        ...


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """Tools by name."""

    by_name: Mapping[str, ToolImpl]

    def find(self, node: Node) -> ToolImpl | None:
        return self.by_name.get(node.text("name"))
