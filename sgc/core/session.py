"""Sessions: where the nodes of a running program go.

The language and its states build nodes through a session and do not know whether a tracer
collects them or an executor runs them, so interpreted and compiled runs have one semantics.
The interpreter's session is in `interpreter/session.py`, the tracer's in `tracing/session.py`.
"""

from __future__ import annotations

import sys
import threading
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from sgc.core.building import Building
from sgc.core.call_stack import CallStack
from sgc.core.symbols import Symbol
from sgc.ir.graph import Lit, Operand, Ref
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


def _real(stream: Any) -> Any:
    """The stream behind one that another thread has put in its place while it checks a program."""
    return getattr(stream, "stood_for", stream)


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


class Session(Building):
    """A program being built, node by node, in the order Python runs it."""

    @property
    def is_certain(self) -> bool:
        """Whether every run gets to the current place."""
        return True

    def __init__(self, program: str) -> None:
        super().__init__(program)
        self.stack = CallStack(program)
        self.overlays: Any = replay_overlays.get()
        self.states: list[Stream] = []  # every stream, in order of creation
        self.calling: list[Stream] = []  # the streams of functions that are running
        self.scopes: list[tuple[Any, ...]] = []  # values that open `with` blocks need at their end
        # Where the program prints, unless it redirects what is printed.
        self._printed_on = {"stdout": _real(sys.stdout), "stderr": _real(sys.stderr)}
        self.mapped_path = ""  # the path of a mapped call that is traced in place

    def shown_on(self, file: Any) -> str | None:
        """Which of the process's streams `print(file=file)` writes to; None for another file."""
        target = _real(sys.stdout if file is None else file)
        return next((name for name, each in self._printed_on.items() if each is target), None)

    # -- what differs between tracing and running ---------------------------------------

    @abstractmethod
    def read(self, symbol: Symbol) -> Any:
        """The value as the user's Python sees it: abstract, or awaited and real."""

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
        """The object for a name that is known only at run time, or that may equal such a name; None
        for other names. A choice has several texts where it is read; is_set: where it is set, it is
        one name."""
        return None

    def refuse_late(self, state: Stream, what: str) -> None:
        """Stops a trace that needs all variables of a stream, if the stream has such names."""
        return None

    def late_names(self, state: Stream) -> Operand | None:
        """The operand for a stream's variables with such names; None if the stream has none."""
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
            rebuilt: Callable[..., Any] = self.overlays.rebuild(python, self.is_counted)
        return rebuilt

    @property
    def is_counted(self) -> bool:
        """Whether the turns of the running function's loops are counted."""
        return self.stack.max_turns is not None

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
        """A fork treated as one into a number of streams known only at run time; None if it is not
        treated so. A trace does this where exploring each of many children takes too long."""
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

    @contextmanager
    def active(self) -> Iterator[None]:
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    # -- calls and the end --------------------------------------------------------------

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
