"""Enumerations of code: their members, and the types that the members count as."""

from __future__ import annotations

import ast
from dataclasses import dataclass

MEMBER = "member "  # begins the name of an enumeration among the kinds of a cell
_BASES = frozenset({"Enum", "IntEnum", "StrEnum"})
_KINDS = {"int": "int", "IntEnum": "int", "str": "str", "StrEnum": "str"}
_NO_NUMBERS = frozenset({"__format__", "__repr__", "__str__"})


@dataclass(frozen=True, slots=True)
class Enumeration:
    """members: the members' values, by name; counts_as: the type whose operators the members have,
    `int` or `str`, unless the class has special methods of its own.
    """

    name: str
    members: dict[str, ast.expr]
    methods: dict[str, ast.FunctionDef]
    counts_as: str

    @property
    def kind(self) -> str:
        return MEMBER + self.name

    @property
    def values(self) -> list[str]:
        """The names of the types of the members' values; none if one value is not a scalar."""
        found = {_name_of(each) for each in self.members.values()}
        return [] if "" in found else sorted(found)


def _name_of(value: ast.expr) -> str:
    try:
        made = ast.literal_eval(value)
    except ValueError:
        return ""
    return "None" if made is None else type(made).__name__ if type(made) in _SCALARS else ""


_SCALARS = (str, int, float, bool)


def enumeration(node: ast.ClassDef) -> Enumeration | None:
    """An enumeration by its class statement; None for another class."""
    bases = [each.id for each in node.bases if isinstance(each, ast.Name)]
    if not bases or bases[-1] not in _BASES:
        return None
    members = {
        target.id: each.value
        for each in node.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    is_own = any(name[:2] == "__" and name not in _NO_NUMBERS for name in methods)
    return Enumeration(node.name, members, methods, "" if is_own else _KINDS.get(bases[0], ""))
