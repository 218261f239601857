"""The trace check: compares a traced graph with the interpreter.

Both run on the same scripted replies, chosen to be nasty. Their requests, texts and variables must
be equal, or compiling fails and names the first line that differs. The check cannot find an error
in code that treats all the texts tried here alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from sgc.core.garbage import fewer_collections
from sgc.core.places import innermost_user_line, own_texts
from sgc.core.stops import TraceStop
from sgc.errors import (
    ProgramRaised,
    SgcError,
    TraceError,
)
from sgc.ir.graph import Graph
from sgc.ir.op_specs import Flag
from sgc.lang.definition import Definition
from sgc.runtime.executor.code.fuel import Allowance
from sgc.runtime.executor.interface.failures import forget_frames
from sgc.runtime.executor.interface.value_limits import LimitExceeded
from sgc.runtime.executor.run.loop import (
    Loop,
    OwnLoop,
    is_loop_running,
    refuse_own_thread,
    shared,
)
from sgc.runtime.executor.run.record import RunResult
from sgc.tracing.checking.capturing import capturing
from sgc.tracing.checking.comparing import (
    compare,
    compare_asked,
    compare_classes,
    compare_shown,
)
from sgc.tracing.checking.deadline import Deadline, Overdue
from sgc.tracing.checking.pair import Ended, Recorded, run_compiled, run_interpreted
from sgc.tracing.checking.rounds import has_long, rounds
from sgc.tracing.checking.scripted_arguments import Arguments
from sgc.tracing.checking.trials import Search, Trial, Walk
from sgc.tracing.pieces.in_python import PiecesInPython

NEW_OBJECTS = 200_000  # between two collections of garbage: a run keeps its values to its end
MAX_ROUNDS = 72
N_ROUNDS, N_MORE = 24, 12  # before the trials of unreached arms, and after them
# The bound on one check, in rounds times the program's nodes: a count, not a time, so that a slow
# machine does not check less.
MAX_WORK = 40_000
MIN_ROUNDS = 4
MAX_ASKED_IN_ALL = 4000  # requests of all runs
# Steps of a graph's code: of one piece, beyond which a run is not compared, as Python might take
# for ever; and of all runs.
MAX_STEPS, MAX_STEPS_IN_ALL = 1_000_000, 20_000_000
# Of one run, which may never end without making a request; a program that is compiled when it is
# called is rather interpreted.
MAX_RUN_S, MAX_STRICT_RUN_S = 10.0, 4.0

Outcome = RunResult | SgcError


def check_trace(
    function: Definition,
    graph: Graph,
    bound: Mapping[str, Any],
    in_python: PiecesInPython | None = None,
    is_strict: bool = False,
) -> None:
    """Raises TraceError at the first line where graph and interpreter differ. in_python: the pieces
    that run in Python, which the check replaces by scripted results. is_strict: the program is
    compiled as it is called."""
    refuse_own_thread(shared.loop)
    seconds = MAX_STRICT_RUN_S if is_strict else MAX_RUN_S
    with (
        fewer_collections(NEW_OBJECTS), capturing(), _loop() as loop, Deadline(seconds) as deadline,
    ):  # fmt: skip
        _Check(function, graph, bound, in_python, loop, deadline, is_strict).run()


@contextmanager
def _loop() -> Iterator[Loop]:
    """The event loop for the runs: this thread's own, if the thread may run one."""
    if is_loop_running():
        yield shared
        return
    loop = OwnLoop()
    try:
        yield loop
    finally:
        loop.close()


