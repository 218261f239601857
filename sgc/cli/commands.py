"""The commands that make and run programs, and their options; other modules of this package
implement them, and `engine_commands.py` has those of engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sgc.cli.main import debug_option
from sgc.cli.running.job_options import EXIT_CODES, JobAsked, job_options
from sgc.runtime.engine.names import HELD_AS

_TARGET = "PROG.py[:FUNCTION]"
KEEPS = (
    "all",
    "main",
    "returns",
)  # as in `passes/facts/kept_results.py`, which is not imported here, for a fast start


for_option = click.option(
    "--for", "model", metavar="PROVIDER:MODEL", help="A provider's model that it is to run on: "
    "which beginnings of prompts are to be kept there is planned (docs/provider_caches.md)."
)  # fmt: skip
rows_option = click.option(
    "--rows", type=click.IntRange(min=1), default=1, show_default=True,
    help="With --for: expected number of concurrent runs with different arguments."
)  # fmt: skip


@click.command("compile")
@click.argument("source", metavar=_TARGET)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT.sgir",
              help="Where to write the program. Without it nothing is written.")  # fmt: skip
@click.option("-O", "level", type=click.IntRange(0, 3), default=1, show_default=True,
              help="Optimization level: -O0 to -O3.")  # fmt: skip
@click.option("--passes", metavar="A,B", help="Run these passes instead of the level's.")
@click.option("--bind", "bindings", multiple=True, metavar="NAME=VALUE",
              help="Fix an argument to a value while compiling. Repeatable.")  # fmt: skip
@click.option("--args", "json_args", metavar="JSON|@FILE", help="Arguments of a run; they "
              "decide the types of parameters without an annotation.")  # fmt: skip
@click.option("--print-after", metavar="PASS|all",
              help="Print the program to stdout after a pass, or after each.")  # fmt: skip
@click.option("--no-check", is_flag=True, help="Do not replay the trace against the interpreter.")
@click.option("--full-graph", is_flag=True,
              help="Leave no path to the interpreter; too many paths are an error.")  # fmt: skip
@click.option("--allow-ambient", is_flag=True, help="Keep what the program reads of clocks, "
              "random numbers, the environment and files, instead of refusing it.")  # fmt: skip
@click.option("--as-sglang", is_flag=True,
              help="PROG.py is written for SGLang: `import sglang` is sgc.")  # fmt: skip
@click.option("--keep", "kept", type=click.Choice(KEEPS), default="all", show_default=True,
              help="What a run returns beside the return value: all streams, the main one or "
              "none. Passes drop what nothing needs.")  # fmt: skip
@click.option("--allow-no-request", is_flag=True, help="Write the file also where all that was "
              "compiled ends in the interpreter before it asks a model for anything.")  # fmt: skip
@for_option
@rows_option
@debug_option
def compile_command(**options: Any) -> None:
    """Compiles a program to a .sgir file.

    FUNCTION may be left out where the file has one @sgc.function, one called `main`, or one
    called like the file.
    """
    from sgc.cli.programs.compile import compile_program

    compile_program(**options)


class RunCommand(click.Command):
    """With --as-sglang, what follows the program is the script's own command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = "--as-sglang" not in args
        return super().parse_args(ctx, args)


@click.command("run", cls=RunCommand, epilog=EXIT_CODES)
@click.argument("program", metavar="PROG.sgir|" + _TARGET)
@click.argument("script_args", metavar="", nargs=-1, type=click.UNPROCESSED)
@click.option("--as-sglang", is_flag=True, help="PROG.py is a script for SGLang, run unmodified "
              "with all that follows it; --engine or --model is its default backend.")  # fmt: skip
@click.option("--args", "json_args", metavar="JSON|@FILE", help="Arguments as a JSON object.")
@job_options
@click.option("--arg", "single_args", multiple=True, metavar="NAME=VALUE",
              help="One argument, read as its type. Repeatable.")  # fmt: skip
@click.option("--engine", metavar="URI", help="A running engine: grpc://HOST:PORT, grpcs:// (TLS), "
              "unix:PATH (token: SGC_TOKEN), an SGLang server: sglang+http://HOST:PORT, or a model "
              "provider: openai:MODEL, anthropic:MODEL, openai+http://HOST:PORT/v1#MODEL. Several "
              "engines of one model: URI,URI. Else one is started.")  # fmt: skip
