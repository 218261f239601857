"""Tools whose results are scripted: for the trace check, which must never call a real one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sgc.ir.graph import Node
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.plain import canonical
from sgc.runtime.executor.tools import ToolImpl


@dataclass(frozen=True, slots=True)
class ScriptedTools:
    """Stands for every tool. What one gives depends on its name, its arguments and the round."""

    number: int
    texts: Sequence[str]

    def find(self, node: Node) -> ToolImpl:
        """Found for any name, so that no run comes to look for the real one."""
        name, type_ = node.text("name"), node.results[0].type

        async def call(*args: Any, **kwargs: Any) -> Any:
            key = f"{self.number}/{name}/{canonical([args, kwargs])}"
            digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
            return self._value(type_, int.from_bytes(digest, "big"))

        return ToolImpl(name, node.text("signature"), call, is_async=True)

    def _value(self, type_: Type, drawn: int) -> Any:
        text = self.texts[drawn % len(self.texts)]
        values: dict[Kind, Any] = {
            Kind.INT: (3, 1, 17)[drawn % 3],
            Kind.FLOAT: (0.5, 0.0, 1.0)[drawn % 3],
            Kind.BOOL: drawn % 2 == 0,
            Kind.LIST: [text, *self.texts[: drawn % 3]],
            Kind.JSON: {"text": text, "number": drawn % 5},
        }
        return values.get(type_.kind, text)