class _Check:
    """One check: rounds of replies, then trials of arms that these have not reached."""

    def __init__(
        self,
        function: Definition,
        graph: Graph,
        bound: Mapping[str, Any],
        in_python: PiecesInPython | None,
        loop: Loop,
        deadline: Deadline,
        is_strict: bool,
    ) -> None:
        self._function, self._graph, self._bound = function, graph, bound
        self._in_python, self._is_strict = in_python, is_strict
        self._loop, self._deadline, self._steps = loop, deadline, Allowance(MAX_STEPS)
        self._given, self._own = Arguments(graph), _own_texts(function)
        self._search = Search(graph, self._given, self._own)
        self._is_one_by_one = _asks_one_by_one(graph)
        self._n_asked = 0
        self._is_slow = False  # compiled, on long texts
        self._is_compared = False

    def run(self) -> None:
        for number, trial in enumerate(self._trials()):
            is_much = self._n_asked > MAX_ASKED_IN_ALL or self._steps.used > MAX_STEPS_IN_ALL
            if number >= MIN_ROUNDS and is_much:
                return
            if not (self._is_slow and has_long(trial.arguments.values())):
                self._try(trial)

    def _trials(self) -> Iterator[Trial]:
        """Rounds, then trials of arms that they have not reached, then more rounds."""
        n_trials = min(MAX_ROUNDS, max(MIN_ROUNDS, MAX_WORK // max(self._graph.n_nodes, 1)))
        more = enumerate(islice(rounds(self._own), N_ROUNDS + N_MORE))
        for number in range(n_trials):
            trial = self._search.next(number) if number >= N_ROUNDS else None
            if trial is None:
                found = next(more, None)
                if found is None:
                    return
                trial = Trial.of(*found, self._given)
            yield trial

    def _try(self, trial: Trial) -> None:
        """Runs both ways, unless the compiled run shows that it need not be compared."""
        walk, n_before = Walk(), self._steps.used
        arguments, is_long = trial.arguments, has_long(trial.arguments.values())
        backends = Recorded(trial, walk.asked), Recorded(trial)
        compiled: Outcome | None = None
        try:
            with self._deadline.run(), self._steps:
                compiled = _attempt(
                    run_compiled, self._graph, backends[0], arguments, self._loop, walk
                )
            is_limited = isinstance(compiled, LimitExceeded)
            is_spent = is_limited and self._steps.used - n_before >= MAX_STEPS
            self._n_asked += backends[0].asked.total()
            is_wanted = self._search.note(trial, walk) or trial.is_round or _fails(compiled)
            # At a limit, as a long reply may reach, Python would go on with what it cannot hold.
            is_over = is_limited and (is_spent or not is_long)
            if not is_wanted or (is_over and self._is_compared):
                return
            with self._deadline.run():
                interpreted = _attempt(
                    run_interpreted, self._function, backends[1], self._bound, arguments,
                    self._given.schemas, self._in_python, self._loop,
                )  # fmt: skip
        except Overdue as overdue:
            if compiled is None and is_long:
                self._is_slow = True
                return
            raise _endless(self._function, arguments, overdue, self._deadline.seconds) from None
        self._n_asked += backends[1].asked.total()
        is_too_long = is_limited and (is_spent or is_long)
        are_ended = isinstance(compiled, Ended) and isinstance(interpreted, Ended)
        if (are_ended and self._is_one_by_one) or is_too_long:
            assert isinstance(compiled, SgcError)
            compare_asked(self._function, compiled, *(each.asked for each in backends))
        else:
            self._compare(compiled, interpreted, *backends)

    def _compare(
        self, compiled: Outcome, interpreted: Outcome, ours: Recorded, theirs: Recorded
    ) -> None:
        function = self._function
        compare(function, compiled, interpreted)
        self._is_compared = True
        if isinstance(compiled, SgcError) or isinstance(interpreted, SgcError):
            return
        compare_shown(function, ours.shown, theirs.shown, is_in_order=not self._graph.called)
        if self._is_strict:
            compare_classes(function, compiled.ret_value, theirs.returned)


def _fails(outcome: Outcome) -> bool:
    """Whether a run ended with an error that is not the program's own."""
    return isinstance(outcome, SgcError) and not isinstance(outcome, ProgramRaised)


def _attempt(run: Callable[..., RunResult], *arguments: Any) -> Outcome:
    """A run's result or error: runs that fail alike (on an empty choice, say) agree."""
    try:
        return run(*arguments)
    except TraceStop as stopped:  # of a builtin that a check does not run either
        raise stopped.error from None
    except TraceError:
        raise
    except SgcError as error:
        if isinstance(error.__cause__, Overdue):
            raise error.__cause__ from None
        forget_frames(error)  # they hold the run's values, which would become cyclic garbage
        return error


def _own_texts(function: Definition) -> Sequence[str]:
    """The program's own texts and their words, with which its tests may compare."""
    found: dict[str, None] = {}
    for text in own_texts(function.python):
        found.update(dict.fromkeys([text, *re.findall(r"\w+", text)]))
    return tuple(found)


def _endless(
    function: Definition, arguments: Mapping[str, Any], overdue: Overdue, seconds: float
) -> TraceError:
    shown = ", ".join(f"{name}={value!r:.40}" for name, value in arguments.items())
    return TraceError(
        f"{function.name} did not end within {seconds:g} s when it was tried with "
        f"{shown or 'no arguments'}",
        where=innermost_user_line(overdue) or str(function.loc),
        hint="give its loops a bound that does not depend on arguments or replies, raise an error "
        "for arguments that it is not for, or compile it without the check",
    )


def _asks_one_by_one(graph: Graph) -> bool:
    """Whether the graph has a single stream, so that its runs make requests in one order."""
    begun = [node for node in graph.all_nodes() if Flag.BEGINS in node.flags]
    return len(begun) <= 1 and not any(Flag.CALLS in node.flags for node in graph.all_nodes())
