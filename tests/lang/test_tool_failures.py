"""A tool's failure in a program's handlers: interpreted, compiled, from a file and from a log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lang import failing_tools
from lang.failing_tools import CALLED, GIVEN, PROGRAMS
from tests_support import asked, at_levels, one_in, results

import sgc
from sgc.errors import ProgramRaised, ToolError, TraceError, UnknownOutcome
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.paths.exploration import Budget

TOOLS = [failing_tools.fetch, failing_tools.store, failing_tools.count]


def outcome(run: Any, options: RunOptions, endpoint: Any, q: str) -> Any:
    """What a run gives or ends with, and the tools that it called."""
    del CALLED[:]
    try:
        result = run.run_once({"q": q}, options, endpoint)
    except sgc.SgcError as error:
        kind, message = type(error).__name__, getattr(error, "message", "")
        return kind, message, error.where, error.__cause__, sorted(CALLED)
    except Exception as error:  # interpreted, an error of the program's own
        return "ProgramRaised", f"{type(error).__name__}: {error}", "", None, sorted(CALLED)
    return results(result), asked(result), [c.identity() for c in result.tool_calls], sorted(CALLED)


def same(ours: Any, theirs: Any) -> bool:
    """Errors are of one class and say the same; what else was called by then depends on time."""
    if not isinstance(ours[0], str) or not isinstance(theirs[0], str):
        return bool(ours == theirs)
    return bool(ours[:2] == theirs[:2])


@pytest.mark.sweep
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_handlers_are_entered_alike(scripted, tmp_path, program):
    endpoint = scripted()
    compiled = at_levels(program)
    compiled[0].save(tmp_path / "p.sgir")
    loaded = sgc.load(tmp_path / "p.sgir", allow_tools=TOOLS)
    for q in GIVEN:
        options = RunOptions(seed=3)
        expected = outcome(program, options, endpoint, q)
        for each in (*compiled, loaded):
            found, wanted = outcome(each, options, endpoint, q), expected
            if each.level and not isinstance(expected[0], str):  # equal requests may be shared
                found, wanted = (found[0], *found[2:]), (expected[0], *expected[2:])
            assert same(found, wanted), (program.name, q)
        logged = ((program, compiled[1]), (compiled[1], program), (loaded, loaded))
        for first, second in logged[GIVEN.index(q) % 3 :: 3]:
            path = tmp_path / f"{q}.log"
            path.unlink(missing_ok=True)
            with sgc.RunLog.open(path) as log:
                outcome(first, RunOptions(seed=3, log=log, allow_tools=None), endpoint, q)
            with sgc.RunLog.open(path, on_unknown="skip") as log:
                again = outcome(second, RunOptions(seed=3, log=log), endpoint, q)
            if isinstance(expected[0], str):  # an uncaught pure call is called again
                assert again[:2] == expected[:2], (program.name, q)
            else:
                assert (again[0], again[-1]) == (expected[0], []), (program.name, q)


def run_as_all(program: Any, endpoint: Any, q: str) -> list[BaseException | None]:
    """What a row ends with that is run, called, batched, and compiled."""
    rows = [{"q": q}]
    states = [program(q=q, backend=endpoint), *program.run_batch(rows, backend=endpoint)]
    states += program.compile().run_batch(rows, backend=endpoint)
    found = [state.error() for state in states]
    for run in (program.run, program.compile().run):
        with pytest.raises(ToolError) as caught:
            run(q=q, backend=endpoint).text()
        found.append(caught.value)
    return found


LEAVES = ("not_handled", "leaves_again", "tells_apart", "finally_alone")


@pytest.mark.parametrize("program", one_in(2, [getattr(failing_tools, name) for name in LEAVES]))
def test_what_nothing_handles_is_a_tool_error_with_its_cause(scripted, program):
    q, cause = ("other", failing_tools.Other)
    if program is failing_tools.leaves_again:
        q, cause = "value", ValueError
    for error in run_as_all(program, scripted(), q):
        assert type(error) is ToolError
        assert type(error.__cause__) is cause
        assert error.where.startswith("failing_tools.py:")
        assert f"failed: {cause.__name__}: " in error.message


def test_a_late_call_raises_a_timeout_error(scripted):
    program = failing_tools.tells_apart
    for run in (program, program.compile()):
        result = run.run_once({"q": "late"}, RunOptions(seed=1), scripted())
        assert result.text().startswith("TimeoutError it took longer than 0.02 s")


def test_what_an_effect_came_to_is_not_handled_when_it_is_not_known(scripted, tmp_path):
    program, path = failing_tools.with_effects, tmp_path / "x.log"
    with sgc.RunLog.open(path) as log:
        program.run_once({"q": "ok"}, RunOptions(seed=1, log=log), scripted())
    lines = path.read_text().splitlines(keepends=True)
    ended = [n for n, line in enumerate(lines) if json.loads(line).get("kind") == "tool"]
    path.write_text("".join(lines[: ended[1]]))
    for run in (program, program.compile()):
        with sgc.RunLog.open(path) as log, pytest.raises(UnknownOutcome):
            run.run_once({"q": "ok"}, RunOptions(seed=1, log=log), scripted())


def test_a_tool_that_is_not_allowed_is_not_handled(scripted, tmp_path):
    failing_tools.catches_all.compile().save(tmp_path / "p.sgir")
    with pytest.raises(ToolError, match="not allowed"):
        sgc.load(tmp_path / "p.sgir").run(q="ok", backend=scripted())


def test_more_than_its_class_and_what_it_says_is_not_known(scripted):
    @sgc.function
    def program(s, q):
        try:
            s += failing_tools.fetch(q)
        except failing_tools.Mine as e:
            s += str(e.code)
        s += sgc.gen("a")

    for each in (program, program.compile()):
        with pytest.raises((AttributeError, ProgramRaised), match="code of a tool's failure"):
            each.run(q="mine", backend=scripted(), seed=1).text()


def test_what_handles_it_and_cannot_be_read_is_refused_with_its_line(scripted):
    from contextlib import ExitStack

    @sgc.function
    def computed(s, q):
        kinds = {"a": ValueError}
        try:
            s += failing_tools.fetch(q)
        except kinds["a"]:
            s += "no"
        s += sgc.gen("a")

    @sgc.function
    def of_others(s, q):
        with ExitStack() as stack:
            stack.push(lambda kind, *_: kind is not None and issubclass(kind, ValueError))
            s += failing_tools.fetch(q)
        s += sgc.gen("a")

    for program, n in ((computed, 4), (of_others, 4)):
        with pytest.raises(TraceError, match="what handles a tool's failure") as caught:
            program.compile()
        line = program.python.__code__.co_firstlineno + n
        assert caught.value.where == f"test_tool_failures.py:{line}"
        state = program(q="value", backend=scripted())
        assert state.text() == ("no" if program is computed else "") + state["a"]


def test_a_deopt_feeds_the_failure_again(scripted, monkeypatch):
    import functools

    from sgc.tracing import tracer

    monkeypatch.setattr(tracer, "Budget", functools.partial(Budget, runs=9))

    @sgc.function
    def program(s, q):
        try:
            s += failing_tools.store(q)
        except ValueError as e:
            s += str(e)
        s += sgc.gen("a")
        kept = []
        for n in range(9):
            if s["a"].count("e") > n:
                kept.append(n)
        s += f"{kept}"

    expected = program.run(q="value", backend=scripted(), seed=1).text()
    del CALLED[:]
    assert program(q="value", backend=scripted(), seed=1).text() == expected
    assert CALLED == ["value"]
