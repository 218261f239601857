"""Prompt states as a program sees them: streams that grow, fork, and hold variables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeGuard

from sgc.core.markers import has_marker
from sgc.core.places import here
from sgc.core.session import Session, Stream
from sgc.core.symbols import Symbol
from sgc.core.texts import text_of
from sgc.errors import ForkError, UnknownVariable, UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Ref
from sgc.ir.limits import MAX_CHILDREN
from sgc.lang import words
from sgc.lang.append import append, checked_name, shown
from sgc.lang.group import ProgramStateGroup
from sgc.lang.joins import Gathered, ungathered
from sgc.lang.view import StreamExecutorView
from sgc.lang.words import Appendable, RoleBegin, RoleEnd


def is_users(name: str | None) -> TypeGuard[str]:
    """Whether a key of a stream's names is a name that the program gave."""
    return name is not None and not has_marker(name)


def fork_error(size: Any) -> ForkError:
    """The error of a fork into `size` children, which may be known only at run time."""
    message = f"fork takes from 1 to {MAX_CHILDREN} children, found {size}"
    return ForkError(message, where=here())


class ProgramState(Stream):
    """A stream of prompt text, and the names set on it.

    `s += x` appends text or an expression; `s["name"]` is the result of a generation. Made by
    running a function, by `fork` and by `copy`; not by hand. Reading waits for generations
    under way, and raises the error that ended the run if one did.
    """

    def __init__(
        self,
        session: Session,
        function_name: str,
        symbol: Symbol,
        path: str,
        names: Mapping[str | None, Any] | None = None,
    ) -> None:
        self.session = session
        self.function_name = function_name
        self.path = path  # its place among calls and forks, unique in a run
        self.symbol = symbol  # the stream's current state
        self.start = symbol  # its first state: for a fork's child, where it leaves the trunk
        self.roles: list[str] = []  # the open roles
        # None holds the value of the last generation without a name, as in SGLang.
        self._names: dict[str | None, Any] = dict(names or {})
        self._own: dict[str | None, None] = {}  # names set on this stream, in order
        self._unsure: set[str | None] = set()  # names that some path may not have set
        self._generated: dict[str | None, Symbol] = {}  # the value of each name's last generation
        self._n_forks = 0
        self._is_child = False
        self._ret_value: Any = None
        session.states.append(self)

    # -- appending ----------------------------------------------------------------------

    def __iadd__(self, other: Appendable) -> ProgramState:  # type: ignore[misc]  # of `__add__`
        append(self, other)
        return self

    def __add__(self, other: object) -> NoReturn:
        raise UsageError(
            "a state is appended to in place, and is no part of a sum",
            where=here(),
            hint="write s += …; s.text() is its text",
        )

    __radd__ = __add__

    def _role(self, role: str, expr: Appendable | None) -> Any:
        expr = words.given(expr)
        if expr is None:
            return self._role_scope(role)
        append(self, words.role(role, expr))
        return words.Appended(words.role(role, expr), self)

    @contextmanager
    def _role_scope(self, role: str) -> Iterator[ProgramState]:
        append(self, RoleBegin(role))
        with self.session.scope(self, role):
            yield self
        append(self, RoleEnd(role))

    def system(self, expr: Appendable | None = None) -> Any:
        """Appends a system message, or opens one: `with s.system(): …`."""
        return self._role("system", expr)

    def user(self, expr: Appendable | None = None) -> Any:
        """Appends a user message, or opens one: `with s.user(): …`."""
        return self._role("user", expr)

    def assistant(self, expr: Appendable | None = None) -> Any:
        """Appends an assistant message, or opens one: `with s.assistant(): …`."""
        return self._role("assistant", expr)

    # -- forking ------------------------------------------------------------------------

    def fork(
        self, size: int = 1, position_ids_offset: Sequence[int] | None = None
    ) -> ProgramStateGroup[ProgramState]:
        """`size` streams that continue this one's text and names; this one goes on too.

        position_ids_offset: SGLang's hint for concatenating KV. It changes nothing: positions
        always follow from the text.
        """
        if self.session.is_abstract(size):
            return self.session.open_fork(self, size)  # type: ignore[no-any-return]
        if isinstance(size, bool) or not isinstance(size, int):
            raise UsageError(f"fork takes a whole number, found {shown(size)}", where=here())
        if not 1 <= size <= MAX_CHILDREN:
            raise fork_error(size)
        opened = self.session.large_fork(self, size)
        if opened is not None:
            return opened  # type: ignore[no-any-return]
        results = [("s", types.STREAM)] * (size + 1)
        symbols = self.session.emit("fork", results, stream=Ref(self.symbol.name), n=Lit(size))
        self.symbol = symbols[0]
        paths = self.paths_of_children()
        children = [
            ProgramState(self.session, self.function_name, symbol, f"{paths}.{i}", self._names)
            for i, symbol in enumerate(symbols[1:])
        ]
        for child in children:
            child.continues(self.roles, self._generated, self._unsure)
        return ProgramStateGroup(children, self)

    def paths_of_children(self) -> str:
        """What the paths of the next fork's children begin with; counts the fork."""
        self._n_forks += 1
        return f"{self.path}/:{self._n_forks - 1}"

    def continues(
        self,
        roles: Sequence[str],
        generated: Mapping[str | None, Symbol],
        unsure: Collection[str | None],
    ) -> None:
        """Makes this a child of a stream with these open roles, this last generation, and these
        names that may not be set."""
        self._unsure = set(unsure)
        self._is_child = True
        self.roles = list(roles)
        self._generated = dict(generated)
        self.session.begun(self)

    @contextmanager
    def copy(self, position_ids_offset: Sequence[int] | None = None) -> Iterator[ProgramState]:
        """A stream that continues this one; at exit its new names are gathered here."""
        group = self.fork(1, position_ids_offset)
        try:
            with self.session.scope(group):
                yield group[0]
        finally:
            group.join()

    @contextmanager
    def var_scope(self, name: str) -> Iterator[None]:
        """Names the text appended inside the `with` block."""
        start = self.symbol
        with self.session.scope(self, start):
            yield
        self.set_derived(self._settable(name), self.session.span(start, self.symbol))

    # -- names --------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        late = self.session.late(self, name)
        if late is not None:
            return late.late_variable(self, name)
        if name not in self._names:
            self.session.await_name(self._names, name)
        if name not in self._names:
            raise UnknownVariable.among(name, filter(is_users, self._names), here())
        self.session.note_read(name)
        return self._read(self._names[name])

    def _read(self, value: Any) -> Any:
        if isinstance(value, Symbol):
            return self.session.read(value)
        if isinstance(value, Gathered):
            return [self._read(item) for item in value.items]
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self.set_derived(self._settable(name), value)

    def _settable(self, name: Any) -> str:
        return checked_name(name) if self.session.late(self, name, is_set=True) is None else name

    def set_derived(self, name: str | None, value: Any) -> None:
        """Sets a name to a value of any kind."""
        self.session.note_set(self)
        late = self.session.late(self, name, is_set=True)
        if late is not None and name is not None:
            late.set_late(self, name, value)
            return
        self._names[name] = value
        self._own[name] = None
        self._unsure.discard(name)
        self.session.notify()

    def set_unsure(self, name: str | None, value: Symbol, is_own: bool) -> None:
        """While tracing, sets a name that some path leading here may not have set."""
        self._names[name] = value
        self._unsure.add(name)
        if is_own:
            self._own[name] = None

    def has_surely(self, name: str) -> bool:
        """While tracing, whether a name is set on every path leading here."""
        self.session.note_asked((name,))
        return name in self._names and name not in self._unsure

    def set_generated(self, name: str | None, value: Symbol, is_hidden: bool = False) -> None:
        """Sets a name to the result of a sampling op; if it is hidden, only its meta info."""
        if self.session.late(self, name, is_set=True) is None:
            self._generated[name] = value
        if not is_hidden:
            self.set_derived(name, value)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and (late := self.session.late(self, name)) is not None:
            return late.has_late(self, name)
        self.session.note_asked((name,) if isinstance(name, str) else ())
        return name in self._names

    def get_var(self, name: str) -> Any:
        """The same as `s[name]`."""
        return self[name]

    def text_of(self, name: str) -> str:
        """The same as `s[name]`, of a variable that is a text. Raises UsageError for any other."""
        return text_of(name, self[name])

    def set_var(self, name: str, value: Any) -> None:
        """The same as `s[name] = value`."""
        self[name] = value

    def variables(self) -> dict[str, Any]:
        """Every name with its value; waits until all are set."""
        return {name: value for name, value in self.all_variables().items() if name is not None}

    def all_variables(self) -> dict[str | None, Any]:
        """The same, with the value of the last generation without a name under None."""
        self.session.await_body()
        self.session.refuse_late(self, "all variables are read")
        self.session.note_asked(self._names)
        return {name: self._read(value) for name, value in list(self._names.items())}

    def own_values(self) -> dict[str | None, Any]:
        """Names set on this stream, not on the trunk before the fork, as the session holds them."""
        self.session.refuse_late(self, "a child of a fork is joined, or its turn of a loop ends,")
        return {name: self._names[name] for name in self._own}

    def own_names(self) -> dict[str, Any]:
        """The same, with gathered lists as plain lists, and without the unnamed value."""
        return {name: ungathered(self._names[name]) for name in self._own if is_users(name)}

    def get_meta_info(self, name: str) -> Any:
        """How a variable was generated: finish reason, counts, log-probabilities if asked.

        For a `select`, the choices' log-probabilities and probabilities; a list if several
        texts were drawn; None for a variable that was not generated.
        """
        self.session.refuse_late(self, "get_meta_info() is asked")
        if name not in self._generated:
            self.session.await_name(self._generated, name)
        value = self._generated.get(name)
        return None if value is None else self.session.meta_info(value)

    # -- reading ------------------------------------------------------------------------

    def text(self) -> str:
        """The whole text so far; waits for generations under way."""
        self.session.await_body()
        text: str = self.session.text_of(self.symbol)
        return text

    def messages(self) -> list[dict[str, Any]]:
        """The chat so far as role and content pairs, in OpenAI's form."""
        self.session.await_body()
        return self.session.messages_of(self.symbol)

    def sync(self) -> None:
        """Waits until everything appended is done; raises the error that ended the run if one did.

        After the program's body has ended, it waits for the whole run, forks included.
        """
        self.session.await_body()
        self.session.settled(self.symbol)

    def error(self) -> BaseException | None:
        """The error that ended the run, or None; waits until everything appended so far is done."""
        try:
            self.sync()
        except Exception as error:
            return error
        return None

    @property
    def start_text(self) -> str:
        """The text that a fork's child has from its trunk; empty for other streams."""
        return self.session.text_of(self.start) if self._is_child else ""

    @property
    def ret_value(self) -> Any:
        """What the program's function returned."""
        self.session.await_body()
        return self._ret_value

    @ret_value.setter
    def ret_value(self, value: Any) -> None:
        self._ret_value = value

    def text_iter(self, var_name: str | Sequence[str] | None = None) -> Iterator[Any]:
        """Text as it is generated, if run with `stream=True`; else all of it at once.

        The text of the whole stream, of one variable, or, given a list of names, `StreamedText`
        pieces of all of them in this stream and its forks. Ends when no more text can come, and
        raises the error that ended the run if one did.
        """
        return self.session.text_iter(self, var_name)

    def text_async_iter(
        self, var_name: str | Sequence[str] | None = None, return_meta_data: bool = False
    ) -> AsyncIterator[Any]:
        """The same for asynchronous callers; with meta data, pairs of text and meta info."""
        return self.session.text_async_iter(self, var_name, return_meta_data)

    def cancel(self) -> None:
        """Stops the run that this stream belongs to, and cancels its requests."""
        self.session.cancel()

    @property
    def is_finished(self) -> bool:
        """Whether the run is over."""
        return self.session.is_settled

    @property
    def stream_executor(self) -> StreamExecutorView:
        """SGLang's stream executor, as far as outside code reads it."""
        return StreamExecutorView(self)

    def __repr__(self) -> str:
        error = self.error()
        return f"ProgramState({self.text() if error is None else error})"

    def _repr_html_(self) -> str:
        from sgc.core.notebook import pieces_html

        self.sync()
        return pieces_html(self.session.pieces_of(self.symbol))