@click.option("--model", metavar="ID_OR_PATH", help="Model of the engine to start: a Hugging Face "
              "folder or id, or `fake`. Without it the default model.")  # fmt: skip
@click.option("--weights", type=click.Choice(HELD_AS), help="Of the engine to start, as for "
              "`sgc serve`.")  # fmt: skip
@click.option("--kv", type=click.Choice(HELD_AS), help="Likewise.")
@click.option("--adapter", metavar="NAME[=FOLDER]", help="Run on a LoRA adapter of the engine; "
              "with a folder, of the engine to start.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--stream", is_flag=True, help="Show the main stream's text as it appears "
              "(on stderr with --json).")  # fmt: skip
@click.option("--seed", type=int, help="Makes sampling repeatable. Without it one is drawn "
              "and reported.")  # fmt: skip
@click.option("--temperature", type=float, help="Default of generations that name none.")
@click.option("--max-tokens", type=int, help="Default of generations that name none.")
@click.option("--heal", is_flag=True, help="Default of generations that do not say: the prompt's "
              "last tokens are decided anew where its text ends inside one.")  # fmt: skip
@click.option("--ordered-joins", is_flag=True, help="Joins that take the first children wait for "
              "all, and take them in order; a run with a log needs it.")  # fmt: skip
@click.option("--early-tools", is_flag=True, help="Call pure tools of an arm before it is known "
              "that it comes; those of other arms are called in vain.")  # fmt: skip
@click.option("--interpret", is_flag=True, help="Run the Python itself instead of compiling it.")
@click.option("--full-graph", is_flag=True, help="Fail if a part of PROG.py cannot be "
              "compiled, instead of interpreting it.")  # fmt: skip
@click.option("--source", metavar=_TARGET, help="What a .sgir was compiled from: a run goes on in "
              "it where the program was not compiled to its end.")  # fmt: skip
@click.option("--no-check", is_flag=True, help="Do not replay the trace against the interpreter.")
@click.option("-O", "level", type=click.IntRange(0, 3), default=1, show_default=True,
              help="Optimization level for a PROG.py; at -O0 a .sgir asks "
              "for equal texts each time.")  # fmt: skip
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the run's timeline in Chrome trace format.")  # fmt: skip
@click.option("--tools", multiple=True, metavar="PROG.py|MODULE", help="Python whose @sgc.tool "
              "functions the program may call; it is run. Repeatable.")  # fmt: skip
@click.option("--log", type=click.Path(path_type=Path), metavar="FILE", help="Write all that is "
              "asked, and what comes, to a new log; it holds prompts and replies.")  # fmt: skip
@click.option("--resume", type=click.Path(path_type=Path), metavar="FILE", help="Go on with a log, "
              "or begin it: nothing in it is asked again, no effect is repeated.")  # fmt: skip
@click.option("--retry-effect", is_flag=True, help="With --resume: call a tool again of which the "
              "log does not tell whether it was done.")  # fmt: skip
@click.option("--skip-effect", is_flag=True, help="With --resume: count such a call as done.")
@click.option("--cache-dir", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep replies "
              "of deterministic requests there, and do not ask for them again. Else that of "
              "SGC_CACHE_DIR, if it is set.")  # fmt: skip
@click.option("--no-cache", is_flag=True, help="Keep none, whatever SGC_CACHE_DIR says.")
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Write every "
              "request and reply to a new file, for --replay.")  # fmt: skip
@click.option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Run on such a "
              "file in place of a model: no engine, no key, no network.")  # fmt: skip
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="DOLLARS",
              help="Of a provider: asks nothing more that might cost more than this; of a job "
              "with --resume, in all its runs.")  # fmt: skip
@click.option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="Of a provider: "
              "dollars a million tokens by model, as JSON, in place of the table's.")  # fmt: skip
@click.option("--rpm", type=click.FloatRange(min=0, min_open=True), help="Of a provider: most "
              "requests a minute.")  # fmt: skip
@click.option("--tpm", type=click.FloatRange(min=0, min_open=True), help="Of a provider: most "
              "tokens a minute.")  # fmt: skip
@click.option("-j", "--max-concurrency", type=click.IntRange(min=1), help="Of a provider: most "
              "requests at once. With --rows: most rows at once.")  # fmt: skip
