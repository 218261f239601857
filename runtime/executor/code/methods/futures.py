"""Streams as code sees them: their variables, and the return values of their calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sgc.errors import UnknownVariable
from sgc.runtime.executor.code.fuel import charge
from sgc.runtime.executor.code.methods.attributes import DATA, METHODS

Asked = Callable[[], Any]  # returns a value, which is requested when it is first read


class StreamFuture:
    """An ended stream: its variables and its call's return value. A list made by a join is a new
    list at each read; the return value is always the same object."""

    __slots__ = ("_parts", "_returned", "_value")

    def __init__(self, parts: Mapping[str, Asked], returned: Asked | None) -> None:
        self._parts, self._returned, self._value = parts, returned, None

    def __getitem__(self, name: Any) -> Any:
        charge(1)
        if type(name) is not str or name not in self._parts:
            raise UnknownVariable.among(name, list(self._parts), "")
        return self._parts[name]()

    @property
    def ret_value(self) -> Any:
        if self._returned is not None:
            self._value, self._returned = self._returned(), None
        return self._value


DATA[StreamFuture] = frozenset({"ret_value"})
METHODS[StreamFuture] = {"get_var": StreamFuture.__getitem__}
