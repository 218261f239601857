"""Runs random programs interpreted and compiled, compares the runs, and measures coverage."""

from __future__ import annotations

import io
import linecache
import sys
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any

from control_flow import outcome, replying
from random_control import ARMS, BLOCKS, ENDS, NOT_IN_ROLE, SIMPLE, Generator
from random_control_program import Made
from random_control_shrink import shrunk
from random_control_tree import Mark, Statement

from sgc.errors import (
    ProgramError,
    SgcError,
    TraceError,
    TurnsExceeded,
    UnknownVariable,
    UsageError,
)
from sgc.ir.graph import Graph
from sgc.lang.tools import resolve_tools, tools_in
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.interface.value_limits import LimitExceeded
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.checking.rounds import text_of_length
from sgc.tracing.paths.exploration import Budget, Report
from sgc.tracing.tracer import trace

BUDGET = Budget()
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"q": "ab", "p": "yes", "n": 2, "is_long": True},
    {"q": "yes", "p": "no", "n": 3, "is_long": False},
)
EQUAL = ({"q": "yes", "p": "yes", "n": 2, "is_long": True},)
LONG: tuple[dict[str, Any], ...] = (
    {"q": text_of_length(300), "p": "", "n": 1, "is_long": False},
    {"q": "y", "p": text_of_length(5000), "n": 2, "is_long": True},
)
LONGEST = ({"q": text_of_length(50_000), "p": "no", "n": 2, "is_long": True},)
LONG_REPLIES = ("", "y", "no", text_of_length(300), text_of_length(5000))
POOLS: tuple[tuple[str, ...], ...] = (
    ("yes", "no"),
    ("yes", "no", "7", " a b", "Yes!"),
    ("12", "no", "x,y", "yes it is"),
)
CASES: tuple[tuple[tuple[str, ...], Sequence[dict[str, Any]]], ...] = (
    *((pool, ARGUMENTS) for pool in POOLS),
    (("yes", "yes", "no"), EQUAL),
    (LONG_REPLIES, LONG),
)
LONGEST_CASE = ((*LONG_REPLIES, text_of_length(50_000)), LONGEST)
N_RUNS = 2  # of each case
LONGEST_EVERY = 10  # programs
N_WATCHED = 3  # programs whose results each construct must affect
MAX_TIMES = 2000  # that one line may run


@dataclass
class Tally:
    """The coverage of a run over many programs."""

    n_programs: int = 0
    n_over_budget: int = 0
    n_unmerged: int = 0  # the verifier refused the merged paths
    n_untraced: Counter[str] = field(default_factory=Counter)
    n_runs: int = 0
    n_bounded: int = 0  # compiled runs that ended at max_turns, as the interpreted ones do
    n_refused: int = 0  # compiled runs that ended in saying that they cannot go on
    n_errors: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)  # watched constructs
    mattered: Counter[str] = field(default_factory=Counter)
    work: list[int] = field(default_factory=list)  # of completely traced programs
    constructs: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_arms: int = 0
    n_reached: int = 0

    def note(self, made: Made) -> None:
        self.n_programs += 1
        self.drawn.update({mark.kind for mark in made.marks})
        for block, outer in ((made.called, "top"), (made.body, "top")):
            self._note(block, outer)

    def _note(self, block: list[Statement], outer: str) -> None:
        for statement in block:
            if statement.kind != "case":
                self.constructs[statement.kind] += 1
                self.pairs[outer, statement.kind] += 1
            kind = outer if statement.kind == "case" else statement.kind
            for inner in statement.blocks:
                self._note(inner, kind)

    def __str__(self) -> str:
        share = 100 * self.n_over_budget / max(1, self.n_programs)
        arms = 100 * self.n_reached / max(1, self.n_arms)
        return (
            f"{self.n_programs} programs, {self.n_runs} runs; over budget {share:.1f} %; "
            f"unmerged {self.n_unmerged}; ended at max_turns {self.n_bounded}; "
            f"refused {100 * self.n_refused / max(1, 2 * self.n_runs):.2f} % of runs; "
            f"mattered {len(self.mattered)} of {len(self.drawn)}; work {spread(self.work)}; "
            f"not traced {dict(self.n_untraced)}; errors {dict(self.n_errors)}; "
            f"{len(self.constructs)} constructs, {len(self.pairs)} pairs; arms {arms:.0f} %"
        )


def spread(counts: list[int]) -> str:
    """The median, the 99th and 99.9th percentiles, and the maximum of some counts."""
    ordered = sorted(counts) or [0]
    shares = (0.5, 0.99, 0.999, 1)
    return "/".join(str(ordered[round(share * (len(ordered) - 1))]) for share in shares)


def wanted_pairs() -> set[tuple[str, str]]:
    """Pairs of a construct and one that may be directly in it."""
    outers = set(BLOCKS)
    pairs = {(outer, kind) for outer in outers | {"top"} for kind in {*SIMPLE, *BLOCKS}}
    pairs |= {(outer, kind) for outer in ARMS for kind in ENDS}
    return {(outer, kind) for outer, kind in pairs if outer != "role" or kind not in NOT_IN_ROLE}