@click.option("--request-timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="How long a request may take; of a provider: one try of it.")  # fmt: skip
@click.option("--otlp", metavar="URL|env", help="Send spans of the run and its requests there, by "
              "OTLP; env: as OTEL_EXPORTER_OTLP_ENDPOINT says. Needs sgc[otel].")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No summary line.")
@debug_option
def run_command(**options: Any) -> None:
    """Runs a program: a .sgir file, or Python source."""
    from sgc.cli.running.run import run_program

    run_program(job=JobAsked.taken(options), **options)


@click.command("replay")
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path))
@click.argument("program", metavar="PROG.sgir|" + _TARGET)
@click.option("--row", metavar="KEY", help="Only this row. Without it all of them.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a row.")
@click.option("--interpret", is_flag=True, help="Run the Python itself instead of compiling it.")
@click.option("-O", "level", type=click.IntRange(0, 3), default=1, show_default=True,
              help="Optimization level for a PROG.py.")  # fmt: skip
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the replay's timeline in Chrome trace format.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No summary line.")
@debug_option
def replay_command(**options: Any) -> None:
    """Runs a program again from the log of a run, with no engine and no tools."""
    from sgc.cli.programs.replay import replay

    replay(**options)


@click.command("trace")
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", required=True,
              help="Where to write it.")  # fmt: skip
@debug_option
def trace_command(log: Path, output: Path) -> None:
    """Writes the timeline of a log's runs in Chrome trace format."""
    from sgc.cli.programs.replay import trace

    trace(log, output)


@click.command("dump")
@click.argument("path", metavar="PROG.sgir", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json", "dot", "mermaid"]),
              default="text", show_default=True)  # fmt: skip
@debug_option
def dump_command(path: Path, form: str) -> None:
    """Prints a compiled program."""
    from sgc.cli.programs.inspect import dump_program

    dump_program(path, form)


@click.command("opt")
@click.argument("path", metavar="PROG.sgir", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="OUT.sgir", type=click.Path(path_type=Path),
              help="Where to write it. Without it, prints the text form.")  # fmt: skip
@click.option("-O", "--opt-level", "level", type=click.IntRange(0, 3), default=1,
              show_default=True, help="Which passes run.")  # fmt: skip
@click.option("-p", "--passes", metavar="A,B", help="These passes instead, in this order.")
@click.option("--show", type=click.Choice(["nothing", "before", "after", "changed"]),
              default="nothing", show_default=True, help="With each pass, on stderr: the program "
              "before or after it, or what it changed.")  # fmt: skip
@click.option("--dump", "folder", metavar="FOLDER", type=click.Path(path_type=Path),
              help="Write the program after each pass there.")  # fmt: skip
@click.option("--keep", "kept", type=click.Choice(KEEPS), default="all", show_default=True,
              help="What a run returns beside the return value: all streams, the main one or "
              "none. Passes drop what nothing needs.")  # fmt: skip
@click.option("--proposer", type=click.Choice(["rules", "model"]), default="rules",
              show_default=True, help="Of -p hoist_prefix: who says what moves, the rule or a "
              "model.")  # fmt: skip
@click.option("--validate", "validate_rows", type=click.Path(path_type=Path), metavar="ROWS.jsonl",
              help="Of -p hoist_prefix: run before and after on these rows, greedily, and compare "
              "variables.")  # fmt: skip
@click.option("--min-equal", type=click.FloatRange(0, 1), default=1.0, show_default=True,
              metavar="SHARE", help="Of --validate: the move is rejected if fewer rows are "
              "equal.")  # fmt: skip
@click.option("--engine", metavar="URI", help="Of --proposer model and --validate: who is asked, "
              "as in sgc run. Else an engine is started.")  # fmt: skip
@for_option
@rows_option
@debug_option
def opt_command(**options: Any) -> None:
    """Runs passes over a compiled program and says what each did."""
    from sgc.cli.programs.opt import opt_program

    opt_program(**options)


@click.command("explain")
@click.argument("program", metavar="PROG.sgir|" + _TARGET)
@click.option("--bind", "bindings", multiple=True, metavar="NAME=VALUE",
              help="Fix an argument to a value while tracing. Repeatable.")  # fmt: skip
@click.option("-O", "level", type=click.IntRange(0, 3), default=1, show_default=True,
              help="Optimization level for a PROG.py, whose passes are explained.")  # fmt: skip
@click.option("--args", "json_args", metavar="JSON|@FILE", help="Predict a run with these "
              "arguments.")  # fmt: skip
@click.option("--arg", "single_args", multiple=True, metavar="NAME=VALUE",
              help="One argument, read as its type. Repeatable.")  # fmt: skip
