"""`sgc run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout
from functools import partial
from typing import Any

import click

from sgc.cli.output.results import StreamPrinter, check_writable, show, summary, write_result
from sgc.cli.output.verbose import tell, timed, warn
from sgc.cli.programs.arguments import check_texts, checked
from sgc.cli.programs.given_rows import GivenRows
from sgc.cli.programs.loading import Given, Loaded, load_to_run, signature_types
from sgc.cli.programs.source import load_tools, path_of
from sgc.cli.running.batching import batching, cancel_batches
from sgc.cli.running.job import JobRun
from sgc.cli.running.job_files import JobFiles, job_source, open_files
from sgc.cli.running.keep import Keeping
from sgc.cli.running.logs import open_log
from sgc.cli.running.run_asked import RunAsked
from sgc.cli.settings.asking import DEMO, DEMO_NOTE, Asked
from sgc.lang.tools import Tool
from sgc.programs.compiling import refuse_dead
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import Runtime, connect
from sgc.runs.options import make_options
from sgc.runs.rows import survey
from sgc.runtime.executor.interface.argument_shapes import with_tuples
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.log.run_log import RunLog, header_of
from sgc.runtime.executor.log.timeline import chrome_trace
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.tracing.watch.guards import guards_of


def run_program(asked: RunAsked) -> None:
    """Runs a program or its rows; errors in the options are found before an engine is started."""
    asked.check()
    if asked.as_sglang:
        from sgc.compat.sglang.runner import run_script

        who = asked.who
        run_script(asked.program, asked.script_args, who.engine, who.model, asked.limits)
    elif asked.job.rows is None:
        _run_once(asked)
    else:
        _run_rows(asked)


def _run_once(asked: RunAsked) -> None:
    """Runs a program; its result is printed when all that is opened for it is closed."""
    given = Given.read(asked.json_args, asked.single_args, None)
    found, tools = _load(asked, given), load_tools(asked.tools)
    _check_trace(asked)
    printer = _printer(asked, found)
    with ExitStack() as held:
        if printer is not None:
            held.enter_context(printer)
        log = open_log(asked.logs)
        if log is not None:
            held.enter_context(log)
        if asked.as_json:  # a program's own lines are no results
            held.enter_context(redirect_stdout(sys.stderr))
        keeping = held.enter_context(Keeping(asked.keep, asked.quiet))
        arguments = _arguments(found, given, log)
        options = _options(asked, found, tools, keeping, log)
        endpoint = _ready(asked, found, keeping, options, held)
        with timed("run"):
            result = _result(found, arguments, options, endpoint, printer)
    if found.doubt:
        warn(found.doubt)
        _tell_demo(asked)
    show(result, asked.as_json, printer)
    if asked.trace_file is not None:
        write_result(asked.trace_file, "--trace", json.dumps(chrome_trace(result)))
    if not (asked.as_json or asked.quiet):
        click.echo(summary(result), err=True)


def _run_rows(asked: RunAsked) -> None:
    """Runs a program for each row that is not done, or cancels what goes on at a provider."""
    job, logs = asked.job, asked.logs
    with ExitStack() as held:
        wanted = survey.Asked(job.limit, job.sample, asked.seed or 0, job.skip_bad_rows)
        rows = GivenRows(job_source(job, logs, held), wanted)
        found, tools = _load(asked, Given(None, {}, rows)), load_tools(asked.tools)
        rows.look(found.program)
        checked(rows.samples, rows.source.name, found.program, found.bound)
        files = held.enter_context(open_files(job, logs, rows.source, asked.program))
        this_run = JobRun(found, rows, files, job, logs, asked.max_concurrency, asked.quiet)
        held.enter_context(redirect_stdout(sys.stderr))  # a program's own lines are no results
        keeping = held.enter_context(Keeping(asked.keep, asked.quiet))
        options = _options(asked, found, tools, keeping, files.log)
        begun = this_run.begin()
        if begun.is_over and not job.cancel_batches:
            if files.log is not None:
                _check_done(found, files.log, options, asked)
            this_run.run(None, options, begun)
            return
        endpoint = _ready(asked, found, keeping, options, held, files)
        if job.cancel_batches:
            cancel_batches(endpoint)
        else:
            this_run.run(endpoint, options, begun)


def _load(asked: RunAsked, given: Given) -> Loaded:
    tell(f"program: {asked.program}")
    with timed("loaded and compiled"):
        found = load_to_run(
            asked.program, asked.source, given, asked.interpret, asked.level, not asked.no_check,
            asked.full_graph,
        )  # fmt: skip
    if isinstance(found.program, Program) and found.function is None:
        refuse_dead(found.program.name, found.program.graph)
    return found


def _check_trace(asked: RunAsked) -> None:
    """Raises UsageError if the file of --trace cannot be written, or is one that is read."""
    if asked.trace_file is not None:
        programs = [path_of(each) for each in (asked.program, asked.source) if each is not None]
        files = (asked.logs.log, asked.logs.resume, asked.keep.record, asked.keep.replay)
        check_writable(asked.trace_file, "--trace", [*programs, *filter(None, files)])


def _rest(found: Loaded) -> Function | None:
    """The Python in which a run may have to go on where the compiled part ends."""
    may_go_on = isinstance(found.program, Program) and may_deopt(found.program.graph)
    return found.function if may_go_on else None


def _printer(asked: RunAsked, found: Loaded) -> StreamPrinter | None:
    if not asked.stream or _rest(found) is not None:  # it would print the compiled part again
        return None
    return StreamPrinter(found.program.name, sys.stderr if asked.as_json else sys.stdout)


def _options(
    asked: RunAsked, found: Loaded, tools: list[Tool], keeping: Keeping, log: RunLog | None
) -> RunOptions:
    """The options of runs; raises UsageError if the program calls tools that it may not."""
    options = make_options({"seed": keeping.seed if asked.seed is None else asked.seed,
                            "temperature": asked.temperature, "max_tokens": asked.max_tokens,
                            "heal": asked.heal or None, "log": log,
                            "ordered_joins": asked.ordered_joins or None,
                            "early_tools": asked.early_tools or None,
                            "adapter": asked.adapter_parts[0] or None,
                            "allow_tools": tools or None})  # fmt: skip
    if isinstance(found.program, Program):
        found.program.check_tools(options)
    return options


def _tell_demo(asked: RunAsked) -> None:
    is_demo = asked.who == Asked() and asked.keep.replay is None
    if is_demo and not (asked.quiet or asked.as_json):
        click.echo(DEMO_NOTE, err=True)


def _ready(
    asked: RunAsked, found: Loaded, keeping: Keeping, options: RunOptions, held: ExitStack,
    files: JobFiles | None = None,
) -> Endpoint:  # fmt: skip
    """The endpoint that is asked, once it is ready; held closes it. files: of a job."""
    who, replay = asked.who, asked.keep.replay
    model = f"the model {who.model or DEMO}, here"
    tell(f"engine: {f'replies of {replay}' if replay else who.engine or model}")
    if not found.doubt:  # else after the run, below the warning
        _tell_demo(asked)
    with timed("engine is ready"):
        opened = keeping.endpoint(partial(_open_model, asked, files), options.seed)
        endpoint = held.enter_context(opened)
    return endpoint.with_adapter(options.adapter)


def _open_model(asked: RunAsked, files: JobFiles | None) -> Endpoint:
    """Connects to what is asked, or starts it. A job's budget is what earlier runs have left."""
    limits = asked.limits
    if files is not None and files.watch.spent and "max_cost" in limits:
        limits["max_cost"] = max(limits["max_cost"] - files.watch.spent, 1e-9)
    if files is not None and asked.job.batch:
        assert files.log is not None
        limits["batching"] = batching(files.log, asked.job.retry_errors, asked.quiet)
    if asked.who.engine is not None:
        opened = connect(asked.who.engine, **limits)
    else:
        name, folder = asked.adapter_parts
        adapters = {name: folder} if folder else {}
        opened = Runtime(asked.who.model, weights=asked.weights, kv=asked.kv, adapter=adapters)
    if asked.otlp is not None:
        opened.trace_to(asked.otlp)
    return opened


