"""Runs random programs interpreted and compiled, compares, counts what was reached, and makes one
that differs smaller.
"""

from __future__ import annotations

import linecache
import sys
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from control_flow import outcome, replying
from random_control import ARMS, BLOCKS, ENDS, NOT_IN_ROLE, SIMPLE, Generator, Made, Statement

from sgc.errors import TraceError, UnknownVariable
from sgc.functions import Function
from sgc.passes.pipeline import optimize
from sgc.program import Program
from sgc.runtime.executor.options import RunOptions
from sgc.tools import resolve_tools, tools_in
from sgc.tracing.explore import Budget, Report
from sgc.tracing.tracer import trace

BUDGET = Budget()
POOLS: tuple[tuple[str, ...], ...] = (
    ("yes", "no"),
    ("yes", "no", "7", " a b", "Yes!"),
    ("12", "no", "x,y", "yes it is"),
)
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"q": "ab", "n": 2, "is_long": True},
    {"q": "yes", "n": 3, "is_long": False},
)
N_RUNS = 3  # of each pool
MAX_TIMES = 2000  # that one line may run


@dataclass
class Tally:
    """What a run over many programs has reached."""

    n_programs: int = 0
    n_over_budget: int = 0
    n_unmerged: int = 0  # ways were merged that the verifier refused
    n_untraced: Counter[str] = field(default_factory=Counter)
    n_runs: int = 0
    n_errors: Counter[str] = field(default_factory=Counter)
    constructs: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_arms: int = 0
    n_reached: int = 0

    def note(self, made: Made) -> None:
        self.n_programs += 1
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
            f"unmerged {self.n_unmerged}; "
            f"not traced {dict(self.n_untraced)}; errors {dict(self.n_errors)}; "
            f"{len(self.constructs)} constructs, {len(self.pairs)} pairs; arms {arms:.0f} %"
        )


def wanted_pairs() -> set[tuple[str, str]]:
    """Constructs that may stand directly in others."""
    outers = set(BLOCKS)
    pairs = {(outer, kind) for outer in outers | {"top"} for kind in {*SIMPLE, *BLOCKS}}
    pairs |= {(outer, kind) for outer in ARMS for kind in ENDS}
    return {(outer, kind) for outer, kind in pairs if outer != "role" or kind not in NOT_IN_ROLE}


def load(source: str, name: str) -> types.ModuleType:
    """A module with that source, whose lines tracebacks can show."""
    module = types.ModuleType(f"random_control_{name}")
    file = f"/random_control/{name}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module.__file__ = file
    module.IS_MAPPED = "sgc.map(" in source
    sys.modules[module.__name__] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module


class Endless(BaseException):
    """A program that would never end: nothing in it waits for a reply."""


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
    """Of each `if`, its line and the first lines of its arms; 0 for one that is not written."""
    import ast

    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If):
            orelse = node.orelse[0].lineno if node.orelse else 0
            found.append((node.lineno, [node.body[0].lineno, orelse]))
    return found


def n_reached(source: str, counts: Counter[int]) -> tuple[int, int]:
    """Of the ifs that are reached, how many arms are taken of how many."""
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
    """How compiled runs of a program differ from interpreted ones; "" if they do not."""
    source = made.source()
    tally = tally or Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = load(source, str(made.seed))
            return _difference(module, source, tally)
        finally:
            sys.modules.pop(f"random_control_{made.seed}", None)


