"""The commands that compile programs and look at them, and their options; the modules of
`sgc/cli/programs/` implement them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sgc.cli.columns import columns_options
from sgc.cli.common import common_options
from sgc.cli.completion import program_files
from sgc.cli.help import Choice, Group, command, option
from sgc.cli.numbers import FiniteRange
from sgc.cli.settings.config import PARAMETERS

_TARGET = "PROG.py[:FUNCTION]"
KEEPS = (
    "all",
    "main",
    "returns",
)  # as in `passes/facts/kept_results.py`, which is not imported here so that the start is fast

for_option = option(
    "--for", "model", metavar="PROVIDER:MODEL", help="A provider's model to plan for: which "
    "prefixes of prompts its cache should keep (docs/provider_caches.md)."
)  # fmt: skip
rows_option = option(
    "--rows", type=click.IntRange(min=1), metavar="N", default=1, show_default=True,
    help="With --for: expected number of concurrent runs with different arguments."
)  # fmt: skip


_COMPILE_GROUPS = (
    Group.of("Result", "output kept", "print_after allow_no_request"),
    Group.of("Arguments", "bindings json_args"),
    Group.of("Passes", "level passes", "model rows"),
    Group.of("Checks", "no_check full_graph allow_ambient", "as_sglang"),
)
_OPT_GROUPS = (
    Group.of("Result", "output kept", "show folder"),
    Group.of("Passes", "level passes model rows"),
    Group.of("Moves of prefixes (-p hoist_prefix)", "proposer validate_rows", "min_equal engine"),
)
_PREDICTED = Group.of("Of a run with", "json_args single_args rows", "key ignore_columns")
_EXPLAIN_GROUPS = (
    _PREDICTED,
    Group.of("Program", "level bindings"),
    Group.of("Model", "engine model", "prices is_warm"),
    Group.of("Result", "after_run as_json"),
)
_ESTIMATE_GROUPS = (
    _PREDICTED,
    Group.of("Model", "engine model temperature max_tokens", "prices pool_tokens is_warm"),
    Group.of("Program", "level like", "tool_tokens"),
    Group.of("Result", "as_json"),
)


@command("compile", configured=("level",), groups=_COMPILE_GROUPS)
@click.argument("source", metavar=_TARGET, shell_complete=program_files)
@option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT.sgir",
        help="Where to write the program. Without it nothing is written.")  # fmt: skip
@option("-O", "level", type=click.IntRange(0, 3), metavar="LEVEL", default=1, show_default=True,
        help="Optimization level: -O0 to -O3.")  # fmt: skip
@option("--passes", metavar="A,B", help="Run these passes instead of the level's.")
@option("--bind", "bindings", multiple=True, metavar="NAME=VALUE",
        help="Fix an argument to a value while compiling. Repeatable.")  # fmt: skip
@option("--args", "json_args", metavar="JSON|@FILE", help="Arguments of a run; they "
        "decide the types of parameters without an annotation.")  # fmt: skip
@option("--print-after", metavar="PASS|all",
        help="Print the program to stdout after a pass, or after each.")  # fmt: skip
@option("--no-check", is_flag=True, help="Do not replay the trace against the interpreter.")
@option("--full-graph", is_flag=True,
        help="Leave no path to the interpreter; too many paths are an error.")  # fmt: skip
@option("--allow-ambient", is_flag=True, help="Keep what the program reads of clocks, "
        "random numbers, the environment and files, instead of refusing it.")  # fmt: skip
@option("--as-sglang", is_flag=True,
        help="PROG.py is written for SGLang: `import sglang` is sgc.")  # fmt: skip
@option("--keep", "kept", type=Choice(KEEPS), default="all", show_default=True,
        help="What a run returns beside the return value: all streams, the main one or "
        "none. Passes drop what nothing needs.")  # fmt: skip
@option("--allow-no-request", is_flag=True, help="Write the file even if every compiled path ends "
        "in the interpreter before any request.")  # fmt: skip
@for_option
@rows_option
@common_options
def compile_command(**options: Any) -> None:
    """Compiles a program to a .sgir file.

    FUNCTION may be left out where the file has one @sgc.function, one called `main`, or one
    called like the file.
    """
    from sgc.cli.programs.compile import compile_program

    compile_program(**options)


@command("opt", groups=_OPT_GROUPS)
@click.argument("path", metavar="PROG.sgir", type=click.Path(path_type=Path))
@option("-o", "--output", metavar="OUT.sgir", type=click.Path(path_type=Path),
        help="Where to write it. Without it, prints the text form.")  # fmt: skip
@option("-O", "--opt-level", "level", type=click.IntRange(0, 3), metavar="LEVEL", default=1,
        show_default=True, help="Which passes run.")  # fmt: skip
@option("-p", "--passes", metavar="A,B", help="These passes instead, in this order.")
@option("--show", type=Choice(["nothing", "before", "after", "changed"]),
        default="nothing", show_default=True, help="With each pass, on stderr: the program "
        "before or after it, or what it changed.")  # fmt: skip
@option("--dump", "folder", metavar="FOLDER", type=click.Path(path_type=Path),
        help="Write the program after each pass there.")  # fmt: skip
@option("--keep", "kept", type=Choice(KEEPS), default="all", show_default=True,
        help="What a run returns beside the return value: all streams, the main one or "
        "none. Passes drop what nothing needs.")  # fmt: skip
@option("--proposer", type=Choice(["rules", "model"]), default="rules",
        show_default=True, help="Of -p hoist_prefix: who says what moves, the rule or a "
        "model.")  # fmt: skip
@option("--validate", "validate_rows", type=click.Path(path_type=Path), metavar="ROWS.jsonl",
        help="Of -p hoist_prefix: run before and after on these rows, greedily, and compare "
        "variables.")  # fmt: skip
@option("--min-equal", type=FiniteRange(0, 1), default=1.0, show_default=True,
        metavar="SHARE", help="Of --validate: the move is rejected if fewer rows are "
        "equal.")  # fmt: skip
@option("-e", "--engine", metavar="URI", help="Of --proposer model and --validate: who is asked, "
        "as in sgc run. Else an engine is started.")  # fmt: skip
@for_option
@rows_option
@common_options
def opt_command(**options: Any) -> None:
    """Runs passes over a compiled program and says what each did."""
    from sgc.cli.programs.opt import opt_program

    opt_program(**options)


@command("explain", configured=PARAMETERS, groups=_EXPLAIN_GROUPS)
@click.argument("program", metavar="PROG.sgir|" + _TARGET, shell_complete=program_files)
@option("--bind", "bindings", multiple=True, metavar="NAME=VALUE",
        help="Fix an argument to a value while tracing. Repeatable.")  # fmt: skip
@option("-O", "level", type=click.IntRange(0, 3), metavar="LEVEL", default=1, show_default=True,
        help="Optimization level for a PROG.py, whose passes are explained.")  # fmt: skip
@option("--args", "json_args", metavar="JSON|@FILE", help="Predict a run with these "
        "arguments.")  # fmt: skip
@option("-a", "--arg", "single_args", multiple=True, metavar="NAME=VALUE",
        help="One argument, read as its type. Repeatable.")  # fmt: skip
@option("--rows", type=click.Path(path_type=Path), metavar="FILE",
        help="Predict all rows of a file together.")  # fmt: skip
@columns_options
@option("--after-run", type=click.Path(path_type=Path), metavar="LOG", help="The log of a run: "
        "show what it measured beside what its replies predict.")  # fmt: skip
@option("-e", "--engine", metavar="URI", help="Predict for a model provider: openai:MODEL, "
        "anthropic:MODEL. Without it for an engine of ours.")  # fmt: skip
@option("-m", "--model", metavar="ID_OR_PATH", help="Model of an engine of ours.")
@option("--prices", type=click.Path(path_type=Path), metavar="FILE",
        help="Dollars a million tokens by model, in place of the table's.")  # fmt: skip
@option("--warm", "is_warm", is_flag=True, help="As after a run of the same rows.")
@option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@common_options
def explain_command(**options: Any) -> None:
    """Gives advice on a program, and tells what its passes did.

    With arguments or rows, also what each pass saves and what the run will use; with the log of a
    run, what it used.
    """
    from sgc.cli.programs.explain import explain_program

    explain_program(**options)


@command("estimate", configured=PARAMETERS, groups=_ESTIMATE_GROUPS)
@click.argument("program", metavar="PROG.sgir|" + _TARGET, shell_complete=program_files)
@option("--args", "json_args", metavar="JSON|@FILE", help="Arguments as a JSON object.")
@option("-a", "--arg", "single_args", multiple=True, metavar="NAME=VALUE",
        help="One argument, read as its type. Repeatable.")  # fmt: skip
@option("--rows", type=click.Path(path_type=Path), metavar="FILE", help="Of all rows of a "
        "file together, as `sgc run --rows` reads it.")  # fmt: skip
@columns_options
@option("-e", "--engine", metavar="URI", help="A model provider: openai:MODEL, anthropic:MODEL or "
        "openai+http://HOST:PORT/v1#MODEL. Without it an engine of ours.")  # fmt: skip
@option("-m", "--model", metavar="ID_OR_PATH", help="Model of an engine of ours; only its "
        "tokenizer is read. Without it the default model.")  # fmt: skip
@option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="Dollars a million "
        "tokens by model, as JSON, in place of the table's.")  # fmt: skip
@option("--like", type=click.Path(path_type=Path), metavar="LOG", help="The log of a run of "
        "some rows: replies, and how tokens are counted, are taken to be alike.")  # fmt: skip
@option("-O", "level", type=click.IntRange(0, 3), metavar="LEVEL", default=1, show_default=True,
        help="Optimization level for a PROG.py.")  # fmt: skip
@option(
    "-t", "--temperature", type=float, metavar="X", help="Default of generations that name none."
)
@option("--max-tokens", type=int, metavar="N", help="Default of generations that name none.")
@option("--tool-tokens", type=click.IntRange(min=0), metavar="N",
        help="Most tokens that a result of a tool may have.")  # fmt: skip
@option("--pool-tokens", type=click.IntRange(min=1), metavar="N",
        help="Tokens that our engine has room for. Without it for all.")  # fmt: skip
@option("--warm", "is_warm", is_flag=True, help="As after a run of the same rows.")
@option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@common_options
def estimate_command(**options: Any) -> None:
    """Tells requests, tokens and money of a run before it.

    As expected, and at most.
    """
    from sgc.cli.programs.estimate import estimate

    estimate(**options)


@command("stubs")
@click.argument("source", metavar="PROG.py", type=click.Path(path_type=Path))
@option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
        help="Where to write them, if not beside PROG.py; - for the terminal.")  # fmt: skip
@common_options
def stubs_command(source: Path, output: Path | None) -> None:
    """Writes PROG.pyi, for type checkers and editors.

    It has what the file's programs take and give.
    A run's variables have the types that tracing finds.
    """
    from sgc.cli.programs.stubs import write_stubs

    write_stubs(source, output)
