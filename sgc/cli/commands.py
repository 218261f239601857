"""The commands that run programs and read their files, and their options; other modules of this
package implement them. `compile_commands.py` and `engine_commands.py` have the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sgc.cli.common import common_options
from sgc.cli.completion import SHELLS, engines, program_files, script
from sgc.cli.help import Choice, Group, GroupedCommand, command, option
from sgc.cli.numbers import FiniteRange
from sgc.cli.running.job_options import job_options
from sgc.cli.settings.config import PARAMETERS
from sgc.runtime.engine.names import HELD_AS

_TARGET = "PROG.py[:FUNCTION]"


class RunCommand(GroupedCommand):
    """With --as-sglang, what follows the program is the script's own command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = "--as-sglang" not in args
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-")
            how = f"An argument of the program is given as --arg {name}=VALUE."
            message = f"{error.message.rstrip('.')}. {how}"
            raise click.NoSuchOption(
                error.option_name, message, error.possibilities, error.ctx
            ) from error


_RUN_GROUPS = (
    Group.of(
        "Program",
        "single_args json_args rows tools level",
        "limit sample key ignore_columns skip_bad_rows rows_format interpret full_graph no_check "
        "source early_tools as_sglang",
    ),
    Group.of(
        "Model",
        "model engine seed temperature max_tokens max_cost",
        "weights kv adapter heal max_concurrency request_timeout rpm tpm prices batch "
        "cancel_batches",
    ),
    Group.of(
        "Results",
        "out as_json stream trace_file",
        "ordered force order reorder_fields max_errors retry_errors progress otlp",
    ),
    Group.of(
        "Again",
        "resume record replay",
        "log cache_dir no_cache retry_effect skip_effect ordered_joins",
    ),
)
_RUN_CODES = {
    1: "error, or more rows failed than --max-errors",
    2: "wrong usage, or rows that do not fit",
    100: "some rows failed, and the others are done",
    101: "budget spent, that of --max-cost with --rows",
}


# fmt: off
@command("run", cls=RunCommand, configured=PARAMETERS, groups=_RUN_GROUPS, codes=_RUN_CODES)
@click.argument("program", metavar="PROG.sgir|" + _TARGET, shell_complete=program_files)
@click.argument("script_args", metavar="", nargs=-1, type=click.UNPROCESSED)
@option("--as-sglang", is_flag=True, help="PROG.py is a script for SGLang. It is run unmodified "
        "with all that follows it; --engine or --model is its default backend.")
@option("--args", "json_args", metavar="JSON|@FILE", help="Arguments as a JSON object.")
@job_options
@option("-a", "--arg", "single_args", multiple=True, metavar="NAME=VALUE", help="An argument; "
        "NAME=@FILE takes a file's text. VALUE is read as the argument's type; @@ begins a text "
        "with @, and @- is stdin. Repeatable.")
@option("-e", "--engine", metavar="URI", aliases=("--provider",), shell_complete=engines,
        help="Or who is asked: openai:MODEL, grpc://HOST:PORT. A running engine is grpc://, "
        "grpcs:// (TLS) or unix:PATH (token: SGC_TOKEN), an SGLang server sglang+http://HOST:PORT, "
        "a model provider openai:MODEL, anthropic:MODEL or openai+http://HOST:PORT/v1#MODEL. "
        "Several engines of one model: URI,URI. Else one is started.")
@option("-m", "--model", metavar="ID_OR_PATH", aliases=("--model-path",), help="A model to "
        "start: a folder, a Hugging Face id. `fake` is for tests. Without it the demo model.")
@option("--weights", type=Choice(HELD_AS), help="Of the engine to start, as for `sgc serve`.")
@option("--kv", type=Choice(HELD_AS), help="Likewise.")
@option("--adapter", metavar="NAME[=FOLDER]", help="Run on a LoRA adapter of the engine; with a "
        "folder, of the engine to start.")
@option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@option("--stream", is_flag=True, help="Show the main stream's text as it appears. With --json, on "
        "stderr.")