@click.option("--rows", type=click.Path(path_type=Path), metavar="FILE",
              help="Predict all rows of a file together.")  # fmt: skip
@click.option("--after-run", type=click.Path(path_type=Path), metavar="LOG", help="The log of a "
              "run: what was measured beside what its replies lead to expect.")  # fmt: skip
@click.option("--engine", metavar="URI", help="Predict for a model provider: openai:MODEL, "
              "anthropic:MODEL. Without it for an engine of ours.")  # fmt: skip
@click.option("--model", metavar="ID_OR_PATH", help="Model of an engine of ours.")
@click.option("--prices", type=click.Path(path_type=Path), metavar="FILE",
              help="Dollars a million tokens by model, in place of the table's.")  # fmt: skip
@click.option("--warm", "is_warm", is_flag=True, help="As after a run of the same rows.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@debug_option
def explain_command(**options: Any) -> None:
    """Gives advice on a program, and tells what its passes did.

    With arguments or rows, also what each pass saves and what the run will use; with the log of a
    run, what it used.
    """
    from sgc.cli.programs.explain import explain_program

    explain_program(**options)


@click.command("estimate")
@click.argument("program", metavar="PROG.sgir|" + _TARGET)
@click.option("--args", "json_args", metavar="JSON|@FILE", help="Arguments as a JSON object.")
@click.option("--arg", "single_args", multiple=True, metavar="NAME=VALUE",
              help="One argument, read as its type. Repeatable.")  # fmt: skip
@click.option("--rows", type=click.Path(path_type=Path), metavar="FILE", help="Of all rows of a "
              "file together, a JSON object of arguments a line.")  # fmt: skip
@click.option("--engine", metavar="URI", help="A model provider: openai:MODEL, anthropic:MODEL or "
              "openai+http://HOST:PORT/v1#MODEL. Without it an engine of ours.")  # fmt: skip
@click.option("--model", metavar="ID_OR_PATH", help="Model of an engine of ours; only its "
              "tokenizer is read. Without it the default model.")  # fmt: skip
@click.option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="Dollars a million "
              "tokens by model, as JSON, in place of the table's.")  # fmt: skip
@click.option("--like", type=click.Path(path_type=Path), metavar="LOG", help="The log of a run of "
              "some rows: replies, and how tokens are counted, are taken to be alike.")  # fmt: skip
@click.option("-O", "level", type=click.IntRange(0, 3), default=1, show_default=True,
              help="Optimization level for a PROG.py.")  # fmt: skip
@click.option("--temperature", type=float, help="Default of generations that name none.")
@click.option("--max-tokens", type=int, help="Default of generations that name none.")
@click.option("--tool-tokens", type=click.IntRange(min=0), metavar="N",
              help="Most tokens that a result of a tool may have.")  # fmt: skip
@click.option("--pool-tokens", type=click.IntRange(min=1), metavar="N",
              help="Tokens that our engine has room for. Without it for all.")  # fmt: skip
@click.option("--warm", "is_warm", is_flag=True, help="As after a run of the same rows.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@debug_option
def estimate_command(**options: Any) -> None:
    """Tells requests, tokens and money of a run before it is made: as expected, and at most."""
    from sgc.cli.programs.estimate import estimate

    estimate(**options)


@click.command("verify")
@click.argument("path", metavar="PROG.sgir", type=click.Path(path_type=Path))
@debug_option
def verify_command(path: Path) -> None:
    """Checks that a compiled program is whole and sound."""
    from sgc.cli.programs.inspect import verify_program

    verify_program(path)


@click.command("stubs")
@click.argument("source", metavar="PROG.py", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Where to write them, if not beside PROG.py; - for the terminal.")  # fmt: skip
@debug_option
def stubs_command(source: Path, output: Path | None) -> None:
    """Writes PROG.pyi: what the file's programs take and give, for type checkers and editors.

    A run's variables have the types that tracing finds.
    """
    from sgc.cli.programs.stubs import write_stubs

    write_stubs(source, output)


@click.command("version")
def version_command() -> None:
    """Prints the versions of sgc and its formats."""
    from sgc import __version__
    from sgc.ir.file.sgir import FORMAT_VERSION
    from sgc.ir.ops import OP_TABLE_VERSION

    click.echo(f"sgc {__version__} (.sgir format {FORMAT_VERSION}, op table {OP_TABLE_VERSION})")
