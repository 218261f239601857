"""The trace check: compares a traced graph with the interpreter.

Both run on the same scripted replies, chosen to be nasty. Their requests, texts and variables must
be equal, or compiling fails and names the first line that differs. The check cannot find an error
in code that treats all the texts tried here alike.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from sgc.core.garbage import fewer_collections
from sgc.core.places import innermost_user_line, own_texts
from sgc.core.session import replay_overlays
from sgc.core.stops import TraceStop
from sgc.errors import (
    ProgramError,
    ProgramRaised,
    SgcError,
    TraceError,
)
from sgc.interpreter.calls import finished, start_eager
from sgc.ir.analysis.host_calls import pieces_in_python
from sgc.ir.graph import Graph
from sgc.ir.op_specs import Flag
from sgc.lang.definition import Definition
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.code.fuel import Allowance
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.backend import Prompt, Sampling
from sgc.runtime.executor.interface.failures import forget_frames
from sgc.runtime.executor.interface.tools import Shown, ToolImpl
from sgc.runtime.executor.interface.value_limits import LimitExceeded
from sgc.runtime.executor.run.loop import (
    Loop,
    OwnLoop,
    is_loop_running,
    refuse_own_thread,
    shared,
)
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.tracing.body import copied
from sgc.tracing.checking.capturing import capturing, shown_to
from sgc.tracing.checking.comparing import (
    compare,
    compare_asked,
    compare_classes,
    compare_shown,
)
from sgc.tracing.checking.deadline import Deadline, Overdue
from sgc.tracing.checking.rounds import Draw, has_long, rounds
from sgc.tracing.checking.scripted_arguments import Arguments
from sgc.tracing.checking.scripted_replies import obeying
from sgc.tracing.checking.scripted_tools import ScriptedTools
from sgc.tracing.checking.trials import Search, Trial, Walk
from sgc.tracing.failing import message_of
from sgc.tracing.object_arguments import as_objects, classes_of
from sgc.tracing.operators.code.in_python import Scripted, scripting
from sgc.tracing.overlays.namespace import Overlays
from sgc.tracing.pieces.in_python import PiecesInPython
from sgc.tracing.pieces.made import Sites

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
MAX_RUN_S, MAX_STRICT_RUN_S = 10.0, 2.0
MAX_ASKED = 300  # requests of one run: a loop may wait for a reply that never comes


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
        fewer_collections(NEW_OBJECTS),
        _loop() as loop,
        Deadline(seconds) as deadline,
        capturing(),
    ):
        _check(function, graph, bound, in_python, loop, deadline, is_strict)


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


def _check(
    function: Definition,
    graph: Graph,
    bound: Mapping[str, Any],
    in_python: PiecesInPython | None,
    loop: Loop,
    deadline: Deadline,
    is_strict: bool,
) -> None:
    n_asked, given, is_one_by_one = 0, Arguments(graph), _asks_one_by_one(graph)
    is_slow = False  # compiled, on long texts
    is_compared = False
    own = _own_texts(function)
    search, steps = Search(graph, given, own), Allowance(MAX_STEPS)
    for number, trial in enumerate(_trials(graph, given, own, search)):
        is_much = n_asked > MAX_ASKED_IN_ALL or steps.used > MAX_STEPS_IN_ALL
        if number >= MIN_ROUNDS and is_much:
            return
        arguments, walk = trial.arguments, Walk()
        if is_slow and has_long(arguments.values()):
            continue
        backends, n_before = (_Recorded(trial, walk.asked), _Recorded(trial)), steps.used
        compiled: RunResult | SgcError | None = None
        try:
            with deadline.run(), steps:
                compiled = _attempt(_run_compiled, graph, backends[0], arguments, loop, walk)
            n_asked += backends[0].asked.total()
            is_new = search.note(trial, walk)
            is_spent = isinstance(compiled, LimitExceeded) and steps.used - n_before >= MAX_STEPS
            if not (is_new or trial.is_round or _fails(compiled)) or (is_spent and is_compared):
                continue
            with deadline.run():
                interpreted = _attempt(
                    _run_interpreted, function, backends[1], bound, arguments, given.schemas,
                    in_python, loop,
                )  # fmt: skip
        except Overdue as overdue:
            if compiled is None and has_long(arguments.values()):
                is_slow = True
                continue
            raise _endless(function, arguments, overdue, deadline.seconds) from None
        n_asked += backends[1].asked.total()
        is_limited = isinstance(compiled, LimitExceeded)
        is_too_long = is_limited and (is_spent or has_long(arguments.values()))
        are_ended = isinstance(compiled, _Ended) and isinstance(interpreted, _Ended)
        if (are_ended and is_one_by_one) or is_too_long:
            assert isinstance(compiled, SgcError)
            compare_asked(function, compiled, *(each.asked for each in backends))
        else:
            compare(function, compiled, interpreted)
            is_compared = True
            if not (isinstance(compiled, SgcError) or isinstance(interpreted, SgcError)):
                ours, theirs = (each.shown for each in backends)
                compare_shown(function, ours, theirs, is_in_order=not graph.called)
                if is_strict:
                    compare_classes(function, compiled.ret_value, backends[1].returned)


def _trials(graph: Graph, given: Arguments, own: Sequence[str], search: Search) -> Iterator[Trial]:
    """Rounds, then trials of arms that they have not reached, then more rounds."""
    n_trials = min(MAX_ROUNDS, max(MIN_ROUNDS, MAX_WORK // max(graph.n_nodes, 1)))
    more = enumerate(islice(rounds(own), N_ROUNDS + N_MORE))
    for number in range(n_trials):
        trial = search.next(number) if number >= N_ROUNDS else None
        if trial is None:
            found = next(more, None)
            if found is None:
                return
            trial = Trial.of(*found, given)
        yield trial


def _fails(outcome: RunResult | SgcError) -> bool:
    """Whether a run ended with an error that is not the program's own."""
    return isinstance(outcome, SgcError) and not isinstance(outcome, ProgramRaised)


