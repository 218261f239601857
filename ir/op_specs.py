"""What a row of the table of ops says: `OpSpec`, its fields and its flags."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sgc.ir.types import Kind

Default = str | int | float | bool | None | tuple[str, ...]

REQUIRED = object()

TEXTUAL = frozenset({Kind.TEXT, Kind.CHOICE})
NUMERIC = frozenset({Kind.INT, Kind.FLOAT})
ANY_VALUE = frozenset(Kind) - {Kind.STREAM}
PRINTABLE = ANY_VALUE - {Kind.MEDIA, Kind.LIST}
STREAMS = frozenset({Kind.STREAM})
ANYTHING = frozenset(Kind)


class Flag(Enum):
    PURE = "pure"  # no effect; equal operands give equal results
    STOCHASTIC = "stochastic"  # asks a model; deterministic only when greedy or seeded
    APPENDS = "appends text"  # takes a stream state and gives the next one
    HOST = "host"  # runs code of the host that the file only names
    OUTPUT = "output"  # makes something part of the program's result
    HINT = "hint"  # changes nothing but when something is computed, and where it is kept
    TERMINATOR = "terminator"  # ends a block


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of an op.

    kinds: what an operand may be. is_list: the operand is a tuple of such. static: literals
    only. consumes: uses up a stream state. positional: printed without its name.
    """

    name: str
    kinds: frozenset[Kind]
    default: object = REQUIRED
    is_list: bool = False
    static: bool = False
    consumes: bool = False
    positional: bool = False
    unit: str = ""
    doc: str = ""

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True)
class OpSpec:
    """A row. results: kinds of the results in order, None for one of any kind but a stream;
    `variadic`: the last one may repeat.
    """

    name: str
    doc: str
    fields: tuple[FieldSpec, ...]
    results: tuple[Kind | None, ...]
    flags: frozenset[Flag]
    sample: str
    variadic_results: bool = False

    def field(self, name: str) -> FieldSpec:
        for row in self.fields:
            if row.name == name:
                return row
        raise KeyError(f"op {self.name} has no field {name}")