@option("--seed", type=int, metavar="N", help="Makes sampling repeatable. Without it one is drawn "
        "and reported.")
@option("-t", "--temperature", type=float, metavar="X", help="For generations that name none.")
@option("--max-tokens", type=int, metavar="N", help="For generations that name none.")
@option("--heal", is_flag=True, help="Default of generations that do not say: where a prompt's "
        "text ends inside a token, its last tokens are generated again.")
@option("--ordered-joins", is_flag=True, help="Joins that take the first children wait for all, "
        "and take them in order; a run with a log needs this.")
@option("--early-tools", is_flag=True, help="Call the pure tools of all branches before it is "
        "known which branch is taken; the other branches' calls are wasted.")
@option("--interpret", is_flag=True, help="Run the Python itself instead of compiling it.")
@option("--full-graph", is_flag=True, help="Fail if a part of PROG.py cannot be compiled, instead "
        "of interpreting it.")
@option("--source", metavar=_TARGET, help="The source of a .sgir: a run continues in it where the "
        "compiled part ends.")
@option("--no-check", is_flag=True, help="Do not replay the trace against the interpreter.")
@option("-O", "level", type=click.IntRange(0, 3), metavar="LEVEL", default=1, show_default=True,
        help="Optimization level, 0 to 3. It is for a PROG.py; at -O0 a .sgir asks for equal "
        "texts each time.")
@option("--trace", "trace_file", type=click.Path(path_type=Path), metavar="FILE", help="Write "
        "the run's timeline in Chrome trace format.")
@option("--tools", multiple=True, metavar="PROG.py|MODULE", help="Whose @sgc.tool functions the "
        "program may call. That Python is run. Repeatable.")
@option("--log", type=click.Path(path_type=Path), metavar="FILE", help="Write all requests and "
        "replies to a new log. It holds prompts.")
@option("--resume", type=click.Path(path_type=Path), metavar="FILE", help="Continue a log, or "
        "begin it. No request and no effect in it is repeated.")
@option("--retry-effect", is_flag=True, help="With --resume: repeat a tool's call if the log does "
        "not say whether it was done.")
@option("--skip-effect", is_flag=True, help="With --resume: count such a call as done.")
@option("--cache-dir", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep replies of "
        "deterministic requests. Equal requests are then not sent. Without it, the folder in "
        "SGC_CACHE_DIR, if that is set.")
@option("--no-cache", is_flag=True, help="Use no cache, whatever SGC_CACHE_DIR says.")
@option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Write every request "
        "and reply, for --replay. The file is a new one.")
@option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Run on such a file: no "
        "engine, no key, no network.")
@option("--max-cost", type=FiniteRange(min=0, min_open=True), metavar="DOLLARS", help="Send a "
        "provider no request that might make the cost exceed this. For a job with --resume: the "
        "cost of all its runs.")
@option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="Of a provider: dollars "
        "a million tokens by model, as JSON, in place of the table's.")
@option("--rpm", type=FiniteRange(min=0, min_open=True), metavar="X", help="Of a provider: "
        "most requests a minute.")
@option("--tpm", type=FiniteRange(min=0, min_open=True), metavar="X", help="Of a provider: "
        "most tokens a minute.")
@option("-j", "--max-concurrency", type=click.IntRange(min=1), metavar="N", help="Of a provider: "
        "most requests at once. With --rows: most rows at once.")
@option("--request-timeout", type=FiniteRange(min=0, min_open=True), metavar="SECONDS",
        aliases=("--timeout",), help="How long a request may take; of a provider: one try of it.")
@option("--otlp", metavar="URL|env", help="Send spans of the run and its requests there, by OTLP; "
        "env: as OTEL_EXPORTER_OTLP_ENDPOINT says. Needs sgc[otel].")
@option("-q", "--quiet", is_flag=True, help="No summary line.")
@common_options
def run_command(**options: Any) -> None:
    """Runs a program: a .sgir file, or Python source."""
    from sgc.cli.running.run import run_program
    from sgc.cli.running.run_asked import RunAsked

    run_program(RunAsked.taken(options))
# fmt: on


