"""The interpreter's session: each node goes to a running instance as Python reaches it.

The program's body runs on one thread, the instance on an event loop. Reading a value waits
for the loop; so may any other thread that holds one of the run's states.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any

from sgc.errors import SgcError
from sgc.ir.graph import Lit, Node, Operand, Ref
from sgc.runtime.executor.instance import Instance
from sgc.runtime.executor.loop import refuse_own_thread
from sgc.runtime.executor.media import Media
from sgc.runtime.executor.record import RunResult
from sgc.runtime.executor.stream import messages
from sgc.session import Session, here, occurrences, own_texts
from sgc.streaming import Reader, TextLog, follow, follow_async
from sgc.symbols import Symbol

if TYPE_CHECKING:
    from sgc.functions import Function
    from sgc.state import ProgramState


class EagerSession(Session):
    """A program that runs as its Python does. log: what is shown, for a streaming run."""

    def __init__(
        self,
        program: str,
        instance: Instance,
        loop: asyncio.AbstractEventLoop,
        log: TextLog | None = None,
    ) -> None:
        super().__init__(program)
        self.instance = instance
        self.loop = loop
        self.log = log
        self._outbox: deque[Node | tuple[str, Any]] = deque()
        self._values: list[str] = []  # texts from outside that hold special tokens
        self._own: dict[int, str] = {}  # the program's own constants, by identity
        self._objects = 0
        self._changed = threading.Condition()
        self._body_is_over = False
        self._body_error: BaseException | None = None

    # -- nodes --------------------------------------------------------------------------

    def take(self, node: Node) -> None:
        # After an error nothing is done any more; whoever reads gets the error.
        if not self.instance.finished.done():
            self._send(node)

    def _send(self, item: Node | tuple[str, Any]) -> None:
        """Nodes and values share one queue, so that they arrive in order."""
        self._outbox.append(item)
        if len(self._outbox) == 1:
            # Callbacks of the run must not see this thread's program as theirs.
            self.loop.call_soon_threadsafe(self._deliver, context=Context())

    def _deliver(self) -> None:
        nodes = []
        while self._outbox:
            item = self._outbox.popleft()
            if isinstance(item, Node):
                nodes.append(item)
            else:
                self.instance.define(*item)
        self.instance.submit(nodes)

    def body(self, function: Function) -> Callable[..., Any]:
        for text in own_texts(function.python):
            self._own[id(text)] = text
        return super().body(function)

    # -- the body and other threads -----------------------------------------------------

    def adopt_thread(self) -> None:
        """The calling thread is the one that runs the program's body."""
        self._thread = threading.get_ident()

    def body_ended(self, error: BaseException | None) -> None:
        """Marks the end of the program's Python; what it raised is raised to readers."""
        with self._changed:
            self._body_is_over, self._body_error = True, error
            self._changed.notify_all()

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    @property
    def _is_outside(self) -> bool:
        return threading.get_ident() != self._thread

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
            self.instance.finished.result()  # the cause, rather than that the name is unknown

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        return self._body_is_over and self.instance.finished.done()

    # -- reading ------------------------------------------------------------------------

    def read(self, symbol: Symbol) -> Any:
        value = self._await_value(symbol)
        self.note_value(value)
        return value

    def _await_value(self, symbol: Symbol) -> Any:
        found = self.instance.known(symbol.name)
        if found is not None:
            return found[0]
        refuse_own_thread(self.loop)
        future = asyncio.run_coroutine_threadsafe(self.instance.value(symbol.name), self.loop)
        try:
            return future.result()
        except SgcError as error:
            error.where = error.where or here()
            raise
        finally:
            future.cancel()

    def settled(self, state: Symbol) -> None:
        if self._body_is_over:
            self.result()
        else:
            self._await_value(state)

    def text_of(self, state: Symbol) -> Any:
        text: str = self._await_value(state).text()
        self.note_value(text)
        return text

    def messages_of(self, state: Symbol) -> list[dict[str, Any]]:
        return messages(self._await_value(state).pieces())

    def pieces_of(self, state: Symbol) -> list[tuple[str, str]]:
        pieces = self._await_value(state).pieces()
        return [(piece.kind.value, piece.text) for piece in pieces if piece.text]

    def meta_info(self, value: Symbol) -> Any:
        self._await_value(value)
        return self.instance.meta_info(value.name)

    def text_iter(self, state: ProgramState, names: Any) -> Iterator[Any]:
        if self.log is None:
            yield from _at_once(state, names)
            return
        reader = Reader(self.log, state.path, names)
        if names is None and state.start_text:
            yield state.start_text
        yield from follow(reader)
        if isinstance(names, str) and not reader.n_found:
            yield from _at_once(state, names)

    async def text_async_iter(
        self, state: ProgramState, names: Any, with_meta: bool
    ) -> AsyncIterator[Any]:
        if self.log is None:
            for found in await asyncio.to_thread(lambda: list(_at_once(state, names))):
                yield (found, state.get_meta_info(names)) if with_meta else found
            return
        reader = Reader(self.log, state.path, names)
        held: Any = None
        async for found in follow_async(reader):
            if held is not None:
                yield (held, dict(getattr(held, "meta", {}))) if with_meta else held
            held = found
        if isinstance(names, str) and not reader.n_found:
            held = await asyncio.to_thread(lambda: state[names])
        if held is not None:
            meta = await asyncio.to_thread(state.get_meta_info, names) if with_meta else None
            yield (held, meta) if with_meta else held

    # -- the end ------------------------------------------------------------------------

    def result(self) -> RunResult:
        """Waits for the end of the run; raises its first error."""

        async def wait() -> RunResult:
            return await asyncio.shield(self.instance.finished)

        self.await_body()
        refuse_own_thread(self.loop)
        try:
            return asyncio.run_coroutine_threadsafe(wait(), self.loop).result()
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        self.loop.call_soon_threadsafe(self.instance.cancel)

    # -- operands -----------------------------------------------------------------------

    def scalar(self, value: Any) -> Operand:
        if value is None or isinstance(value, (str, int, float, bool)):
            return Lit(value)
        # Any other object a program keeps in a variable: the instance holds it as it is.
        self._objects += 1
        name = self.namer.fresh(f"object.{self._objects}")
        self._send((name, value))
        return Ref(name)

    def media(self, load: Callable[[Any], Media], value: Any) -> Operand:
        return self.scalar(load(value))

    def note_value(self, value: Any) -> None:
        """Remembers a text from outside, so that its special tokens stay plain text."""
        special = self.instance.special
        if isinstance(value, str):
            if special is not None and special.search(value):
                self._values.append(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.note_value(item)

    def text_parts(self, text: str) -> list[tuple[bool, Operand]]:
        special = self.instance.special
        if special is None or not self._values or special.search(text) is None:
            return [(True, Lit(text))]
        if self._own.get(id(text)) is text and text not in self._values:
            return [(True, Lit(text))]
        spans = sorted(occurrences(text, self._values))
        if not spans:
            # It may have been changed on the way (stripped, cut): nothing can be vouched for.
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


def _at_once(state: ProgramState, names: Any) -> Iterator[Any]:
    """All of what a reader wants, when nothing is streamed or a name is no generation's."""
    from sgc.streaming import StreamedText

    if names is None:
        yield state.text()
    elif isinstance(names, str):
        yield state[names]
    else:
        for name in names:
            yield StreamedText(state[name], name, state.path)
