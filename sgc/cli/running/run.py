"""`sgc run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

import click

from sgc.cli.output.results import (
    StreamPrinter,
    check_writable,
    json_of,
    show_returned,
    show_text,
    summary,
    write_result,
)
from sgc.cli.output.verbose import tell, timed, warn
from sgc.cli.programs.arguments import check_texts, checked
from sgc.cli.programs.given_rows import GivenRows
from sgc.cli.programs.loading import Given, Loaded, load_to_run, signature_types
from sgc.cli.programs.source import load_tools, path_of
from sgc.cli.running.batching import batching, cancel_batches, check_batching
from sgc.cli.running.job import JobRun
from sgc.cli.running.job_files import LogAsked, job_source, open_files
from sgc.cli.running.job_options import JobAsked
from sgc.cli.running.keep import Keeping
from sgc.cli.running.logs import open_log
from sgc.cli.settings.asking import DEMO, DEMO_NOTE, Asked
from sgc.errors import UsageError
from sgc.programs.compiling import refuse_dead
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import SCHEMES, Runtime, connect
from sgc.runs.options import make_options
from sgc.runs.rows import survey
from sgc.runtime.executor.backends.providers.wire.addresses import SCHEMES as PROVIDER_SCHEMES
from sgc.runtime.executor.interface.argument_shapes import with_tuples
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.interface.log import Header
from sgc.runtime.executor.log.run_log import RunLog, header_of
from sgc.runtime.executor.log.timeline import chrome_trace
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.telemetry.otlp import check_otlp
from sgc.tracing.watch.guards import guards_of

NO_JOB = JobAsked()


def run_program(
    program: str,
    json_args: str | None,
    single_args: tuple[str, ...],
    engine: str | None,
    model: str | None,
    as_json: bool,
    stream: bool,
    seed: int | None,
    temperature: float | None,
    max_tokens: int | None,
    heal: bool,
    ordered_joins: bool,
    early_tools: bool,
    interpret: bool,
    full_graph: bool,
    no_check: bool,
    level: int,
    trace_file: Path | None,
    quiet: bool,
    tools: tuple[str, ...] = (),
    log: Path | None = None,
    resume: Path | None = None,
    retry_effect: bool = False,
    skip_effect: bool = False,
    as_sglang: bool = False,
    script_args: tuple[str, ...] = (),
    source: str | None = None,
    max_cost: float | None = None,
    prices: Path | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    max_concurrency: int | None = None,
    request_timeout: float | None = None,
    otlp: str | None = None,
    job: JobAsked = NO_JOB,
    cache_dir: Path | None = None,
    no_cache: bool = False,
    record: Path | None = None,
    replay: Path | None = None,
    weights: str | None = None,
    kv: str | None = None,
    adapter: str | None = None,
) -> None:
    """Runs a program or its rows; errors in the options are found before an engine is started.

    as_sglang: the program is a script for SGLang, and script_args are its arguments.
    """
    who = Asked(engine, model)
    name, _, folder = (adapter or "").partition("=")
    if engine is not None:
        _refuse(
            {"--weights": weights, "--kv": kv, "--adapter NAME=FOLDER": folder or None},
            "is for an engine to start, and --engine names one that runs",
        )
    # With --rows, --max-concurrency limits rows on any engine; without, requests to a provider.
    of_provider = job.rows is None or (engine or "").startswith(PROVIDER_SCHEMES)
    limits = _limits(engine, {"max_cost": max_cost, "prices": prices, "rpm": rpm, "tpm": tpm,
                              "max_concurrency": max_concurrency if of_provider else None,
                              "request_timeout_s": request_timeout})  # fmt: skip
    if job.rows is None:
        _refuse(job.given, "is for many rows: --rows FILE")
    else:
        of_single = {"--args": json_args, "--arg": single_args, "--json": as_json,
                     "--stream": stream, "--trace": trace_file}  # fmt: skip
        _refuse(of_single, "is for one run, and --rows FILE has many")
    if job.batch or job.cancel_batches:
        check_batching(job, engine, log or resume, {"--rpm": rpm, "--tpm": tpm})
    Keeping.check(cache_dir, no_cache, record, replay,
                  {"--engine": engine, "--model": model, "--resume": resume})  # fmt: skip
    if otlp is not None:
        check_otlp(otlp)
    if as_sglang:
        of_one_run = {"--args": json_args, "--arg": single_args, "--json": as_json,
                      "--stream": stream, "--seed": seed, "--temperature": temperature,
                      "--max-tokens": max_tokens, "--heal": heal,
                      "--ordered-joins": ordered_joins, "--early-tools": early_tools,
                      "--interpret": interpret,
                      "--full-graph": full_graph, "--trace": trace_file, "--tools": tools,
                      "--log": log, "--resume": resume, "--rows": job.rows,
                      "--cache-dir": cache_dir, "--record": record, "--replay": replay,
                      "--weights": weights, "--kv": kv, "--adapter": adapter,
                      "--otlp": otlp}  # fmt: skip
        _refuse(of_one_run, "is for one program, and --as-sglang runs a whole script")
        from sgc.compat.sglang.runner import run_script

        run_script(program, script_args, engine, model, limits)
        return
    if script_args:
        raise UsageError(f"unexpected argument {script_args[0]!r}", hint="use --arg NAME=VALUE")
    logs = LogAsked(log, resume, retry_effect, skip_effect)
    with ExitStack() as held:
        if job.rows is None:
            given = Given.read(json_args, single_args, None)
        else:
            wanted = survey.Asked(job.limit, job.sample, seed or 0, job.skip_bad_rows)
            given = Given(None, {}, job=GivenRows(job_source(job, logs, held), wanted))
        tell(f"program: {program}")
        with timed("loaded and compiled"):
            found = load_to_run(program, source, given, interpret, level, not no_check, full_graph)
        loaded, function = found.program, found.function
        if isinstance(loaded, Program) and function is None:
            refuse_dead(loaded.name, loaded.graph)
        allowed = load_tools(tools)
        if trace_file is not None:
            read = [path_of(each) for each in (program, source) if each is not None]
            read += [each for each in (log, resume, record, replay) if each is not None]
            check_writable(trace_file, "--trace", read)
        printer = (
            StreamPrinter(loaded.name, sys.stderr if as_json else sys.stdout) if stream else None
        )
        if printer is not None:
            held.enter_context(printer)
        spent = 0.0
        if given.job is None:
            run_log = open_log(log, resume, retry_effect, skip_effect)
            if run_log is not None:
                held.enter_context(run_log)
        else:
            given.job.look(loaded)
            checked(given.job.samples, given.job.source.name, loaded, found.bound)
            files = held.enter_context(open_files(job, logs, given.job.source, program))
            run_log, spent = files.log, files.watch.spent
            this_run = JobRun(found, given.job, files, job, logs, max_concurrency, quiet)
        if as_json or given.job is not None:  # a program's own lines are no results
            held.enter_context(redirect_stdout(sys.stderr))
        keeping = held.enter_context(Keeping(cache_dir, no_cache, record, replay, quiet))
        if given.job is None:
            arguments = _arguments(found, given, run_log)
        seed = keeping.seed if seed is None else seed
        options = make_options({"seed": seed, "temperature": temperature, "max_tokens": max_tokens,
                                "heal": heal or None, "log": run_log,
                                "ordered_joins": ordered_joins or None,
                                "early_tools": early_tools or None, "adapter": name or None,
                                "allow_tools": allowed or None})  # fmt: skip
        if isinstance(loaded, Program):
            loaded.check_tools(options)

        def open_model() -> Endpoint:
            if engine is not None and job.batch:
                assert run_log is not None
                how = batching(run_log, job.retry_errors, quiet)
                opened = connect(engine, **_less(limits, spent), batching=how)
            elif engine is not None:
                opened = connect(engine, **_less(limits, spent))
            else:
                adapters = {name: folder} if folder else {}
                opened = Runtime(model, weights=weights, kv=kv, adapter=adapters)
            if otlp is not None:
                opened.trace_to(otlp)
            return opened

        if given.job is not None:
            begun = this_run.begin()
            if begun.is_over and not job.cancel_batches:
                if run_log is not None:
                    _check_done(run_log, _header(loaded, options), who, quiet)
                this_run.run(None, options, begun)
                return
        asked = f"replies of {replay}" if replay else engine or f"the model {model or DEMO}, here"
        tell(f"engine: {asked}")
        is_demo = engine is None and model is None and replay is None
        notes = [DEMO_NOTE] if is_demo and not (quiet or as_json) else []
        if not found.doubt:
            _tell_all(notes)
        with timed("engine is ready"):
            endpoint = held.enter_context(keeping.endpoint(open_model, options.seed))
        endpoint = endpoint.with_adapter(options.adapter)
        if given.job is not None:
            if job.cancel_batches:
                cancel_batches(endpoint)
                return
            this_run.run(endpoint, options, begun)
            return
        if function is not None and isinstance(loaded, Program) and may_deopt(loaded.graph):
            printer = None  # the interpreter would print the compiled part's text again

            def interpreted(chosen: RunOptions) -> RunResult:
                return function.run_once(arguments, chosen, endpoint)

            sharing = loaded.sharing(endpoint.backend)
            with timed("run"):
                result = run_with_deopt(loaded, sharing, arguments, options, interpreted)
        else:
            on_text = printer.show if printer is not None else None
            with timed("run"):
                result = loaded.run_once(arguments, options, endpoint, on_text)
    if found.doubt:
        warn(found.doubt)
        _tell_all(notes)
    if printer is not None:
        printer.end()
        if not as_json:
            show_returned(result)
    if as_json:
        click.echo(json_of(result))
    elif printer is None:
        show_text(result)
    if trace_file is not None:
        write_result(trace_file, "--trace", json.dumps(chrome_trace(result)))
    if not as_json and not quiet:
        click.echo(summary(result), err=True)


def _tell_all(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(note, err=True)


def _header(loaded: Program | Function, options: RunOptions) -> Header:
    """What a log says of a run of the program."""
    if isinstance(loaded, Program):
        return header_of(loaded.name, loaded.graph.guards, options)
    return header_of(loaded.name, guards_of(loaded, {}), options)


def _check_done(log: RunLog, now: Header, who: Asked, quiet: bool) -> None:
    """Raises if a job that is done is another one; prints its model if that is not known."""
    log.check(now, who.known_model)
    if who.known_model is None and log.header is not None and not quiet:
        model = log.capabilities().model
        note = f"sgc: all is done, on {model}; {who.engine} is not asked which model it has"
        click.echo(note, err=True)


def _refuse(options: Mapping[str, Any], why: str) -> None:
    """Raises UsageError for the first option that is given."""
    # By identity: a seed or temperature of 0 counts as given.
    absent = (None, False, ())
    given = [name for name, value in options.items() if not any(value is x for x in absent)]
    if given:
        raise UsageError(f"{given[0]} {why}")


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


def _limits(engine: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that are set; raises UsageError if the engine is not a provider."""
    limits = {name: value for name, value in given.items() if value is not None}
    is_provider = (engine or "").startswith(PROVIDER_SCHEMES)
    if (engine or "").startswith(SCHEMES):
        is_provider = not limits.keys() - {"request_timeout_s"}
    if limits and not is_provider:
        option = next(iter(limits)).removesuffix("_s").replace("_", "-")
        raise UsageError(
            f"--{option} is for model providers", hint="--engine openai:MODEL or anthropic:MODEL"
        )
    return limits


def _less(limits: Mapping[str, Any], spent: float) -> dict[str, Any]:
    """The limits of a run of a job whose earlier runs have spent dollars."""
    if "max_cost" not in limits or not spent:
        return {**limits}
    return {**limits, "max_cost": max(limits["max_cost"] - spent, 1e-9)}
