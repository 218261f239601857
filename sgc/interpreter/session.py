"""The interpreter's session: each node goes to a running instance as Python reaches it.

The program's body runs on one thread, the instance on an event loop. Reading a value waits for the
loop; other threads that hold one of the run's states may wait for it too.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from sgc.core.failures import RunOver, told
from sgc.core.places import here, own_texts, placed
from sgc.core.session import Session, Stream
from sgc.core.symbols import Symbol
from sgc.core.texts import occurrences, texts_in
from sgc.errors import SgcError, UsageError
from sgc.interpreter.following import pieces_of, pieces_with_meta
from sgc.ir.graph import Lit, Node, Operand, Ref
from sgc.ir.types import Kind
from sgc.lang.joins import refuse_test, tested
from sgc.runs.streaming import TextLog
from sgc.runtime.executor.instance import Instance
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.interface.media import Media
from sgc.runtime.executor.ops.winners import next_of
from sgc.runtime.executor.run.loop import Loop
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.executor.run.stream import messages
from sgc.runtime.executor.run.values import Lost, lost_error

if TYPE_CHECKING:
    from sgc.lang.maps import MapCall, MappedStates
    from sgc.runtime.executor.interface.tools import ToolImpl

T = TypeVar("T")


MAX_HELPERS = 256  # threads of all maps of one run


class EagerSession(Session):
    """A program that runs as its Python does. log: the text shown by a streaming run."""

    def __init__(
        self,
        program: str,
        instance: Instance,
        loop: Loop,
        map_with: Callable[[EagerSession, MapCall], MappedStates],
        log: TextLog | None = None,
    ) -> None:
        super().__init__(program)
        self._map_with = map_with
        self.instance = instance
        self.loop = loop
        self.log = log
        self._outbox: deque[Node | tuple[str, Any]] = deque()
        self._values: list[str] = []  # texts from outside that hold special tokens
        self._own: dict[int, str] = {}  # the program's own constants, by identity
        self._given: dict[int, str] = {}  # texts of its arguments, by identity
        self._drawn: set[str] = set()  # texts read that a model may have written
        self._objects = 0
        self._changed = threading.Condition()
        self.depth = 0  # the depth of the mapped call that the session runs
        self.helpers = threading.BoundedSemaphore(MAX_HELPERS)
        self._body_is_over = False
        self._body_error: BaseException | None = None

    # -- nodes --------------------------------------------------------------------------

    def take(self, node: Node) -> None:
        # After an error, nothing is done any more; readers get the error.
        if not self.instance.finished.done():
            self._send(node)

    def _send(self, item: Node | tuple[str, Any]) -> None:
        """Sends a node or a value; both share one queue, so that they arrive in order."""
        self._outbox.append(item)
        if len(self._outbox) == 1:
            self.loop.soon(self._deliver)

    def _deliver(self) -> None:
        nodes = []
        while self._outbox:
            item = self._outbox.popleft()
            if isinstance(item, Node):
                nodes.append(item)
            else:
                self.instance.define(*item)
        self.instance.submit(nodes)

    def allow_tool(self, tool: ToolImpl) -> None:
        self.instance.tools.allow([tool])

    def body(self, python: FunctionType) -> Callable[..., Any]:
        is_counted = self.is_counted and self.overlays is None
        body: Callable[..., Any] = _counted(python) if is_counted else super().body(python)
        for each in {python, body}:
            self._own |= {id(text): text for text in own_texts(each)}  # type: ignore[arg-type]
        return body

    def is_caught(self) -> bool:
        from sgc.tracing.code.handlers import is_caught

        return is_caught()

    def raise_failed(self, value: Symbol) -> None:
        found = self.instance.values.known(value.name)
        try:
            if found is None:
                found = (self._await(self.instance.values.value(value.name)),)
        except SgcError as error:  # it has ended the run, and no handler may continue it
            raise RunOver(error) from error
        (given,) = found
        if type(given) is Failed:
            self.note_value(given.why)
            self._drawn.update(texts_in(given.why))
            raise told(given)

    # -- maps ---------------------------------------------------------------------------

    def map(self, call: MapCall) -> MappedStates:
        return self._map_with(self, call)

    def part(self, instance: Instance) -> EagerSession:
        """The session of a mapped call, which knows the same texts as this session."""
        part = EagerSession(instance.context.program, instance, self.loop, self._map_with)
        part.depth, part.helpers = self.depth + 1, self.helpers
        part.stack.default_heal = self.stack.heal
        part.stack.default_max_turns = self.stack.max_turns
        part._values, part._drawn = list(self._values), set(self._drawn)
        part._own, part._given = dict(self._own), dict(self._given)
        return part

    def share(self, whole: EagerSession) -> None:
        """From now on, notes values that are read of this part in the `whole` session."""
        self._values, self._drawn = whole._values, whole._drawn

    def failure(self) -> BaseException | None:
        """The error with which the run has failed; None if it has not."""
        finished = self.instance.finished
        is_failed = finished.done() and not finished.cancelled()
        return finished.exception() if is_failed else None

    def fail(self, error: BaseException) -> None:
        """Ends the run, so that its readers get the error."""
        self.loop.soon(self.instance.fail, None, error)

    # -- the body and other threads -----------------------------------------------------

    def adopt_thread(self) -> None:
        """Notes that the calling thread runs the program's body."""
        self.stack.adopt_thread()

    def body_ended(self, error: BaseException | None) -> None:
        """Marks the end of the program's Python; an error that it raised is raised to readers."""
        with self._changed:
            self._body_is_over, self._body_error = True, error
            self._changed.notify_all()

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    @property
    def _is_outside(self) -> bool:
        return self.stack.is_other_thread

    def await_body(self) -> None:
        if self._is_outside and not self._body_is_over:
            with self._changed:
                self._changed.wait_for(lambda: self._body_is_over)
        if self._body_error is not None:
            raise self._body_error

    def await_name(self, names: Mapping[str | None, Any], name: str) -> None:
        if self._is_outside and not self._body_is_over:
            with self._changed:
                self._changed.wait_for(lambda: name in names or self._body_is_over)
        if name in names:
            return
        if self._body_error is not None:
            raise self._body_error
        if self.instance.finished.done():
            self.instance.finished.result()  # raises the cause, not that the name is unknown

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        return self._body_is_over and self.instance.finished.done()

    # -- reading ------------------------------------------------------------------------

    def read(self, symbol: Symbol) -> Any:
        value = self._await_value(symbol)
        # The program itself has written every choice of a select.
        return self._noted(value, is_drawn=symbol.type.kind is not Kind.CHOICE)

    def _noted(self, value: T, is_drawn: bool = True) -> T:
        """Notes a value that the program reads. is_drawn: whether a model may have written it."""
        self.note_value(value)
        if is_drawn:
            self._drawn.update(texts_in(value))
        return value

    def _await_value(self, symbol: Symbol) -> Any:
        found = self.instance.values.known(symbol.name)
        value = self._await(self.instance.values.value(symbol.name)) if found is None else found[0]
        if type(value) is Lost:
            error = lost_error(value)
            error.where = here()
            raise error
        return value

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        with placed():
            return self.loop.run(work)

    def settled(self, state: Symbol) -> None:
        if self._body_is_over:
            self.result()
        else:
            self._await_value(state)

    def text_of(self, state: Symbol) -> Any:
        return self._noted(self._await_value(state).text())

    def messages_of(self, state: Symbol) -> list[dict[str, Any]]:
        return self._noted(messages(self._await_value(state).pieces()))

    def pieces_of(self, state: Symbol) -> list[tuple[str, str]]:
        pieces = self._await_value(state).pieces()
        return [(piece.kind.value, piece.text) for piece in pieces if piece.text]

    def meta_info(self, value: Symbol) -> Any:
        self._await_value(value)
        found = self.instance.requests.meta_info(value.name)
        return self._noted(found)  # it holds the texts of tokens

    def text_iter(self, state: Stream, names: Any) -> Iterator[Any]:
        return map(self._noted, pieces_of(self.log, state, names))

    def text_async_iter(self, state: Stream, names: Any, with_meta: bool) -> AsyncIterator[Any]:
        return pieces_with_meta(self.log, state, names, with_meta)

    # -- the end ------------------------------------------------------------------------

    def result(self) -> RunResult:
        """Waits for the end of the run; raises its first error."""

        async def wait() -> RunResult:
            try:
                return await asyncio.shield(self.instance.finished)
            finally:
                await self.instance.settle()

        self.await_body()
        try:
            return self.loop.run(wait())
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        self.loop.soon(self.instance.cancel)

    # -- operands -----------------------------------------------------------------------

    def scalar(self, value: Any) -> Operand:
        if value is None or isinstance(value, (str, int, float, bool)):
            return Lit(value)
        # Any other object in a variable of the program: the instance holds the object itself.
        self._objects += 1
        name = self.namer.fresh(f"object.{self._objects}")
        self._send((name, value))
        return Ref(name)

    # -- joins --------------------------------------------------------------------------

    def join_tests(self, states: Sequence[Stream], when: Callable[[Any], Any]) -> list[Operand]:
        return [Ref(self.namer.fresh("test")) for _ in states]

    def run_join_tests(
        self,
        states: Sequence[Stream],
        when: Callable[[Any], Any],
        tests: list[Operand],
        winners: Symbol,
    ) -> None:
        is_ordered = self.instance.context.options.ordered_joins
        left = {state.symbol.name: n for n, state in enumerate(states)}
        while left:
            names = [*left] if is_ordered else [*left, winners.name]
            name = self._await(next_of(self.instance, names))
            if name not in left:
                break
            index = left.pop(name)
            is_met = tested(states[index], when)
            if type(is_met) is not bool:
                refuse_test()
            self._answer(tests[index], is_met)
        for index in left.values():  # no longer needed, but nothing may wait for them
            self._answer(tests[index], False)

    def _answer(self, test: Operand, is_met: bool) -> None:
        assert isinstance(test, Ref)
        self._send((test.name, is_met))

    def media(self, load: Callable[[Any], Media], value: Any) -> Operand:
        name = os.fspath(value) if isinstance(value, os.PathLike) else value
        if isinstance(name, str) and self._is_drawn(name):
            raise UsageError(
                f"an image's file is named by a text that was generated: {name[:80]!r}",
                where=here(),
                hint="choose among files of your own, with select or a dict; a model's reply may "
                "name any file of this machine",
            )
        return self.scalar(load(value))

    def _is_drawn(self, text: str) -> bool:
        """Whether a text may be a model's, and is neither the program's own nor an argument's."""
        is_known = self._own.get(id(text)) is text or self._given.get(id(text)) is text
        return text in self._drawn and not is_known

    def note_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Remembers the texts that the program was given."""
        for text in texts_in(arguments):
            self._given[id(text)] = text
        self.note_value(arguments)

    def as_value(self, value: Any) -> Any:
        return self._noted(value)

    def note_value(self, value: Any) -> None:
        """Remembers the texts of a value from outside: their special tokens stay plain text."""
        special = self.instance.context.special
        if special is not None:
            self._values.extend(text for text in texts_in(value) if special.search(text))

    def text_parts(self, text: str) -> list[tuple[bool, Operand]]:
        special = self.instance.context.special
        if special is None or not self._values or special.search(text) is None:
            return [(True, Lit(text))]
        if self._own.get(id(text)) is text and text not in self._values:
            return [(True, Lit(text))]
        spans = sorted(occurrences(text, self._values))
        if not spans:
            # The text may have been changed (stripped, cut), so its origin is not certain.
            return [(False, Lit(text))]
        parts: list[tuple[bool, Operand]] = []
        at = 0
        for start, end in spans:
            if end <= at:
                continue
            start = max(start, at)
            parts += [(True, Lit(text[at:start])), (False, Lit(text[start:end]))]
            at = end
        parts.append((True, Lit(text[at:])))
        return [part for part in parts if part[1] != Lit("")]


def _counted(python: FunctionType) -> FunctionType:
    """A program's function that counts the turns of its loops, for `max_turns`."""
    from sgc.tracing.convert.source import NoSource, counted

    try:
        return counted(python)
    except NoSource as error:
        raise UsageError(
            f"{python.__name__} has max_turns, and its loops cannot be read: {error}",
            where=f"{os.path.basename(python.__code__.co_filename)}:"
            f"{python.__code__.co_firstlineno}",
            hint="write it into a file and import that, or loop over sgc.turns(n)",
        ) from error
