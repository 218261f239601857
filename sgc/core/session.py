"""Sessions: where the nodes of a running program go.

Language and states build nodes through a session and do not know whether a tracer
collects them or an executor runs them; that is what makes eager and compiled runs one
semantics. The interpreter's is in `interpreter/session.py`, the tracer's in `tracing/tracer.py`.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from sgc.core.markers import has_marker
from sgc.core.symbols import Namer, Symbol
from sgc.errors import UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Loc, Node, Operand, Ref, Value, make_node
from sgc.ir.types import Type
from sgc.runtime.executor.interface.media import Media

if TYPE_CHECKING:
    from sgc.lang.maps import MapCall, MappedStates
    from sgc.lang.state import ProgramState
    from sgc.programs.function import Function
    from sgc.runtime.executor.interface.tools import ToolImpl

_current: ContextVar[Session | None] = ContextVar("sgc_session", default=None)

# Set while the check of a trace replays a program: it runs on copies, and prints nothing.
replay_overlays: ContextVar[Any] = ContextVar("sgc_replay_overlays", default=None)


_rebuilding = threading.Lock()  # the calls of a map share overlays


def current_session() -> Session | None:
    """The session whose program is running in this context."""
    return _current.get()


class OneText(tuple[Operand, ...]):
    """An operand that takes several, given as one text; a backend of the user's is told so."""