def _difference(module: types.ModuleType, source: str, tally: Tally) -> str:
    function: Function = module.program
    report = Report()
    try:
        graph = trace(function, budget=BUDGET, is_full=True, report=report)
    except TraceError as error:
        if "more than" in error.message:
            tally.n_over_budget += 1
        else:
            tally.n_untraced[error.message] += 1
        return ""
    except UnknownVariable:  # a straight line that reads what it never sets
        tally.n_untraced["UnknownVariable"] += 1
        return ""
    except Exception as error:
        return f"the tracer failed: {''.join(traceback.format_exception(error)[-3:])}"
    if report.unmerged:
        tally.n_unmerged += 1
    programs = [Program(optimize(graph, level)) for level in (0, 1)]
    allowed = resolve_tools(tools_in(module))
    lines = Lines(str(module.__file__))
    for pool in POOLS:
        for seed in range(N_RUNS):
            options = RunOptions(seed=seed, allow_tools=allowed)
            given = ARGUMENTS[seed % 2], options
            try:
                with lines:
                    wanted = _once(module, function, given, replying(seed, pool))
            except Endless:
                tally.n_errors["Endless"] += 1
                continue
            tally.n_runs += 1
            if not isinstance(wanted[0], tuple):
                tally.n_errors[str(wanted[0]).split(":")[0]] += 1
            for level, program in enumerate(programs):
                found = _once(module, program, given, replying(seed, pool))
                if not agree(wanted, found):
                    return f"seed {seed} of {pool} at -O{level}: {told(wanted, found)}"
    reached = n_reached(source, lines.counts)
    tally.n_arms += reached[0]
    tally.n_reached += reached[1]
    return ""


def _once(
    module: types.ModuleType, program: Any, given: tuple[Any, ...], endpoint: Any
) -> tuple[Any, list[str]]:
    module.LOG.clear()
    found = outcome(lambda: program.run_once(*given, endpoint))
    return found, sorted(module.LOG) if module.IS_MAPPED else list(module.LOG)


def agree(wanted: tuple[Any, list[str]], found: tuple[Any, list[str]]) -> bool:
    """Errors cancel what is in flight, so tools count only where there is none; those of mapped
    calls run in any order, and are counted sorted.
    """
    one, two = wanted[0], found[0]
    if isinstance(one, str) and one.partition(":")[0] == "UnknownVariable":
        return isinstance(two, str) and two.partition(":")[0] == "UnknownVariable"
    return bool(one == two) and (not isinstance(one, tuple) or wanted[1] == found[1])


def told(wanted: Any, found: Any, path: str = "") -> str:
    """The first place where two differ."""
    if isinstance(wanted, (tuple, list)) and type(wanted) is type(found):
        for n, (one, two) in enumerate(zip(wanted, found, strict=False)):
            if one != two:
                return told(one, two, f"{path}[{n}]")
        if len(wanted) != len(found):
            return f"{path}: {len(wanted)} and {len(found)} items, {wanted!r}\n{found!r}"
    return f"{path}:\n  interpreted {wanted!r}\n  compiled    {found!r}"


# -- making a failure smaller -----------------------------------------------------------------


def shrunk(made: Made, fails: Callable[[Made], str]) -> Made:
    """The smallest program found that still fails."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(made):
            if _still(smaller, fails):
                made, is_smaller = smaller, True
                break
    return made


def _still(made: Made, fails: Callable[[Made], str]) -> bool:
    try:
        return bool(fails(made))
    except (SyntaxError, RecursionError):
        return False


def _smaller(made: Made) -> Iterator[Made]:
    for called in _smaller_blocks(made.called):
        yield replace(made, called=called)
    for body in _smaller_blocks(made.body):
        yield replace(made, body=body)


def _smaller_blocks(block: list[Statement]) -> Iterator[list[Statement]]:
    for n in range(len(block) - 1, -1, -1):
        yield block[:n] + block[n + 1 :]
    for n, statement in enumerate(block):
        for inner in statement.blocks:
            yield block[:n] + inner + block[n + 1 :]
        for k in range(1, len(statement.blocks)):
            lines = statement.lines[:k] + statement.lines[k + 1 :]
            blocks = statement.blocks[:k] + statement.blocks[k + 1 :]
            yield [*block[:n], replace(statement, lines=lines, blocks=blocks), *block[n + 1 :]]
        if statement.after:
            yield [*block[:n], replace(statement, after=[]), *block[n + 1 :]]
        for k, inner in enumerate(statement.blocks):
            for less in _smaller_blocks(inner):
                blocks = [*statement.blocks[:k], less, *statement.blocks[k + 1 :]]
                yield [*block[:n], replace(statement, blocks=blocks), *block[n + 1 :]]


def check(seeds: Sequence[int], is_shown: bool = False) -> Tally:
    """Raises AssertionError with a small program for the first that differs."""
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
