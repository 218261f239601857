"""`sgc compile`."""

from __future__ import annotations

from pathlib import Path

import click

from sgc.cli.output.verbose import warn
from sgc.cli.programs.loading import Given, signature_types
from sgc.cli.programs.source import load_function, parse_pairs, read_pairs
from sgc.errors import UsageError
from sgc.ir.analysis.host_calls import pieces_in_python, told_pieces
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.graph import Graph
from sgc.ir.text.printer import to_text
from sgc.ir.types import JSON
from sgc.passes.base import Pass
from sgc.passes.pipeline import PASSES
from sgc.programs.compiling import compile_function, fixed_in, fixed_note
from sgc.programs.function import Function
from sgc.runs.cache_rules import passes_for

GO_ON = "a run of the file goes on there only with --source PROG.py"


def compile_program(
    source: str,
    output: Path | None,
    level: int,
    passes: str | None,
    bindings: tuple[str, ...],
    json_args: str | None,
    print_after: str | None,
    no_check: bool,
    full_graph: bool,
    allow_ambient: bool,
    as_sglang: bool,
    kept: str,
    allow_no_request: bool,
    model: str | None,
    rows: int,
) -> None:
    """Compiles, prints what the options ask for, and writes the file."""
    check_output(output)
    if as_sglang:
        from sgc.compat.sglang import install

        install()
    function = load_function(source)
    names = None if passes is None else tuple(filter(None, passes.split(",")))
    target = () if model is None else passes_for(model, rows)
    known = [*PASSES, *(row.name for row in target)]
    if print_after is not None and print_after != "all" and print_after not in known:
        raise UsageError(
            f"--print-after: there is no pass {print_after!r}",
            hint=f"there are: all, {', '.join(known)}",
        )

    def show(row: Pass, before: Graph, after: Graph, seconds: float) -> None:
        if print_after in ("all", row.name):
            _print_pass(row, before, after, seconds)

    values = bind_values(function, bindings)
    given = Given.read(json_args, (), None).rows(signature_types(function))
    types_of = function.signature.types_of(given)
    program = compile_function(
        function,
        {**function.bind_arguments, **values},
        check=not no_check,
        opt_level=level,
        passes=names,
        observer=show,
        types_of={name: type_ for name, type_ in types_of.items() if name not in values},
        is_full=full_graph,
        leaves=True,
        allow_ambient=allow_ambient,
        kept=kept,
        allow_no_request=allow_no_request,
        target=target,
        values=function.signature.defaults,
    )
    for name in fixed_in(program, function, {**function.bind_arguments, **values}):
        value = function.signature.defaults[name]
        warn(fixed_note(function.name, name, value))
    left = left_of(program.graph)
    if left is not None:
        told = f"{program.name} has {left}; {GO_ON}; --full-graph says what to write instead"
        warn(f"{left.lines[0]}: {told}")
    pieces = told_pieces(program.graph)
    if pieces:
        where = next(node.loc for node in pieces_in_python(program.graph))
        told = f"{program.name} runs {pieces}; {GO_ON}; --full-graph says what to write instead"
        warn(f"{where}: {told}")
    if output is None and print_after is None:
        click.echo(program.text(), nl=False)
    if output is not None:
        program.save(output)
        size = output.stat().st_size
        click.echo(
            f"{output}: {program.name}, {program.graph.n_nodes} nodes, {size} bytes", err=True
        )


def check_output(output: Path | None) -> None:
    if output is None:
        return
    if str(output) in ("", ".") or output.is_dir():
        raise UsageError(f"-o: expected a file, found the folder {str(output)!r}")
    if output.suffix == ".py":
        raise UsageError(
            f"-o {output}: a compiled program must not replace Python source",
            hint=f"-o {output.with_suffix('.sgir').name}",
        )


def bind_values(function: Function, bindings: tuple[str, ...]) -> dict[str, object]:
    """The values of --bind: JSON if possible, else text; always text for a text parameter."""
    types = {p.name: p.type if p.is_typed else JSON for p in function.signature.parameters}
    return parse_pairs(read_pairs(bindings, "--bind"), types, "--bind")


def _print_pass(row: Pass, before: Graph, after: Graph, seconds: float) -> None:
    change = "no change" if after is before else f"{before.n_nodes} -> {after.n_nodes} nodes"
    click.echo(
        f"# pass {row.name}  preserves={row.preserves.value}  {change}  {seconds * 1e3:.1f} ms"
    )
    if after is not before:
        click.echo(to_text(after))
