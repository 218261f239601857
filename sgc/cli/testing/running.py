"""`sgc test`: runs the rows of a file of tests as a batch, and reports which pass."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from sgc.cli.main import EXIT_ERROR, EXIT_SOME_FAILED
from sgc.cli.output.results import check_writable, shown
from sgc.cli.output.verbose import tell, timed
from sgc.cli.programs.arguments import checked
from sgc.cli.programs.source import is_source, load_function, load_tools, parsed_value
from sgc.cli.settings.asking import Asked
from sgc.cli.testing.cases import Assertion, Case, Outcome, Suite, Verdict
from sgc.cli.testing.judging import Functions, by_judge
from sgc.cli.testing.kinds import Looked, judged
from sgc.cli.testing.reading import find_suites, read_suite
from sgc.cli.testing.recordings import Recordings
from sgc.cli.testing.report import Report, write_junit
from sgc.errors import NotRecorded, UsageError, counted
from sgc.ir.types import JSON, Kind, Type
from sgc.programs.function import Function
from sgc.programs.program import Program, load
from sgc.runs.options import make_options
from sgc.runs.rows.records import InputRow
from sgc.runtime.executor.interface.backend import sum_costs
from sgc.runtime.executor.run.record import RunResult

RUBRIC = "llm-rubric"


@dataclass(frozen=True, slots=True)
class TestsAsked:
    """The options of `sgc test`, without those that choose the model."""

    __test__ = False  # pytest collects classes whose names begin with Test

    files: tuple[Path, ...]
    program: str | None
    keyword: str | None
    limit: int | None
    tools: tuple[str, ...]
    asserts: Path | None
    judge: str | None
    junit: Path | None
    as_json: bool
    quiet: bool
    run_options: Mapping[str, Any]


def run_tests(asked: TestsAsked, model: Asked, record: Path | None, replay: Path | None) -> None:
    """Runs the tests; exits with 100 if some fail, with 1 if a recording does not fit."""
    suites = [_chosen(read_suite(path), asked) for path in find_suites(asked.files)]
    functions = _functions(suites, asked.asserts)
    tools = load_tools(asked.tools)
    if asked.junit is not None:
        check_writable(asked.junit, "--junit", [each.path for each in suites])
    with ExitStack() as held:
        files = held.enter_context(Recordings(record, replay))
        seed = make_options({"seed": asked.run_options.get("seed", files.seed)}).seed
        given = {**asked.run_options, "seed": seed, "allow_tools": tools or None}
        run = _Run(asked, functions, {k: v for k, v in given.items() if v is not None})
        held.enter_context(redirect_stdout(sys.stderr))  # what programs print is no report
        ready = [run.ready(suite) for suite in suites]
        with timed("engine is ready"):
            endpoint = held.enter_context(files.endpoint(model.open, seed))
            judge = endpoint
            has_own = files.has_judge if replay is not None else asked.judge is not None
            if has_own and any(_asserts(suite, RUBRIC) for suite in suites):
                judge = held.enter_context(files.judge(Asked.of(asked.judge or "").open, seed))
        reports = [run.report(each, endpoint, judge) for each in ready]
        files.keeps = not any(each.error for report in reports for each in report.outcomes)
    _show(reports, asked)
    if record is not None and not files.keeps:
        click.echo(f"sgc: {record} is not written: rows ended with errors", err=True)
    _exit_with([each for report in reports for each in report.outcomes], asked, replay)


def _functions(suites: Sequence[Suite], path: Path | None) -> Functions:
    """The functions of --asserts; raises UsageError for an assertion that names none of them."""
    functions = Functions(path)
    for suite in suites:
        for each in _asserts(suite, "python"):
            functions.check(each)
    return functions


def _exit_with(outcomes: Sequence[Outcome], asked: TestsAsked, replay: Path | None) -> None:
    if any(each.is_not_recorded for each in outcomes):
        again = shlex.join(["sgc", "test", *map(str, asked.files), "--record", str(replay)])
        click.echo(
            f"sgc: {replay} does not fit these tests any more; to record it anew, from a model:\n"
            f"  {again} --model MODEL",
            err=True,
        )
        raise click.exceptions.Exit(EXIT_ERROR)
    if not all(each.passed for each in outcomes):
        raise click.exceptions.Exit(EXIT_SOME_FAILED)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A suite whose rows fit its program."""

    suite: Suite
    target: str
    program: Program | Function
    rows: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Run:
    asked: TestsAsked
    functions: Functions
    options: Mapping[str, Any]

    def ready(self, suite: Suite) -> _Ready:
        """Loads a program, and checks that every row fits. Raises UsageError that names the row."""
        target = _program_of(suite, self.asked.program)
        program: Program | Function = load_function(target) if is_source(target) else load(target)
        types = _types_of(program) if suite.has_texts else {}
        inputs = [
            InputRow(str(index), _row(case, types), case.line, case.file)
            for index, case in enumerate(suite.cases)
        ]
        fitting = checked(inputs, suite.path, program)
        if isinstance(program, Program):
            program.check_tools(make_options({"allow_tools": self.options.get("allow_tools")}))
        return _Ready(suite, target, program, [row.arguments for row in fitting])

    def report(self, ready: _Ready, endpoint: Any, judge: Any) -> Report:
        start_s = perf_counter()
        tell(f"{ready.suite.path}: {counted(len(ready.rows), 'test')} of {ready.target}")
        states = ready.program.run_batch([*ready.rows], backend=endpoint, **self.options)
        outcomes = [
            self._outcome(case, state, endpoint.is_billed)
            for case, state in zip(ready.suite.cases, states, strict=True)
        ]
        outcomes = _with_judge(outcomes, judge, self.options["seed"])
        seconds = perf_counter() - start_s
        return Report(ready.suite, ready.target, outcomes, seconds, self.options["seed"])

    def _outcome(self, case: Case, state: Any, is_billed: bool) -> Outcome:
        error = state.error()
        if error is not None:
            if not isinstance(error, Exception):
                raise error
            return Outcome(case, error=str(error), is_not_recorded=isinstance(error, NotRecorded))
        result: RunResult = state.result()
        stats = result.stats
        looked = _looked(case, result, "")
        found = Outcome(
            case, looked.text, seconds=looked.seconds, cost_usd=looked.cost_usd,
            tokens=looked.tokens, requests=stats.requests,
            variables={name: _writable(each) for name, each in result.variables.items()},
        )  # fmt: skip
        try:
            verdicts = [self._verdict(each, case, result, is_billed) for each in case.asserts]
        except UsageError as error:
            return replace(found, error=str(error))
        return replace(found, verdicts=tuple(verdicts))

    def _verdict(
        self, assertion: Assertion, case: Case, result: RunResult, is_billed: bool
    ) -> Verdict:
        looked = _looked(case, result, assertion.of, assertion.place, is_billed)
        if assertion.type == RUBRIC:
            return Verdict(assertion, False, looked.text)  # `_with_judge` replaces it
        if assertion.type == "python":
            context = {"vars": dict(case.vars), "variables": dict(result.variables),
                       "text": result.text(), "returned": result.ret_value}  # fmt: skip
            return self.functions.verdict(assertion, looked.value, context)
        return judged(assertion, looked)


