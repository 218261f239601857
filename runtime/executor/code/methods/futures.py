"""Streams as code has them: their variables, and what their calls have returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sgc.errors import UnknownVariable
from sgc.runtime.executor.code.fuel import charge
from sgc.runtime.executor.code.methods.attributes import DATA, METHODS

Asked = Callable[[], Any]  # gives a value, which is asked for when it is first read


class StreamFuture:
    """What is left of a stream. A list that a join gave is a new one each time; what
    a call has returned is one object."""

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
