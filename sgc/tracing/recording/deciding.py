"""The tracer's session: tests of values known only at run time, and the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

from sgc.core.places import user_loc
from sgc.core.session import Stream
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.graph import Lit, Operand
from sgc.lang.joins import refuse_test, tested
from sgc.tracing.code.handlers import ends_program
from sgc.tracing.failing import fail_aside
from sgc.tracing.paths.events import raise_at_next_line
from sgc.tracing.paths.exploration import MustExplore, NamesAsked, PathEnd
from sgc.tracing.paths.facts import Fact, Facts
from sgc.tracing.pieces.made import Sites
from sgc.tracing.recording.calling import Calling
from sgc.tracing.values.abstract import (
    INTERPRET,
    AbstractFlag,
    abstract,
    stop,
)
from sgc.tracing.values.abstract_turns import counted
from sgc.tracing.values.computing import attempted, computed
from sgc.tracing.watch.hook import watch_now


class Deciding(Calling):
    """A tracer's session whose runs take one path at each test.

    facts: the outcomes of tests.
    """

    facts: Facts

    def __init__(self, program: str, parameters: Iterable[str], sites: Sites) -> None:
        super().__init__(program, parameters, sites)
        self._tests: dict[str, Fact] = {}

    @unhooked
    def attempt(self, fn: str, *args: Any, raising: Callable[[Any], NoReturn] | None = None) -> Any:
        operands = tuple(self.operand(arg) for arg in args)
        ok, why = self.emit(
            "attempt", [("ok", types.BOOL), ("why", types.TEXT)], fn=Lit(fn), args=operands
        )
        said = abstract(why, self)
        fails = None if raising is None else partial(raising, said)
        return None if self.decide(ok, fails) else said

    def decide(self, test: Symbol, raising: Callable[[], NoReturn] | None = None) -> bool:
        if self.is_testing:
            stop(
                "the predicate of a join decides something itself",
                hint="give one comparison, or several joined by & and | in place of `and` and "
                "`or`; what can fail, such as int(x), is no predicate; or " + INTERPRET,
            )
        if self.path is None:
            self.end(MustExplore())
        self._refuse_ended()
        fact = self._tests.get(test.name, ("is", (("ref", test.name),)))
        known: bool | None = self.facts.outcome(fact, self._options)
        if known is not None:
            self.note_pruned(self.name_of(test))
            return known
        was_fresh = self.path.is_fresh
        if was_fresh and self.is_looking:
            self.look_for_pieces()
        answer = self.path.answer(test, user_loc() if was_fresh else None)
        if answer is None:
            self.end(PathEnd())
        if was_fresh and raising is not None and ends_program():
            fail_aside(self, fact, raising)
        self.facts[fact] = answer
        if self.path.is_fresh and not was_fresh:
            self.retired = self.path.retired()
            watch_now()
        return answer

    def join_tests(self, states: Sequence[Stream], when: Callable[[Any], Any]) -> list[Operand]:
        self.is_testing = True
        try:
            return [self._join_test(tested(state, when)) for state in states]
        finally:
            self.is_testing = False

    def _join_test(self, value: Any) -> Operand:
        if type(value) is not bool and not isinstance(value, AbstractFlag):
            refuse_test()
        return self.scalar(value)

    def note_pruned(self, test: str) -> None:
        """Records a test whose outcome was known, for `sgc explain`."""
        if self.path is not None:
            self.path.exploration.pruned[f"{user_loc()}: {test}"] = None

    def looped(self, loop: Iterator[Any]) -> Iterator[Any]:
        """Notes that one of the language's loops begins; returns the loop."""
        if self.loops is not None:
            self.loops.note(loop)
        return loop

    def counted(self, n: Any) -> Iterator[Any]:
        return self.looped(counted(self, n))

    def joined(self, sep: str, items: Any) -> Any:
        """`sep.join(items)` for an abstract list."""
        items = items.as_list()
        is_of_text = items.symbol.type == types.list_of(types.TEXT)
        return (computed if is_of_text else attempted)(self, "join", sep, items)

    def end(self, error: BaseException) -> NoReturn:
        """Ends this run of the program, even if a handler of the program swallows the error."""
        self.ended = error
        raise error

    def _refuse_ended(self) -> None:
        if self.ended is not None:
            if self.events.root is not None:  # the run goes on
                raise_at_next_line(self.ended, self.events.root)
            raise self.ended

    @unhooked
    def note_read(self, name: str | None) -> None:
        if self.path is not None and self.loops is not None and self.loops.is_caught():
            self.note_asked((name,))

    def note_asked(self, names: Iterable[str | None]) -> None:
        if self.path is None or self.ended is not None:
            return
        try:
            self.path.exploration.ask(names)
        except NamesAsked as asked:
            self.end(asked)
