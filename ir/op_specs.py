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

    PURE = "pure", "has no effect; equal operands make equal results"
    STOCHASTIC = "stochastic", "asks a model; deterministic only when greedy or seeded"
    APPENDS = "appends text", "takes a stream state and returns the next one"
    HOST = "host", "runs code of the host that the file only names"
    SHOWS = "shows", "writes a text for people to see, in the program's order"
    LOGGED = "logged", "a log keeps its result, and counts the call"
    OUTPUT = "output", "makes something part of the program's result"
    HINT = "hint", "changes only when something is computed, and where it is kept"
    TERMINATOR = "terminator", "ends a block"
    ASKS = "asks", "asks a model with the prompt so far, and appends the reply"
    GENERATES = "generates", "requests text, with the sampling parameters"
    CONSTANT = "constant text", "appends a text that is the same in every run"
    ROLE = "role", "appends marks of the chat template"
    MEDIA = "media", "appends an image or a video, which may be in a file"
    SAME = "same prompt", "the states it returns have the prompt of the state it takes"
    EMPTY = "empty prompt", "its stream begins with an empty prompt"
    BEGINS = "begins streams", "its streams are numbered in the order of such ops"
    CALLS = "calls", "runs called programs"
    CUTS = "cuts", "decides which streams are cut off, or cuts one off"
    TIMED = "timed", "its result depends on which streams end first"
    TAKES_LOST = "takes what is lost", "may take values of a stream that was cut off"
    LIVE = "live objects", "reads or changes objects of the run, in the program's order"
    UNSURE = "unsure", "its result may be missing; using it then fails"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of an op.

    kinds: the kinds that an operand may have. is_list: the operand is a tuple of such operands.
    static: the operand is a literal. consumes: the field consumes a stream state. positional: the
    field is printed without its name. is_label: it affects neither requests nor values.
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
    the last result may repeat. span: the fields with the first and last state of a part of a
    stream.
    """

    name: str
    doc: str
    fields: tuple[FieldSpec, ...]
    results: tuple[Kind | None, ...]
    flags: frozenset[Flag]
    sample: str
    variadic_results: bool = False
    span: tuple[str, str] | None = None

    # Cached, since passes read these properties for every node, many times.
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