def _with_judge(outcomes: list[Outcome], judge: Any, seed: int) -> list[Outcome]:
    """The outcomes with the judge's verdicts, which are asked for in one batch."""
    asked = [(v.assertion, v.reason) for each in outcomes for v in each.verdicts
             if v.assertion.type == RUBRIC]  # fmt: skip
    if not asked:
        return outcomes
    found = iter(by_judge(asked, judge, seed))
    return [_judged(each, found) for each in outcomes]


def _judged(outcome: Outcome, found: Iterator[Verdict | Exception]) -> Outcome:
    """An outcome with the judge's verdicts, which are the next of `found`."""
    verdicts = []
    for each in outcome.verdicts:
        verdict = next(found) if each.assertion.type == RUBRIC else each
        if isinstance(verdict, Exception):
            is_not_recorded = outcome.is_not_recorded or isinstance(verdict, NotRecorded)
            told = f"{each.assertion.place}: the judge: {verdict}"
            outcome = replace(outcome, error=told, is_not_recorded=is_not_recorded)
        else:
            verdicts.append(verdict)
    return replace(outcome, verdicts=tuple(verdicts))


def _looked(
    case: Case, result: RunResult, of: str, place: str = "", is_billed: bool = False
) -> Looked:
    """The value that an assertion checks: the variable that it names, else what the program
    returns, else the program's last variable, else its text."""
    variables = result.variables
    if of == "return":
        value = result.ret_value
    elif of == "text":
        value = result.text()
    elif of:
        if of not in variables:
            raise UsageError(
                f"{place}: of: the program set no {of!r}; there are: "
                f"{', '.join((*variables, 'return', 'text'))}"
            )
        value = variables[of]
    elif result.ret_value is not None:
        value = result.ret_value
    else:
        value = list(variables.values())[-1] if variables else result.text()
    text = value if isinstance(value, str) else shown(value, str)
    # Counted as if the row ran alone: a reply shared by two rows counts for both.
    usages = [request.usage for request in result.requests if request.kind != "commit"]
    tokens = sum(each.prompt_tokens + each.completion_tokens for each in usages)
    cost = sum_costs([each.cost_usd for each in usages])
    is_unpriced = is_billed and cost is None and not all(each.from_ahead for each in usages)
    return Looked(text, value, result.stats.wall_s, tokens, cost, is_unpriced)