class Session(ABC):
    """A program being built, node by node, in the order Python runs it."""

    is_tracing = False  # else it runs as it is built

    def __init__(self, program: str) -> None:
        self.program = program
        self.overlays: Any = replay_overlays.get()
        self.namer = Namer()
        self.states: list[ProgramState] = []  # every stream, in order of creation
        self._frames: list[tuple[str, int]] = []  # (call path, calls made) of functions running
        self.calling: list[ProgramState] = []  # the streams of functions that are running
        self.scopes: list[tuple[Any, ...]] = []  # what `with` blocks of ours will need at their end
        self._heals: list[bool | None] = []  # of the same functions: what their generations do
        self._aheads: list[int] = []
        self._n_maps: Counter[str] = Counter()  # by the path of the function that maps
        self.mapped_path = ""  # of a mapped call that is traced in place
        self.is_over = False
        self._thread = threading.get_ident()
        self._fixed_loc: Loc | None = None

    # -- what differs between tracing and running ---------------------------------------

    @abstractmethod
    def take(self, node: Node) -> None:
        """Adds a node to the program."""

    @abstractmethod
    def read(self, symbol: Symbol) -> Any:
        """What the user's Python sees of a value: abstract, or the value itself, awaited."""

    @abstractmethod
    def scalar(self, value: Any) -> Operand:
        """The operand for a single Python value."""

    @abstractmethod
    def text_parts(self, text: str) -> list[tuple[bool, Operand]]:
        """A text to append, cut into the program's own parts (True) and values (False)."""

    @abstractmethod
    def text_of(self, state: Symbol) -> Any:
        """The text of a stream state."""

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
        """Waits until a stream state is there."""

    @abstractmethod
    def pieces_of(self, state: Symbol) -> list[tuple[str, str]]:
        """What makes up a stream state, as (kind, text)."""

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
        """Called when what a program does depends on whether variables are set."""
        return None

    def notify(self) -> None:
        """Tells those who wait that a name was set."""
        return None

    @abstractmethod
    def text_iter(self, state: ProgramState, names: Any) -> Iterator[Any]:
        """A stream's text as it comes."""

    @abstractmethod
    def text_async_iter(
        self, state: ProgramState, names: Any, with_meta: bool
    ) -> AsyncIterator[Any]:
        """The same for coroutines."""

    @abstractmethod
    def cancel(self) -> None:
        """Stops the run."""

    def refuse_other_runs(self) -> None:
        """Stops where a program that is being traced would start another run."""
        return None

    def body(self, function: Function) -> Callable[..., Any]:
        """The Python function to call for a program."""
        if self.overlays is None:
            return function.python
        with _rebuilding:
            rebuilt: Callable[..., Any] = self.overlays.rebuild(function.python)
        return rebuilt

    def entered(self, function: FunctionType) -> Callable[..., Any]:
        """A function of the user's that is called, as it is to run."""
        return function

    def meet(self, frame: FrameType) -> None:
        """Called when a function is called while the program is traced."""
        return None

    def counted(self, n: Any) -> Iterator[Any]:
        """Counts from 0 to `n`, for a loop of the language."""
        return iter(range(n))

    def is_abstract(self, value: Any) -> bool:
        """Whether a Python value stands for one known only when the program runs."""
        return False

    def allow_tool(self, tool: ToolImpl) -> None:
        """Lets the run of the program call a tool that the program itself calls."""
        return None

    @abstractmethod
    def is_caught(self) -> bool:
        """Whether the program may handle an error raised where it is."""

    @abstractmethod
    def raise_failed(self, value: Symbol) -> None:
        """Raises a tool's failure for the program to handle, if its call has failed."""

    # -- maps ---------------------------------------------------------------------------

    @abstractmethod
    def map(self, call: MapCall) -> MappedStates:
        """Calls a program for each item of a list."""

    @abstractmethod
    def as_value(self, value: Any) -> Any:
        """What a mapped call gives: special tokens in it are plain text, wherever they are from."""

    def next_map(self) -> tuple[str, int]:
        """The path of the function that is running, and the number of the map that it begins."""
        self._refuse_other_threads("sgc.map")
        caller = self._frames[-1][0]
        self._n_maps[caller] += 1
        return caller, self._n_maps[caller] - 1

    # -- joins --------------------------------------------------------------------------

    @abstractmethod
    def join_tests(self, states: list[ProgramState], when: Callable[[Any], Any]) -> list[Operand]:
        """What stands for a predicate of each child, once the child has ended."""

    def run_join_tests(
        self,
        states: list[ProgramState],
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
        """Builds a node placed at the user's line and gives symbols for its results."""
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
        """The text appended between two states of a stream."""
        ends = {"start": Ref(start.name), "end": Ref(end.name)}
        (symbol,) = self.emit("span", [("span", types.TEXT)], **ends)
        return symbol

    def operand(self, value: Any) -> Operand:
        """The operand for a Python value; sequences become lists, mappings records."""
        if isinstance(value, Symbol):
            return Ref(value.name)
        if isinstance(value, list):
            return self._gather("list", [], value)
        if isinstance(value, tuple):
            return self._gather("record", [], value)
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            if any(map(has_marker, value)):
                raise UsageError(
                    "a dict's key is a value known only when the program runs",
                    where=str(user_loc() or ""),
                )
            return self._gather("record", list(value), list(value.values()))
        return self.scalar(value)

    def type_of(self, operand: Operand) -> Type:
        """The type of an operand, as far as it is known."""
        value = operand.value if isinstance(operand, Lit) else None
        return _LITERAL_TYPES.get(type(value), types.JSON)

    def operands(self, value: Any) -> Operand:
        """The operand of a field that takes several: one text, or a sequence of values."""
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
            names = tuple(Lit(key) for key in keys)
            (symbol,) = self.emit("record", [("v", types.JSON)], keys=names, items=operands)
        return Ref(symbol.name)

    # -- calls and the end --------------------------------------------------------------

    @contextmanager
    def frame(
        self, name: str, heal: bool | None = None, path: str = "", ahead: int = 0
    ) -> Iterator[str]:
        """A call of a function: gives its path among the calls, which seeds derive from.

        heal: the default of its generations; None is that of the function that calls it. path: of a
        mapped call, which is not one of those that are counted. ahead: tokens that its generations
        ask for at once where providers bill each request.
        """
        self._refuse_other_threads(name)
        if not path and not self._frames:
            path = name
        elif not path:
            caller, n_calls = self._frames[-1]
            self._frames[-1] = (caller, n_calls + 1)
            path = f"{caller}/{name}.{n_calls}"
        self._frames.append((path, 0))
        self._heals.append(self.heal if heal is None else heal)
        self._aheads.append(ahead)
        try:
            yield path
        finally:
            self._frames.pop()
            self._heals.pop()
            self._aheads.pop()

    def _refuse_other_threads(self, name: str) -> None:
        if threading.get_ident() != self._thread:
            raise UsageError(
                f"{name} is called by another thread than the one that runs {self.program}",
                where=str(user_loc() or ""),
                hint="streams of one program run in parallel without threads",
            )

    @property
    def heal(self) -> bool | None:
        """Whether generations of the function that is running heal; None is the run's default."""
        return self._heals[-1] if self._heals else None

    @property
    def ahead(self) -> int:
        """Tokens that generations of the present function ask for at once; 0 for their own."""
        return self._aheads[-1] if self._aheads else 0

    @contextmanager
    def located(self, loc: Loc | None) -> Iterator[None]:
        """Places the nodes built inside at `loc` instead of the user's present line."""
        before, self._fixed_loc = self._fixed_loc, loc
        try:
            yield
        finally:
            self._fixed_loc = before

    def finish(self, ret_value: Any) -> None:
        """Publishes every stream with its variables, and returns."""
        for state in list(self.states):
            self.publish(state)
        self.emit("return", [], value=self.operand(self.returned(ret_value)))
        self.is_over = True

    def publish(self, state: ProgramState) -> None:
        """Makes a stream and its variables part of the result."""
        names = state.own_names()
        keys: tuple[Operand, ...] = tuple(Lit(name) for name in names)
        items = tuple(self.operand(value) for value in names.values())
        self.emit(
            "publish",
            [],
            stream=Ref(state.symbol.name),
            name=Lit(state.function_name),
            keys=keys,
            items=items,
        )

    @contextmanager
    def scope(self, *held: Any) -> Iterator[None]:
        """Inside a `with` block of the language: what it will need when it ends."""
        self.scopes.append(held)
        try:
            yield
        finally:
            self.scopes.pop()

    def returned(self, value: Any) -> Any:
        """A returned stream stands for its text; containers are looked into."""
        from sgc.lang.state import ProgramState

        if isinstance(value, ProgramState):
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
    """The common type of a list's items: text unless they say otherwise."""
    found = {item.type.kind for item in items if isinstance(item, Symbol)}
    plain = all(isinstance(item, (Symbol, str)) for item in items)
    return types.TEXT if plain and found <= {types.Kind.TEXT, types.Kind.CHOICE} else types.JSON


def occurrences(text: str, values: list[str]) -> Iterator[tuple[int, int]]:
    for value in set(values):
        at = text.find(value)
        while at >= 0:
            yield at, at + len(value)
            at = text.find(value, at + 1)


def here() -> str:
    """The user's line, for an error; empty where there is none."""
    return str(user_loc() or "")


F = TypeVar("F", bound=Callable[..., Any])
_outermost: set[int] = set()  # code objects by identity: hashing one looks into all of it


def outermost(function: F) -> F:
    """Marks a function that runs a whole program: who called it is no line of the program."""
    _outermost.add(id(function.__code__))
    return function


def program_frames() -> Iterator[FrameType]:
    """The frames of the program that runs on this thread, innermost first, without our own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame.f_code) not in _outermost:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != "sgc":
            yield frame
        frame = frame.f_back


def user_loc() -> Loc | None:
    """The innermost place of the user's code on the calling thread's stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame.f_code) not in _outermost:
        if is_users(frame):
            return user_loc_of(frame)
        frame = frame.f_back
    return None


