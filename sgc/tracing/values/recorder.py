"""The tracer's session as abstract values see it: it records their computations and decisions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from sgc.core.session import Session, Stream
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.graph import Operand
from sgc.tracing.kinds.held import Holdings
from sgc.tracing.kinds.row_types import DictType


class Recorder(Session):
    """A session that collects nodes; values that the program reads are abstract.

    held: the program's lists, dicts and objects that values of the graph have copies of.
    known: what is known of values beyond their types. met: the first result of each tool call and
    map. images: values used as images. retired: streams that are published already. path: the
    current path; None for a program without decisions. facts: outcomes of tests on this path.
    sites: the pieces that become code. copies: results of code that may share parts with others.
    numbers: values of unknown type that are likely numbers.
    made: the ops and fields that gave values, by their names.
    has_untyped: whether the type of a value out of JSON was tested. events: what a trace function
    sees of the program.
    """

    is_tracing = True
    known: dict[str, Any]
    met: list[Symbol]
    images: set[str]
    held: Holdings
    retired: set[int]
    path: Any
    facts: Any
    sites: Any
    copies: set[str]
    numbers: set[str]
    defaulting: set[str]
    made: dict[str, Any]
    has_untyped: bool = False
    events: Any

    @abstractmethod
    def marker(self, symbol: Symbol) -> str:
        """The marker of a symbol; always the same, so that equal texts stay equal."""

    @abstractmethod
    def symbol_of(self, number: int) -> Symbol:
        """The symbol that a marker's number stands for."""

    @abstractmethod
    def seen(self, value: Any) -> Any:
        """A value out of JSON as the program reads it."""

    @abstractmethod
    def dict_type(self, symbol: Symbol) -> DictType | None:
        """The type of a dict that code has given; None if it may be another value."""

    @abstractmethod
    def is_outside(self, value: Any) -> bool:
        """Whether an object or list is not the program's own."""

    @abstractmethod
    def is_made(self, symbol: Symbol) -> bool:
        """Whether the program has made a list itself, so that it is no part of another value."""

    @abstractmethod
    def is_given(self, symbol: Symbol) -> bool:
        """Whether code may change a value: nothing else holds it, as far as tracing knows."""

    @abstractmethod
    def is_put(self, symbol: Symbol) -> bool:
        """Whether a value is read out of a list or dict in which the program may have put it."""

    @abstractmethod
    def is_code(self, symbol: Symbol) -> bool:
        """Whether a list, dict or object is a result of code that is data."""

    @abstractmethod
    def told_type(self, operand: Operand) -> types.Type | None:
        """The type that the trace knows of a value of the graph."""

    @abstractmethod
    def code_of(self, symbol: Symbol) -> tuple[str, tuple[Any, ...]] | None:
        """The code that gave a value, and its arguments; None if it cannot run once more."""

    @abstractmethod
    def source_of(self, symbol: Symbol) -> str:
        """The code that gave a value; else empty."""

    @abstractmethod
    def is_performed(self, symbol: Symbol) -> bool:
        """Whether code on live objects gave a value."""

    @abstractmethod
    def is_parameter(self, name: str) -> bool: ...

    @abstractmethod
    def name_of(self, symbol: Symbol) -> str:
        """A value's name in the user's terms, for messages."""

    @abstractmethod
    def shown(self, text: str) -> str:
        """A text for error messages, with the names of values in braces."""

    @abstractmethod
    def formatted(self, value: Any, spec: str) -> str:
        """The marker of `format(value, spec)`, computed at run time."""

    @abstractmethod
    def compute(self, fn: str, *args: Any, type_: types.Type | None = None) -> Any:
        """The abstract value of a function of `ir/functions.py`, which cannot fail here."""

    @abstractmethod
    def coded(self, code: str, args: Sequence[Any], type_: types.Type) -> Any:
        """The abstract result of code that is data; if it fails, raises the error for handlers."""

    @abstractmethod
    def performed(
        self,
        code: str,
        args: Sequence[Any],
        gives: Sequence[types.Type],
        is_sure: bool = False,
        is_whole: bool = False,
    ) -> list[Any]:
        """The abstract results of code on live objects; if it fails, raises the error for
        handlers. is_sure: it cannot fail; is_whole: the code was made for these
        arguments."""

    @abstractmethod
    def record_code(self, record: Any) -> str:
        """The code that makes an object of a class of the user's of its attributes, in order, or a
        member of an enumeration; empty if there is none."""

    @abstractmethod
    def made_by(self, code: str, type_: types.Type, *given: Symbol) -> Symbol:
        """What code gives that cannot fail."""

    @abstractmethod
    def originals(self, names: dict[str, Any]) -> Mapping[str, Any]:
        """The user's own globals for those of an overlay."""

    @abstractmethod
    def viewed(self, view: Any, of: Any, part: str) -> Any:
        """The list of a dict's "keys", "values" or "items", or the groups of a list, noted: once
        that changes, it is stale."""

    @abstractmethod
    def view_state(self, symbol: Symbol) -> str:
        """Whether a symbol is a "view" of a dict or list, or "stale": that has changed since."""

    @abstractmethod
    def view_of(self, symbol: Symbol) -> tuple[Symbol, str] | None:
        """The dict of which a symbol has the "keys", "values" or "items", and which of these."""

    @abstractmethod
    def note_widened(self, symbol: Symbol, wide: Symbol) -> None:
        """A block parameter takes the place of a symbol."""

    @abstractmethod
    def is_outside_changed(self) -> bool:
        """Whether the program has changed a module's data so far; no trace may end so."""

    @abstractmethod
    def before_adding(self, symbol: Symbol) -> None:
        """Called before a key is read of a value, which adds it to a `defaultdict`."""

    @abstractmethod
    def note_changed(self, symbol: Symbol) -> None:
        """Marks the views of what changes, in which Python would show it."""

    @abstractmethod
    def may_add(self, symbol: Symbol) -> bool:
        """Whether reading a key of a value may add it there, and nothing goes over its items."""

    @abstractmethod
    def added(self, whole: Any, key: Any) -> Any:
        """What a `defaultdict` gives for a key that it does not have, but has from now on."""

    @abstractmethod
    def prefer_code(self, why: str) -> None:
        """Called where an operation would take many nodes: if what is around it can be code, the
        trace starts anew with it."""

    @abstractmethod
    def before_changing(self) -> None:
        """Called before an operation that changes some values in place: if its statement can be
        code, the trace starts anew with it."""

    @abstractmethod
    def characters(self, text: str) -> Iterator[str]:
        """The characters of an abstract text, for a loop that begins."""

    @abstractmethod
    def characters_of(self, text: str) -> Any:
        """The list of the characters of an abstract text."""

    @abstractmethod
    def attempt(self, fn: str, *args: Any, raising: Callable[[Any], NoReturn] | None = None) -> Any:
        """None if the function succeeds on this path, else the error's abstract message.

        It is a decision: both paths are traced. raising: raises Python's error, by that message.
        """

    @abstractmethod
    def decide(self, test: Symbol, raising: Callable[[], NoReturn] | None = None) -> bool:
        """The outcome that this run takes for a test known only at run time. raising: raises the
        error that follows if it is false."""

    @abstractmethod
    def listed(self, value: Any) -> Any:
        """What a list gets in the place of a value: of a stream, what is left when it ends."""

    @abstractmethod
    def held_of(self, state: Stream) -> tuple[Symbol, ...] | None:
        """If data hold what is left of a stream: the live object that stands for it, if any."""

    @abstractmethod
    def refuse_ended(self, what: str) -> NoReturn:
        """Traces the program anew with streams in lists as they are; stops if they are already."""

    @abstractmethod
    def looped(self, loop: Iterator[Any]) -> Iterator[Any]:
        """Notes that one of the language's loops begins; returns it."""

    @abstractmethod
    def note_outside(self, values: Any) -> None:
        """Records the texts in values from outside, such as a mapped call's arguments."""