def _writable(value: Any) -> Any:
    """A value that a report of JSON can hold."""
    try:
        json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    return value


def _asserts(suite: Suite, kind: str) -> list[Assertion]:
    return [each for case in suite.cases for each in case.asserts if each.type == kind]


def _chosen(suite: Suite, asked: TestsAsked) -> Suite:
    """The tests that -k and --limit leave."""
    word = (asked.keyword or "").casefold()
    cases = [case for case in suite.cases if word in case.name.casefold()][: asked.limit]
    if not cases:
        why = f"none is named like {asked.keyword!r}" if suite.cases else "it has none"
        raise UsageError(f"{suite.path}: no tests: {why}")
    return replace(suite, cases=tuple(cases))


def _program_of(suite: Suite, given: str | None) -> str:
    if given is None and suite.program is None:
        raise UsageError(
            f"{suite.path}: which program is tested?",
            hint="--program PROG.py, or program: PROG.py in the file",
        )
    return given or suite.program or ""


def _types_of(program: Program | Function) -> dict[str, Type]:
    if isinstance(program, Program):
        return {param.value.name: param.value.type for param in program.graph.params}
    parameters = program.signature.parameters
    return {p.name: JSON if p.is_static else p.type for p in parameters}


def _row(case: Case, types: Mapping[str, Type]) -> dict[str, Any]:
    """The arguments of a case. types: of parameters, by which cells are parsed."""
    row = {}
    for name, value in case.vars.items():
        type_ = types.get(name)
        if type_ is None or type_.kind in (Kind.TEXT, Kind.CHOICE):
            row[name] = value
        elif value:  # an empty cell is no argument
            row[name] = parsed_value(value, type_, f"{case.place}: {name}")
    return row


def _show(reports: Sequence[Report], asked: TestsAsked) -> None:
    if asked.junit is not None:
        write_junit(asked.junit, reports)
    if asked.as_json:
        found = [report.to_json() for report in reports]
        click.echo(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False,
                              default=str, indent=2))  # fmt: skip
        return
    for report in reports:
        report.show(asked.quiet)
        click.echo(report.summary())
