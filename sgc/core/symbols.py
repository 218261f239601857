"""Handles to SSA values, and names for them that are the same in every run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sgc.ir.types import Type


@dataclass(frozen=True, slots=True)
class Symbol:
    """A value of the program being built: the name of its definition and its type."""

    name: str
    type: Type


class Namer:
    """Gives each value a unique name, the user's if there is one."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def copy(self) -> Namer:
        """A namer that goes on as this one would."""
        found = Namer()
        found._taken, found._counts = set(self._taken), dict(self._counts)
        return found

    def take(self, name: str) -> str:
        """Reserves a name that must not be changed, such as a parameter's."""
        self._taken.add(name)
        return name

    def fresh(self, hint: str) -> str:
        """`hint` if it is free, else with a number; single letters are always numbered."""
        base = re.sub(r"\W", "_", hint) or "v"
        count = self._counts.get(base, 0)
        while True:
            if len(base) == 1:
                name = f"{base}{count}"
            else:
                name = base if count == 0 else f"{base}.{count}"
            count += 1
            if name not in self._taken:
                self._counts[base] = count
                self._taken.add(name)
                return name


def symbol_in(value: Any) -> Symbol | None:
    """The symbol that an abstract value stands for; None for all other values, even for a user's
    object that has an attribute of this name."""
    found = getattr(value, "symbol", None)
    return found if type(found) is Symbol else None


def has_symbol(value: Any) -> bool:
    """Whether a value is abstract, not merely a user's object with an attribute of this name."""
    found = getattr(value, "symbol", value)
    return found is not value and (found is None or type(found) is Symbol)
