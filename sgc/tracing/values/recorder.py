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

    held: the program's lists, dicts and objects of which values of the graph hold copies.
    known: what is known of values beyond their types. met: the first result of each tool call and
    map. images: values used as images. retired: streams that are published already. path: the
    current path; None for a program without decisions. facts: outcomes of tests on this path.
    sites: the pieces that become code. copies: results of code that may share parts with others.
    numbers: values of unknown type that are likely numbers.
    made: the op and fields that made each value, by the value's name.
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
        """The type of a dict that code has returned; None if it may be another value."""

    @abstractmethod
    def is_outside(self, value: Any) -> bool:
        """Whether an object or list is not the program's own."""

    @abstractmethod
    def is_made(self, symbol: Symbol) -> bool:
        """Whether the program has made a list itself, so that no other value contains it."""

    @abstractmethod
    def is_given(self, symbol: Symbol) -> bool:
        """Whether code may change a value: nothing else holds it, as far as tracing knows."""

    @abstractmethod
    def is_put(self, symbol: Symbol) -> bool:
        """Whether a value is read from a list or dict into which the program may have put it."""

    @abstractmethod
    def is_code(self, symbol: Symbol) -> bool:
        """Whether a list, dict or object is a result of code."""

    @abstractmethod
    def told_type(self, operand: Operand) -> types.Type | None:
        """The type that the trace knows of a value of the graph."""

    @abstractmethod
    def code_of(self, symbol: Symbol) -> tuple[str, tuple[Any, ...]] | None:
        """The code that returned a value, and its arguments; None if it cannot run again."""

    @abstractmethod
    def source_of(self, symbol: Symbol, op: str = "evaluate") -> str:
        """The code that returned a value; empty if none did."""

    @abstractmethod
    def is_performed(self, symbol: Symbol) -> bool:
        """Whether code on live objects returned a value."""

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
        handlers. is_sure: the code cannot fail; is_whole: the code was made for these
        arguments."""

    @abstractmethod
    def record_code(self, record: Any) -> str:
        """The code that makes an object of a user's class from its attributes, in order, or a
        member of an enumeration; empty if there is none."""

    @abstractmethod
    def made_by(self, code: str, type_: types.Type, *given: Symbol) -> Symbol:
        """The result of code that cannot fail."""

    @abstractmethod
    def originals(self, names: dict[str, Any]) -> Mapping[str, Any]:
        """The user's own globals, for an overlay's globals."""

    @abstractmethod
    def viewed(self, view: Any, of: Any, part: str) -> Any:
        """Notes a view, a dict's "keys", "values" or "items" or the groups of a list, and returns
        it: the view is stale once the dict or list changes."""

    @abstractmethod
    def view_state(self, symbol: Symbol) -> str:
        """For a view of a dict or list, "view", or "stale" if it has changed since; else empty."""

    @abstractmethod
    def view_of(self, symbol: Symbol) -> tuple[Symbol, str] | None:
        """The dict that a symbol is a view of, and which view: "keys", "values" or "items"."""

    @abstractmethod
    def note_widened(self, symbol: Symbol, wide: Symbol) -> None:
        """Notes that a block parameter takes the place of a symbol."""

    @abstractmethod
    def is_outside_changed(self) -> bool:
        """Whether the program has changed a module's data so far; then the trace must not end."""

    @abstractmethod
    def before_adding(self, symbol: Symbol) -> None:
        """Called before a key of a value is read, which adds the key to a `defaultdict`."""

    @abstractmethod
    def note_changed(self, symbol: Symbol) -> None:
        """Marks the views of a value that changes, since Python's views would show the change."""

    @abstractmethod
    def may_add(self, symbol: Symbol) -> bool:
        """Whether reading a key may add it to a value, whose items no loop is iterating."""

    @abstractmethod
    def added(self, whole: Any, key: Any) -> Any:
        """The value that a `defaultdict` returns and adds for a missing key."""

    @abstractmethod
    def prefer_code(self, why: str) -> None:
        """Called where an operation would take many nodes: if the piece around it can be code, the
        trace starts anew with that piece."""

    @abstractmethod
    def before_changing(self) -> None:
        """Called before an operation that changes values in place: if its statement can be code,
        the trace starts anew with the statement as a piece."""

    @abstractmethod
    def characters(self, text: str) -> Iterator[str]:
        """The characters of an abstract text, for a loop that begins."""

    @abstractmethod
    def characters_of(self, text: str) -> Any:
        """The list of the characters of an abstract text."""

    @abstractmethod
    def attempt(self, fn: str, *args: Any, raising: Callable[[Any], NoReturn] | None = None) -> Any:
        """None if the function succeeds on this path, else the error's abstract message.

        This is a decision: both paths are traced. raising: raises Python's error for the message.
        """

    @abstractmethod
    def decide(self, test: Symbol, raising: Callable[[], NoReturn] | None = None) -> bool:
        """The outcome that this run takes for a test known only at run time. raising: raises the
        error that follows if the outcome is False."""

    @abstractmethod
    def listed(self, value: Any) -> Any:
        """The value that a list holds for a value: for a stream, its variables when it ends."""

    @abstractmethod
    def held_of(self, state: Stream) -> tuple[Symbol, ...] | None:
        """A tuple if data hold a stream: of the live object that stands for the stream, if any."""

    @abstractmethod
    def refuse_ended(self, what: str) -> NoReturn:
        """Restarts the trace with the streams themselves in lists; stops it if they already are."""

    @abstractmethod
    def looped(self, loop: Iterator[Any]) -> Iterator[Any]:
        """Notes that one of the language's loops begins; returns the loop."""

    @abstractmethod
    def note_outside(self, values: Any) -> None:
        """Records the texts in values from outside, such as a mapped call's arguments."""
