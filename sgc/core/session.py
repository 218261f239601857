"""Sessions: where the nodes of a running program go.

The language and its states build nodes through a session and do not know whether a tracer
collects them or an executor runs them, so interpreted and compiled runs have one semantics.
The interpreter's session is in `interpreter/session.py`, the tracer's in `tracing/session.py`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from sgc.core.call_stack import CallStack
from sgc.core.markers import has_marker
from sgc.core.places import user_loc
from sgc.core.symbols import Namer, Symbol
from sgc.errors import UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Loc, Node, Operand, Ref, Value, make_node
from sgc.ir.types import Type
from sgc.runtime.executor.interface.media import Media

if TYPE_CHECKING:
    from sgc.runtime.executor.interface.tools import ToolImpl

_current: ContextVar[Session | None] = ContextVar("sgc_session", default=None)

# Set while the trace check replays a program, which then runs on copies and prints nothing.
replay_overlays: ContextVar[Any] = ContextVar("sgc_replay_overlays", default=None)


_rebuilding = threading.Lock()  # the calls of a map share overlays


def current_session() -> Session | None:
    """The session whose program is running in this context."""
    return _current.get()


class OneText(tuple[Operand, ...]):
    """A field of several values that the program gave as one text; backends written for SGLang
    are passed one text again."""


class Stream:
    """A stream of prompt text as sessions see it; `ProgramState` is what programs see.

    path: its place among calls and forks, unique in a run. symbol: its current state; start: its
    first state. roles: the open roles. Not an ABC, whose `isinstance` would read the `__class__`
    of abstract values.
    """

    session: Session
    function_name: str
    path: str
    symbol: Symbol
    start: Symbol
    roles: list[str]
    ret_value: Any

    def __getitem__(self, name: str) -> Any:
        raise NotImplementedError

    def text(self) -> str:
        raise NotImplementedError

    @property
    def start_text(self) -> str:
        raise NotImplementedError

    def own_values(self) -> dict[str | None, Any]:
        raise NotImplementedError

    def own_names(self) -> dict[str, Any]:
        raise NotImplementedError

    def set_derived(self, name: str | None, value: Any) -> None:
        raise NotImplementedError

    def set_generated(self, name: str | None, value: Symbol, is_hidden: bool = False) -> None:
        raise NotImplementedError

    def set_unsure(self, name: str | None, value: Symbol, is_own: bool) -> None:
        raise NotImplementedError

    def __contains__(self, name: object) -> bool:
        raise NotImplementedError

    def get_meta_info(self, name: str) -> Any:
        raise NotImplementedError


class Late(Protocol):
    """Variables of streams whose names are known only at run time."""

    def late_variable(self, state: Stream, name: str) -> Any:
        """The value of one. Raises UnknownVariable."""
        ...

    def has_late(self, state: Stream, name: str) -> bool: ...

    def set_late(self, state: Stream, name: str, value: Any) -> None: ...

    def late_name(self, name: str) -> Operand:
        """The operand for such a name."""
        ...


class Session(ABC):
    """A program being built, node by node, in the order Python runs it."""

    is_tracing = False  # False: nodes run as they are built

    @property
    def is_certain(self) -> bool:
        """Whether every run gets to the current place."""
        return True

    def __init__(self, program: str) -> None:
        self.program = program
        self.stack = CallStack(program)
        self.overlays: Any = replay_overlays.get()
        self.namer = Namer()
        self.states: list[Stream] = []  # every stream, in order of creation
        self.calling: list[Stream] = []  # the streams of functions that are running
        self.scopes: list[tuple[Any, ...]] = []  # values that open `with` blocks need at their end
        self.mapped_path = ""  # the path of a mapped call that is traced in place
        self.is_over = False
        self._fixed_loc: Loc | None = None

    # -- what differs between tracing and running ---------------------------------------

    @abstractmethod
    def take(self, node: Node) -> None:
        """Adds a node to the program."""

    @abstractmethod
    def read(self, symbol: Symbol) -> Any:
        """The value as the user's Python sees it: abstract, or awaited and real."""

    @abstractmethod
    def scalar(self, value: Any) -> Operand:
        """The operand for a single Python value."""

    @abstractmethod
    def text_parts(self, text: str) -> list[tuple[bool, Operand]]:
        """A text to append, cut into the program's own parts (True) and values (False)."""

    @abstractmethod
    def text_of(self, state: Symbol) -> Any:
        """The text of a stream state."""

    # -- names of variables that are known only at run time: only traces meet these -------

    def begun(self, state: Stream) -> None:
        """Called when a stream begins."""
        return None

    def late(self, state: Stream, name: object, is_set: bool = False) -> Late | None:
        """What knows a name that is known only at run time, or that may be one that is; None for
        another. A choice's texts are known where it is read; is_set: where it is set, it is one
        name."""
        return None

    def refuse_late(self, state: Stream, what: str) -> None:
        """Stops a trace where all variables of a stream are needed, if it has such names."""
        return None

    def late_names(self, state: Stream) -> Operand | None:
        """The operand for a stream's variables of such names; None if it has none."""
        return None

    @abstractmethod
    def messages_of(self, state: Symbol) -> list[dict[str, Any]]:
        """The chat in a stream state."""

    @abstractmethod
    def media(self, load: Callable[[Any], Media], value: Any) -> Operand:
        """The operand for an image that the program names."""

    @abstractmethod
    def meta_info(self, value: Symbol) -> Any:
        """How a value was generated."""

    @abstractmethod
    def settled(self, state: Symbol) -> None:
        """Waits until a stream state is computed."""

    @abstractmethod
    def pieces_of(self, state: Symbol) -> list[tuple[str, str]]:
        """The pieces of a stream state, as (kind, text)."""

    # -- reading from other threads than the program's own --------------------------------

    is_settled = True

    def await_body(self) -> None:
        """Waits until the program's body has ended, where another thread runs it."""
        return None

    def await_name(self, names: Mapping[str | None, Any], name: str) -> None:
        """Waits until a name is set or the body has ended, where another thread runs it."""
        return None

    def note_read(self, name: str | None) -> None:
        """Called when a variable that is set is read."""
        return None

    def note_asked(self, names: Iterable[str | None]) -> None:
        """Called when the program's behaviour depends on whether these variables are set."""
        return None

    def notify(self) -> None:
        """Wakes waiting threads: a name was set."""
        return None

    def note_set(self, state: Stream) -> None:
        """Notes that a stream is given a variable."""
        return None

    @abstractmethod
    def text_iter(self, state: Stream, names: Any) -> Iterator[Any]:
        """A stream's text as it is generated."""

    @abstractmethod
    def text_async_iter(self, state: Stream, names: Any, with_meta: bool) -> AsyncIterator[Any]:
        """The same for coroutines."""

    @abstractmethod
    def cancel(self) -> None:
        """Stops the run."""

    def refuse_other_runs(self) -> None:
        """Stops a trace whose program would start another run."""
        return None

    def body(self, python: FunctionType) -> Callable[..., Any]:
        """The callable that runs a program's Python function."""
        if self.overlays is None:
            return python
        with _rebuilding:
            rebuilt: Callable[..., Any] = self.overlays.rebuild(python)
        return rebuilt

    def entered(self, function: FunctionType) -> Callable[..., Any]:
        """The callable that runs a user's function that the program calls."""
        return function

    def meet(self, frame: FrameType) -> None:
        """Called for every function call while the program is traced."""
        return None

    def counted(self, n: Any) -> Iterator[Any]:
        """Counts from 0 to `n`, for a loop of the language."""
        return iter(range(n))

    def is_abstract(self, value: Any) -> bool:
        """Whether a Python value stands for a value known only at run time."""
        return False

    def allow_tool(self, tool: ToolImpl) -> None:
        """Allows the run to call a tool that the program calls."""
        return None

    @abstractmethod
    def is_caught(self) -> bool:
        """Whether the program may handle an error raised at its current place."""

    @abstractmethod
    def raise_failed(self, value: Symbol) -> None:
        """Raises a tool's failure for the program to handle, if its call has failed."""

    # -- maps ---------------------------------------------------------------------------

    @abstractmethod
    def map(self, call: Any) -> Any:
        """Calls a program for each item of a list: takes a `MapCall`, returns `MappedStates`."""

    @abstractmethod
    def as_value(self, value: Any) -> Any:
        """A value that a mapped call returned or set; its special tokens are plain text."""

    # -- forks and joins ----------------------------------------------------------------

    def open_fork(self, stream: Any, size: Any) -> Any:
        """Forks into a number of streams known only at run time; only traces meet such numbers."""
        raise NotImplementedError

    def large_fork(self, stream: Any, size: int) -> Any:
        """A fork as one into a number of streams known only at run time; None if it is none. A
        trace makes it so where exploring each of many children takes too long."""
        return None

    def note_size(self, size: Any) -> frozenset[str]:
        """Notes a number, known only at run time, of streams or texts; returns the arguments that
        it is made of. Only traces meet such numbers."""
        raise NotImplementedError

    @abstractmethod
    def join_tests(self, states: Sequence[Stream], when: Callable[[Any], Any]) -> list[Operand]:
        """For each child, the operand for the predicate's result once the child has ended."""

    def run_join_tests(
        self,
        states: Sequence[Stream],
        when: Callable[[Any], Any],
        tests: list[Operand],
        winners: Symbol,
    ) -> None:
        """Calls the predicate as children end, until the winners are known."""
        return None

    # -- building -----------------------------------------------------------------------

    @contextmanager
    def active(self) -> Iterator[None]:
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def emit(self, op: str, results: list[tuple[str, Type]], **fields: Operand) -> list[Symbol]:
        """Builds a node placed at the user's line and returns symbols for its results."""
        if self.is_over:
            raise UsageError(
                f"the run of {self.program} is over; its streams can be read but not extended",
                where=str(user_loc() or ""),
            )
        symbols = [Symbol(self.namer.fresh(hint), type_) for hint, type_ in results]
        values = tuple(Value(symbol.name, symbol.type) for symbol in symbols)
        self.take(make_node(op, values, self._fixed_loc or user_loc(), **fields))
        return symbols

    def span(self, start: Symbol, end: Symbol) -> Symbol:
        """The text that was appended between two states of a stream."""
        ends = {"start": Ref(start.name), "end": Ref(end.name)}
        (symbol,) = self.emit("span", [("span", types.TEXT)], **ends)
        return symbol

    def operand(self, value: Any) -> Operand:
        """The operand for a Python value; sequences become lists, mappings records."""
        if issubclass(type(value), str):  # an abstract text answers `isinstance` by Python code
            return self.scalar(value)
        if isinstance(value, Symbol):
            return Ref(value.name)
        if isinstance(value, list):
            return self._gather("list", [], value)
        if isinstance(value, tuple):
            return self._gather("record", [], value)
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            if any(map(has_marker, value)):
                raise UsageError(
                    "a dict's key is a value known only at run time",
                    where=str(user_loc() or ""),
                )
            return self._gather("record", list(value), list(value.values()))
        return self.scalar(value)

    def type_of(self, operand: Operand) -> Type:
        """The type of an operand; JSON if it is not known."""
        value = operand.value if isinstance(operand, Lit) else None
        return _LITERAL_TYPES.get(type(value), types.JSON)

    def operands(self, value: Any) -> Operand:
        """The operand of a field that takes several values: from one text, or from a sequence."""
        if not isinstance(value, (str, list, tuple, set, frozenset)):
            raise UsageError(
                f"expected a text or a list of them, found {value!r}", where=str(user_loc() or "")
            )
        if isinstance(value, str):
            one = (self.scalar(value),)
            return one if self.is_tracing else OneText(one)
        return tuple(self.scalar(item) for item in value)

    def _gather(self, op: str, keys: list[str], items: Any) -> Operand:
        operands = tuple(self.operand(item) for item in items)
        if op == "list":
            type_ = types.list_of(_item_type(items))
            (symbol,) = self.emit("list", [("v", type_)], items=operands)
        else:
            fields: dict[str, Operand] = {"keys": tuple(map(Lit, keys)), "items": operands}
            if items == ():
                fields["is_tuple"] = Lit(True)
            (symbol,) = self.emit("record", [("v", types.JSON)], **fields)
        return Ref(symbol.name)

    # -- calls and the end --------------------------------------------------------------

    @contextmanager
    def located(self, loc: Loc | None) -> Iterator[None]:
        """Gives nodes built inside the location `loc` instead of the user's current line."""
        before, self._fixed_loc = self._fixed_loc, loc
        try:
            yield
        finally:
            self._fixed_loc = before

    def finish(self, ret_value: Any) -> None:
        """Ends the program: publishes every stream with its variables, and emits `return`."""
        for state in list(self.states):
            self.publish(state)
        self.emit("return", [], value=self.operand(self.returned(ret_value)))
        self.is_over = True

    def publish(self, state: Stream) -> None:
        """Makes a stream and its variables part of the result."""
        names = state.own_names()
        fields: dict[str, Operand] = {"keys": tuple(Lit(name) for name in names)}
        fields["items"] = tuple(self.operand(value) for value in names.values())
        named = self.late_names(state)
        if named is not None:
            fields["named"] = named
        name = Lit(state.function_name)
        self.emit("publish", [], stream=Ref(state.symbol.name), name=name, **fields)

    @contextmanager
    def scope(self, *held: Any) -> Iterator[None]:
        """Holds the values that a `with` block of the language needs when it ends."""
        self.scopes.append(held)
        try:
            yield
        finally:
            self.scopes.pop()

    def returned(self, value: Any) -> Any:
        """The value with each stream in it, or in its containers, replaced by its text."""
        if isinstance(value, Stream):
            return value.text()
        if isinstance(value, list):
            return [self.returned(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.returned(item) for item in value)
        if isinstance(value, dict):
            return {key: self.returned(item) for key, item in value.items()}
        return value


_LITERAL_TYPES = {str: types.TEXT, int: types.INT, float: types.FLOAT, bool: types.BOOL}


def _item_type(items: list[Any]) -> Type:
    """The common type of a list's items: text if all are, else JSON."""
    found = {item.type.kind for item in items if isinstance(item, Symbol)}
    plain = all(isinstance(item, (Symbol, str)) for item in items)
    return types.TEXT if plain and found <= {types.Kind.TEXT, types.Kind.CHOICE} else types.JSON