def user_loc_of(frame: FrameType) -> Loc:
    """The place that a frame has come to."""
    return _loc(frame.f_code, frame.f_lineno)


def _loc(code: CodeType, line: int) -> Loc:
    """A line of the function that it is in: some Pythons run a comprehension as another."""
    names = code.co_qualname.split(".")
    while len(names) > 2 and names[-1] in _COMPREHENSIONS:
        del names[-2:]  # with its `<locals>`
    return Loc(os.path.basename(code.co_filename), line, names[-1])


def innermost_user_loc(error: BaseException) -> Loc | None:
    """The innermost place of an error's traceback that is not of this package."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if is_users(frame):
            found = _loc(frame.f_code, line)
    return found


_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")


def innermost_user_line(error: BaseException) -> str:
    """`file.py:12`: the innermost line of an error's traceback that is not of this package."""
    return str(innermost_user_loc(error) or "")


_STDLIB = os.path.dirname(os.__file__) + os.sep
_SITE = os.sep + "site-packages" + os.sep


# What this package calls while a program runs: none of it is the program's.
_OURS = frozenset({
    "sgc", "click", "regex", "re2", "jsonschema", "referencing", "rpds", "attr", "pydantic",
    "pydantic_core", "llguidance", "networkx", "google",
})  # fmt: skip


def is_users(frame: FrameType) -> bool:
    """Whether a frame is of the user's code: not this package's, its libraries' or Python's own."""
    return _is_of_users(frame.f_globals.get("__name__", ""), frame.f_code.co_filename)


@lru_cache(maxsize=4096)  # asked for at every call of a program that is traced
def _is_of_users(module: str, file: str) -> bool:
    root = module.partition(".")[0]
    if root in _OURS or root.startswith("namedtuple_"):  # named so by collections
        return False
    return not file.startswith(("<frozen", _STDLIB)) or _SITE in file


def is_users_own(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Whether a function is of the user's code, and of no package that is installed.

    names: its globals.
    """
    file = code.co_filename
    return _SITE not in file and _is_of_users(names.get("__name__", ""), file)


MAX_OWN_TEXTS = 10_000


def own_texts(python: FunctionType) -> Iterator[str]:
    """The texts of a function: its constants, then the globals it reads, the very objects."""
    seen: set[int] = set()
    found: deque[Any] = deque([python])
    for _ in range(MAX_OWN_TEXTS):
        if not found:
            return
        item = found.popleft()
        if isinstance(item, str):
            yield item
        elif id(item) not in seen:
            seen.add(id(item))
            found.extend(_inside(item))


def _inside(item: Any) -> Iterator[Any]:
    """What to look into next: a function's code and globals, a container's items."""
    if isinstance(item, FunctionType):
        yield item.__code__
        yield from (item.__globals__.get(name) for name in item.__code__.co_names)
    elif isinstance(item, CodeType):
        yield from item.co_consts
    elif type(item) is dict:
        yield from (*item, *item.values())
    elif type(item) in (tuple, list, set, frozenset):
        yield from item