def load(source: str, name: str) -> types.ModuleType:
    """A module with this source, whose lines tracebacks can show."""
    module = types.ModuleType(f"random_control_{name}")
    file = f"/random_control/{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module.__file__ = file
    module.IS_MAPPED = "sgc.map(" in source
    sys.modules[module.__name__] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module


class Endless(BaseException):
    """Raised for a program that would never end, since its loop makes no request."""


class Lines:
    """Counts the lines of a file that run on this thread; raises Endless for too many."""

    def __init__(self, file: str) -> None:
        self.file, self.counts = file, Counter[int]()

    def __enter__(self) -> Lines:
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _call(self, frame: Any, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename == self.file else None

    def _line(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            self.counts[frame.f_lineno] += 1
            if self.counts[frame.f_lineno] > MAX_TIMES:
                raise Endless
        return self._line


def arms_of(source: str) -> list[tuple[int, list[int]]]:
    """The line of each `if` and the first lines of its arms, 0 for a missing `else`."""
    import ast

    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If):
            orelse = node.orelse[0].lineno if node.orelse else 0
            found.append((node.lineno, [node.body[0].lineno, orelse]))
    return found


def n_reached(source: str, counts: Counter[int]) -> tuple[int, int]:
    """The number of arms of the reached ifs, and the number of arms that were taken."""
    n_arms = n_taken = 0
    for line, (then, orelse) in arms_of(source):
        if counts[line] == 0 and counts[then] == 0:
            continue
        n_arms += 2
        n_taken += counts[then] > 0
        is_left = counts[orelse] > 0 if orelse else counts[line] > counts[then]
        n_taken += is_left
    return n_arms, n_taken


def difference(made: Made, tally: Tally | None = None) -> str:
    """A description of how compiled runs differ from interpreted ones; "" if they do not."""
    tally = tally or Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(made.source(), str(made.seed))
        try:
            graph = _traced(module, tally)
            if isinstance(graph, str):
                return graph
            return _difference(made, module, graph, tally)
        finally:
            sys.modules.pop(module.__name__, None)


def _traced(module: types.ModuleType, tally: Tally) -> Graph | str:
    """A graph, or a description of how the tracer failed; "" if it refuses the program."""
    report = Report()
    try:
        graph = trace(module.program, budget=BUDGET, is_full=True, report=report)
    except TraceError as error:
        if "more than" in error.message:
            tally.n_over_budget += 1
        else:
            tally.n_untraced[error.message] += 1
        return ""
    except (TurnsExceeded, UnknownVariable, UsageError) as error:
        # It reads a variable that no path sets, a handled error has left a role open, or a loop
        # whose turns are known has too many.
        tally.n_untraced[type(error).__name__] += 1
        return ""
    except Exception as error:
        return f"the tracer failed: {''.join(traceback.format_exception(error)[-3:])}"
    if report.unmerged:
        tally.n_unmerged += 1
    tally.work.append(report.work)
    return graph


def _difference(made: Made, module: types.ModuleType, graph: Graph, tally: Tally) -> str:
    programs = [Program(optimize(graph, level)) for level in (0, 1)]
    counts, wanted = Counter[int](), {}
    for case in cases(made.seed):
        run = interpreted(module, case)
        wanted[case.name] = run
        if isinstance(run.found, str):
            tally.n_errors[run.found.split(":")[0]] += 1
        if run.is_endless:
            continue
        counts += run.counts
        tally.n_runs += 1
        for level, program in enumerate(programs):
            found = compiled(module, program, case)
            tally.n_bounded += found.found == TurnsExceeded.__name__
            tally.n_refused += found.is_refused
            if not agree(run, found):
                return f"{case.name} at -O{level}: {told(run.shown, found.shown)}"
    reached = n_reached(made.source(), counts)
    tally.n_arms += reached[0]
    tally.n_reached += reached[1]
    for mark in made.marks:
        if tally.mattered[mark.kind] < N_WATCHED:
            tally.mattered[mark.kind] += matters(made, mark, wanted)
    return ""


def matters(made: Made, mark: Mark, wanted: dict[str, Run]) -> bool:
    """Whether a program's results change without the marked construct."""
    try:
        module = load(mark.without(made.source()), f"{made.seed}_without")
    except SyntaxError:  # the statement is nothing but the construct
        return False
    try:
        return any(
            interpreted(module, case).shown != wanted[case.name].shown
            for case in cases(made.seed)
            if not wanted[case.name].is_endless
        )
    finally:
        sys.modules.pop(module.__name__, None)


@dataclass(frozen=True)
class Case:
    """The inputs of a run."""

    pool: tuple[str, ...]
    seed: int
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        return f"seed {self.seed} of {[text[:20] for text in self.pool]}"

    def endpoint(self, asked: Counter[str]) -> Endpoint:
        return replying(self.seed, self.pool, asked)

    def options(self, module: types.ModuleType) -> RunOptions:
        """Tools begin early, which must change nothing; an interpreted run does not know that."""
        tools = resolve_tools(tools_in(module))
        return RunOptions(seed=self.seed, allow_tools=tools, early_tools=True)


def cases(seed: int) -> list[Case]:
    """The cases of a seed's program."""
    each = CASES if seed % LONGEST_EVERY else (*CASES, LONGEST_CASE)
    return [
        Case(pool, n, arguments[n % len(arguments)]) for pool, arguments in each
        for n in range(N_RUNS)
    ]  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run. found: its results or error; log: the calls of its tools, sorted if it maps, since
    mapped calls run in any order; asked: its requests; counts: how often each line ran.
    """

    found: Any
    log: list[str]
    asked: Counter[str]
    counts: Counter[int] = field(default_factory=Counter)
    is_mapped: bool = False  # lines of mapped calls run on other threads, and are not counted

    @property
    def shown(self) -> tuple[Any, list[str]]:
        return self.found, self.log

    @property
    def is_endless(self) -> bool:
        return bool(self.found == "Endless")

    @property
    def is_limited(self) -> bool:
        """Whether it ended at a limit that only compiled runs have."""
        return self.found == LimitExceeded.__name__

    @property
    def is_refused(self) -> bool:
        """Whether it ended in an error that says to interpret the program."""
        return bool(self.found == Refused.__name__)


class Refused(SgcError):
    """Ends a compiled run that the program would have to be interpreted for."""


def interpreted(module: types.ModuleType, case: Case) -> Run:
    lines = Lines(str(module.__file__))
    try:
        with lines:
            run = compiled(module, module.program, case)
    except Endless:
        return Run("Endless", [], Counter(), lines.counts)
    return replace(run, counts=lines.counts)


def compiled(module: types.ModuleType, program: Any, case: Case) -> Run:
    module.LOG.clear()
    asked, printed = Counter[str](), Printed(module.LOG)
    options = replace(case.options(module), on_show=lambda shown: printed.write(shown.text))

    def run() -> Any:
        try:
            with redirect_stdout(printed):  # where an interpreted run prints
                return program.run_once(case.arguments, options, case.endpoint(asked))
        except ProgramError as error:
            raise Refused(error.message) if "--interpret" in error.hint else error from None

    found = outcome(run)
    printed.end()
    log = sorted(module.LOG) if module.IS_MAPPED else list(module.LOG)
    return Run(found, log, asked, is_mapped=module.IS_MAPPED)


class Printed(io.StringIO):
    """Adds what is printed to a program's log, line by line: Python prints a line in parts."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log, self._rest = log, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        self._log += lines
        return len(text)

    def end(self) -> None:
        self._log.append(self._rest)


def agree(wanted: Run, found: Run) -> bool:
    """Whether a compiled run agrees with an interpreted one. Tool calls are compared only without
    errors, which cancel what is in flight.
    """
    one, two = wanted.found, found.found
    if found.is_refused:
        return True
    if "SgcError" in (one, two):  # ended by too many requests: another error may come first
        return isinstance(one, str) and isinstance(two, str)
    if found.is_limited:  # an interpreted run has no such limit: it makes these requests and more
        logs = Counter(wanted.log), Counter(found.log)
        return found.asked <= wanted.asked and logs[1] <= logs[0]
    return same((one, wanted.log), (two, found.log))


def same(wanted: tuple[Any, list[str]], found: tuple[Any, list[str]]) -> bool:
    """Whether the results of two runs are equal, and the calls of their tools."""
    one, two = wanted[0], found[0]
    if isinstance(one, str) and one.partition(":")[0] == "UnknownVariable":
        # A compiled run tells more of what is set.
        return isinstance(two, str) and two.partition(":")[0] == "UnknownVariable"
    return bool(one == two) and (not isinstance(one, tuple) or wanted[1] == found[1])


def told(wanted: Any, found: Any, path: str = "") -> str:
    """A description of the first difference."""
    if isinstance(wanted, (tuple, list)) and type(wanted) is type(found):
        for n, (one, two) in enumerate(zip(wanted, found, strict=False)):
            if one != two:
                return told(one, two, f"{path}[{n}]")
        if len(wanted) != len(found):
            return f"{path}: {len(wanted)} and {len(found)} items, {wanted!r}\n{found!r}"
    return f"{path}:\n  interpreted {wanted!r}\n  compiled    {found!r}"


def check(seeds: Sequence[int], is_shown: bool = False) -> Tally:
    """Checks programs; raises AssertionError with a shrunken program for the first difference."""
    tally = Tally()
    for n, seed in enumerate(seeds):
        made = Generator(seed).program()
        tally.note(made)
        found = difference(made, tally)
        if found:
            small = shrunk(made, difference)
            raise AssertionError(f"program {seed}: {difference(small)}\n{small.source()}")
        if is_shown and n % 100 == 99:
            print(f"{n + 1} of {len(seeds)}: {tally}", flush=True)
    return tally