def _attempt(run: Callable[..., RunResult], *arguments: Any) -> RunResult | SgcError:
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


class _Ended(ProgramError):
    """Ends a run of the check."""


class _Recorded(ScriptedBackend):
    """A scripted backend whose replies depend on the end of the prompt only, so that a request
    costs the same for any prompt.

    asked: how often each request was made. shown: what the program showed, and where. returned:
    what its Python has returned, if it is interpreted.
    """

    def __init__(self, trial: Trial, noted: list[tuple[int, str]] | None = None) -> None:
        super().__init__(self._reply_to, self._preferred)
        self.trial, self._noted = trial, noted
        self.asked: Counter[str] = Counter()
        self.shown: list[Shown] = []
        self.returned: Any = None

    def _reply_to(self, prompt: Prompt, sampling: Sampling) -> str:
        draw, n_chars = self._drawn(prompt, sampling.max_tokens)
        key = f"{draw.number}/{_end(prompt)}/{sampling.seed}"
        reply = obeying(sampling, _index(key), draw.texts)
        if self._noted is not None:
            self._noted.append((n_chars, reply))
        return reply

    def _preferred(self, prompt: Prompt, choices: tuple[str, ...]) -> int:
        draw, n_chars = self._drawn(prompt, choices)
        if self._noted is not None:
            self._noted.append((n_chars, ""))
        return _index(f"{draw.number}/{_end(prompt)}/{choices!r}") % len(choices)

    def _drawn(self, prompt: Prompt, what: object) -> tuple[Draw, int]:
        """The draw for the reply to a request, and the number of characters of its prompt."""
        if self.asked.total() >= MAX_ASKED:
            raise _Ended(f"the check ends a run after {MAX_ASKED} requests")
        text = "".join(segment.text for segment in prompt)
        self.asked[f"{len(text)}/{_index(text)}/{what!r}"] += 1
        return self.trial.draw_for(len(text)), len(text)


def _end(prompt: Prompt) -> str:
    return "".join(segment.text[-200:] for segment in prompt[-3:]) + f"/{len(prompt)}"


def _index(key: str) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _run_compiled(
    graph: Graph, backend: _Recorded, arguments: Mapping[str, Any], loop: Loop, walk: Walk
) -> RunResult:
    pieces = {node.text("name"): node for node in pieces_in_python(graph)}
    scripted = _tools(backend.trial)
    tools = [
        ToolImpl(name, node.text("source"), scripted.piece(name, node.results[0].type))
        for name, node in pieces.items()
    ]
    options = _options(backend)
    return loop.run(run_graph(graph, backend, arguments, options, tools=tools, on_block=walk.note))


def _tools(trial: Trial) -> ScriptedTools:
    return ScriptedTools(trial.first, trial.tools, trial.keys)


def _options(backend: _Recorded) -> RunOptions:
    """Options for both runs. Every tool is scripted, as a check must not call the program's own.
    Joins are ordered, as timing differs between the two runs.
    """
    seed, tools = backend.trial.first.number, _tools(backend.trial)
    return RunOptions(seed=seed, allow_tools=tools, ordered_joins=True,
                      on_show=backend.shown.append)  # fmt: skip


def _run_interpreted(
    function: Definition,
    backend: _Recorded,
    bound: Mapping[str, Any],
    arguments: Mapping[str, Any],
    schemas: Mapping[str, Any],
    in_python: PiecesInPython | None,
    loop: Loop,
) -> RunResult:
    classes = classes_of(function)
    arguments = {n: as_objects(v, schemas.get(n, {}), classes) for n, v in arguments.items()}
    given = function.signature.bind((), {**bound, **arguments})
    given = {name: copied(value) for name, value in given.items()}
    # The body is only checked: it runs on copies of the data that it reads, and prints nothing.
    overlays = Overlays(is_converting=False, sites=Sites(in_python=in_python))
    replaying, pieces = (
        replay_overlays.set(overlays),
        scripting.set(_scripted(backend.trial, in_python)),
    )
    try:
        with shown_to(backend.shown.append):
            state = start_eager(function, given, backend, _options(backend), loop)
        backend.returned = state.ret_value
        return finished(state)
    except SgcError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {message_of(error)}"
        raise ProgramRaised(message, where=innermost_user_line(error)) from error
    finally:
        replay_overlays.reset(replaying)
        scripting.reset(pieces)
        overlays.put_back_all()  # what is left to the interpreter may change objects outside


def _scripted(trial: Trial, in_python: PiecesInPython | None) -> Scripted | None:
    """The stand-in for pieces that run in Python, in an interpreted run."""
    if in_python is None:
        return None
    scripted = _tools(trial)

    def piece(key: str, values: tuple[Any, ...]) -> Any:
        found = in_python.found[key]
        return scripted.piece(found.impl.name, in_python.gives[key])(*values)

    return piece
