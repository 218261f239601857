"""The values of one run by name, the stand-ins for missing values, and the readers that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sgc.errors import CutOff, UnknownVariable
from sgc.ir.graph import Lit, Node, Operand, Ref
from sgc.runtime.executor.interface.failures import Failed


@dataclass(frozen=True, slots=True)
class Unset:
    """The value of a name that was not set on the path that the run took."""

    name: str


def unset_error(value: Unset) -> UnknownVariable:
    return UnknownVariable(
        f"no variable {value.name!r} has been set on the path that the program took",
        hint="set it on every path, or read it only where it is set",
    )


@dataclass(frozen=True, slots=True)
class Lost:
    """The value of a node that belongs to a child that was cut off.

    is_late: it comes from the join itself, so that using it is an error.
    """

    index: int
    where: str
    is_late: bool = False


def lost_error(lost: Lost) -> CutOff:
    return CutOff(
        f"child {lost.index} of a fork was cut off when the join at {lost.where} took others",
        hint="use the lists that the join has gathered; they hold the winners' values alone",
    )


class Values:
    """Values in the order in which they came. finished: the end of the run, or its error."""

    def __init__(self, arguments: Mapping[str, Any], finished: asyncio.Future[Any]) -> None:
        self._values: dict[str, Any] = dict(arguments)
        self._readers: dict[str, list[asyncio.Future[Any]]] = {}
        self._finished = finished

    @property
    def by_name(self) -> Mapping[str, Any]:
        """The values defined so far; a live view."""
        return self._values

    def define(self, name: str, value: Any) -> None:
        """Sets a value, and passes it to its readers."""
        self._values[name] = value
        if self._readers:
            for reader in self._readers.pop(name, ()):
                if not reader.done():
                    reader.set_result(value)

    def operand(self, operand: Operand) -> Any:
        """Returns the value of an operand of a node that is ready."""
        if isinstance(operand, Ref):
            value = self._values[operand.name]
            if type(value) is Unset:
                raise unset_error(value)
            if type(value) is Lost:
                raise lost_error(value)
            if type(value) is Failed:
                raise value.error()
            return value
        if isinstance(operand, Lit):
            return operand.value
        return tuple(map(self.operand, operand))

    def raw(self, name: str) -> Any:
        """Returns a value that is defined, or its stand-in."""
        return self._values[name]

    def raw_field(self, node: Node, name: str) -> Any:
        """Returns the value of a node's field, or its stand-in."""
        operand = node.get(name)
        return self.raw(operand.name) if isinstance(operand, Ref) else self.operand(operand)

    def is_unset(self, name: str) -> bool:
        """Whether a name was not set on the path taken."""
        return type(self._values[name]) is Unset

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Returns the names that have values, in the order in which the values came."""
        wanted = set(names) & self._values.keys()
        return [name for name in self._values if name in wanted] if wanted else []

    def known(self, name: str) -> tuple[Any] | None:
        """Returns a value in a tuple, None if it is not yet defined; any thread may call it."""
        try:
            return (self._values[name],)
        except KeyError:
            return None

    async def value(self, name: str) -> Any:
        """Waits for a value; raises the run's error if it will never come."""
        if name in self._values:
            return self._values[name]
        if self._finished.done():
            self._finished.result()
        reader: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._readers.setdefault(name, []).append(reader)
        return await reader

    def fail(self, error: BaseException) -> None:
        """Raises the run's error in all readers."""
        for readers in self._readers.values():
            for reader in readers:
                if not reader.done():
                    reader.set_exception(error)
        self._readers.clear()
