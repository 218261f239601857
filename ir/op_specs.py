"""The row of the table of ops: `OpSpec`, its fields and its flags."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from sgc.ir.types import Kind

Default = str | int | float | bool | None | tuple[str, ...]

REQUIRED = object()

TEXTUAL = frozenset({Kind.TEXT, Kind.CHOICE})
NUMERIC = frozenset({Kind.INT, Kind.FLOAT})
ANY_VALUE = frozenset(Kind) - {Kind.STREAM, Kind.LIVE}
ANY_OBJECT = ANY_VALUE | {Kind.LIVE}
PRINTABLE = ANY_VALUE - {Kind.MEDIA, Kind.LIST}
STREAMS = frozenset({Kind.STREAM})
ANYTHING = frozenset(Kind)


class Flag(StrEnum):
    """A property of an op. `docs/ops.md` shows each with its doc."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Flag:
        flag = str.__new__(cls, value)
        flag._value_, flag.doc = value, doc
        return flag

    PURE = "pure", "no effect; equal operands give equal results"
    STOCHASTIC = "stochastic", "asks a model; deterministic only when greedy or seeded"
    APPENDS = "appends text", "takes a stream state and gives the next one"
    HOST = "host", "runs code of the host that the file only names"
    LOGGED = "logged", "a log keeps what it gave, and counts it"
    OUTPUT = "output", "makes something part of the program's result"
    HINT = "hint", "changes nothing but when something is computed, and where it is kept"
    TERMINATOR = "terminator", "ends a block"
    ASKS = "asks", "asks a model with the prompt so far, and appends the reply"
    GENERATES = "generates", "asks for text, with the sampling parameters"
    CONSTANT = "constant text", "appends a text that is the same in every run"
    ROLE = "role", "appends marks of the chat template"
    MEDIA = "media", "appends an image or a video, which may be in a file"
    SAME = "same prompt", "the states it gives have the prompt of the one it takes"
    EMPTY = "empty prompt", "its stream begins with nothing in its prompt"
    BEGINS = "begins streams", "its streams are numbered in the order of such ops"
    CALLS = "calls", "runs called programs"
    CUTS = "cuts", "decides which streams are cut off, or cuts one off"
    TIMED = "timed", "what it gives depends on which streams end first"
    TAKES_LOST = "takes what is lost", "may be given values of a stream that was cut off"
    LIVE = "live objects", "reads or changes objects of the run, in the program's order"
    UNSURE = "unsure", "gives what may not be there; using it then fails"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of an op.

    kinds: the kinds that an operand may have. is_list: the operand is a tuple of them. static: only
    literals. consumes: it consumes a stream state. positional: printed without its name. is_label:
    it affects neither requests nor values.
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
    is_label: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class OpSpec:
    """A row of the table of ops.

    results: the kinds of the results in order, None for any kind but a stream; variadic_results:
    the last one may repeat. span: the fields with the first and last state of a part of a stream.
    """

    name: str
    doc: str
    fields: tuple[FieldSpec, ...]
    results: tuple[Kind | None, ...]
    flags: frozenset[Flag]
    sample: str
    variadic_results: bool = False
    span: tuple[str, str] | None = None

    # Cached, since passes read them of every node, many times.
    @cached_property
    def by_name(self) -> dict[str, FieldSpec]:
        return {row.name: row for row in self.fields}

    @cached_property
    def places(self) -> dict[str, int]:
        """The places of the fields in the row."""
        return {row.name: place for place, row in enumerate(self.fields)}

    @cached_property
    def consuming(self) -> frozenset[str]:
        """The fields that consume stream states."""
        return frozenset(row.name for row in self.fields if row.consumes)

    @cached_property
    def labels(self) -> frozenset[str]:
        return frozenset(row.name for row in self.fields if row.is_label)

    def field(self, name: str) -> FieldSpec:
        return self.by_name[name]