def _result(
    found: Loaded, arguments: Mapping[str, Any], options: RunOptions, endpoint: Endpoint,
    printer: StreamPrinter | None,
) -> RunResult:  # fmt: skip
    """The result of a run, in which the interpreter goes on where the compiled part ends."""
    loaded, rest = found.program, _rest(found)
    if rest is None or not isinstance(loaded, Program):
        on_text = printer.show if printer is not None else None
        return loaded.run_once(arguments, options, endpoint, on_text)

    def interpreted(chosen: RunOptions) -> RunResult:
        return rest.run_once(arguments, chosen, endpoint)

    return run_with_deopt(loaded, loaded.sharing(endpoint.backend), arguments, options, interpreted)


def _check_done(found: Loaded, log: RunLog, options: RunOptions, asked: RunAsked) -> None:
    """Raises if a job that is done is another one; prints its model if that is not known."""
    loaded, who = found.program, asked.who
    guards = loaded.graph.guards if isinstance(loaded, Program) else guards_of(loaded, {})
    log.check(header_of(loaded.name, guards, options), who.known_model)
    if who.known_model is None and log.header is not None and not asked.quiet:
        model = log.capabilities().model
        note = f"sgc: all is done, on {model}; {who.engine} is not asked which model it has"
        click.echo(note, err=True)


def _arguments(found: Loaded, given: Given, log: RunLog | None) -> dict[str, Any]:
    """The program's arguments; a resumed run without any takes those of its log."""
    loaded = found.program
    if isinstance(loaded, Program):
        types = {param.value.name: param.value.type for param in loaded.graph.params}
    else:
        types = signature_types(loaded)
    logged = log.arguments(RunOptions().row) if log is not None else None
    if logged and not given:
        arguments = {name: value for name, value in logged.items() if name in types}
        return with_tuples(loaded.graph, arguments) if isinstance(loaded, Program) else arguments
    arguments = {n: v for n, v in given.arguments(types).items() if n not in found.bound}
    check_texts(arguments)
    python = loaded if isinstance(loaded, Function) else found.function
    if python is not None:
        arguments = python.signature.objects(arguments)
    if isinstance(loaded, Program):
        arguments = with_tuples(loaded.graph, arguments)
        bind_arguments(loaded.graph, arguments)
    else:
        loaded.signature.check_types(loaded.signature.bind((), arguments))
    return arguments