@command("replay")
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path))
@click.argument("program", metavar="PROG.sgir|" + _TARGET)
@option("--row", metavar="KEY", help="Only this row. Without it all of them.")
@option("--json", "as_json", is_flag=True, help="Print a JSON object a row.")
@option("--interpret", is_flag=True, help="Run the Python itself instead of compiling it.")
@option("-O", "level", type=click.IntRange(0, 3), metavar="LEVEL", default=1, show_default=True,
        help="Optimization level for a PROG.py.")  # fmt: skip
@option("--trace", "trace_file", type=click.Path(path_type=Path), metavar="FILE",
        help="Write the replay's timeline in Chrome trace format.")  # fmt: skip
@option("-q", "--quiet", is_flag=True, help="No summary line.")
@common_options
def replay_command(**options: Any) -> None:
    """Runs a program again from a run's log.

    It asks no engine and calls no tools.
    """
    from sgc.cli.programs.replay import replay

    replay(**options)


@command("trace")
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path))
@option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
        help="Where to write it. Without it here, named as the log.")  # fmt: skip
@common_options
def trace_command(log: Path, output: Path | None) -> None:
    """Writes the timeline of a log's runs, for Perfetto and Chrome."""
    from sgc.cli.programs.replay import trace

    trace(log, output)


@command("view")
@click.argument("things", metavar="FILE…", nargs=-1, required=True)
@option("-o", "--output", type=click.Path(path_type=Path), metavar="PAGE.html",
        help="Where to write the page. Without it here, named as the first file.")  # fmt: skip
@option("--open", "opens", is_flag=True, help="Open it in the browser.")
@option("--args", "json_args", metavar="JSON|@FILE", help="Of a PROG.py: arguments by which it is "
        "compiled, if it needs their values.")  # fmt: skip
@option("--arg", "single_args", multiple=True, metavar="NAME=VALUE",
        help="One of them. Repeatable.")  # fmt: skip
@option("-O", "level", type=click.IntRange(0, 3), default=1, show_default=True,
        help="Optimization level for a PROG.py, whose passes are shown.")  # fmt: skip
@common_options
def view_command(**options: Any) -> None:
    """Writes a page to look at: one HTML file, which needs no network.

    FILE is a program (PROG.py[:FUNCTION] or PROG.sgir), the log of a run or a job, or a job's
    results in JSON lines; of several, one page on all.

    \b
    sgc view run.log prog.py
    """
    from sgc.cli.programs.view import view

    view(**options)


@command("dump")
@click.argument("path", metavar="PROG.sgir", type=click.Path(path_type=Path))
@option("--format", "form", type=Choice(["text", "json", "dot", "mermaid"]),
        default="text", show_default=True)  # fmt: skip
@common_options
def dump_command(path: Path, form: str) -> None:
    """Prints a compiled program."""
    from sgc.cli.programs.inspect import dump_program

    dump_program(path, form)


@command("verify")
@click.argument("path", metavar="PROG.sgir", type=click.Path(path_type=Path))
@common_options
def verify_command(path: Path) -> None:
    """Checks that a compiled program is whole and sound."""
    from sgc.cli.programs.inspect import verify_program

    verify_program(path)


@command("completion")
@click.argument("shell", type=Choice(SHELLS), required=False)
@common_options
def completion_command(shell: str | None) -> None:
    """Prints a script that completes sgc's words in a shell.

    \b
    bash, in ~/.bashrc:  eval "$(sgc completion bash)"
    zsh, in ~/.zshrc:    eval "$(sgc completion zsh)"
    fish:                sgc completion fish > ~/.config/fish/completions/sgc.fish
    """
    click.echo(script(shell, click.get_current_context().find_root().command))


@command("version")
def version_command() -> None:
    """Prints the versions of sgc and its formats."""
    from sgc import __version__
    from sgc.ir.file.sgir import FORMAT_VERSION
    from sgc.ir.ops import OP_TABLE_VERSION

    click.echo(f"sgc {__version__} (.sgir format {FORMAT_VERSION}, op table {OP_TABLE_VERSION})")
