"""Assumed results of tools, which a dry run never calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sgc.errors import RunLogError
from sgc.ir.graph import Node
from sgc.ir.types import Kind, Type
from sgc.predict.dry.samples import Samples
from sgc.runtime.executor.interface.failures import Failed, MadeUp
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.interface.plain import canonical, checked
from sgc.runtime.executor.interface.tools import ToolImpl

_EMPTY: dict[Kind, Any] = {
    Kind.INT: 1, Kind.FLOAT: 1.0, Kind.BOOL: True, Kind.LIST: [], Kind.JSON: {},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AssumedTools:
    """Replaces every tool of one row: a `ToolSource`. It returns the log's result for equal
    arguments, else that of another call of the tool, else its `on_error`, else some value of its
    type. text: the value for texts.
    """

    row: str
    samples: Samples | None
    text: str

    def find(self, node: Node) -> ToolImpl:
        name, type_ = node.text("name"), node.results[0].type
        on_error = node.get("on_error")

        async def call(*args: Any, **kwargs: Any) -> Any:
            found = self._logged(name, canonical([args, kwargs]))
            if found is not None:
                return self._given(name, found, type_)
            given = getattr(on_error, "value", None)
            if isinstance(given, str):
                return json.loads(given)
            return _EMPTY.get(type_.kind, self.text)

        return ToolImpl(name, node.text("signature"), call, is_async=True)

    def _logged(self, name: str, arguments: str) -> Json | None:
        calls = self.samples.results(self.row, name) if self.samples is not None else ()
        same = [each for each in calls if canonical(each["args"]) == arguments]
        return next(iter(same or calls), None)

    def _given(self, name: str, found: Json, type_: Type) -> Any:
        try:
            if "failed" in found:
                failed = Failed.decoded(name, found["failed"], "")
            else:
                return checked(found["value"], type_)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise RunLogError(f"what the tool {name!r} gave is malformed: {error}") from error
        raise MadeUp(failed)
