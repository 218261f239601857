"""Loads a program for a command, from a file or compiled from Python source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sgc.cli.output.verbose import warn
from sgc.cli.programs.given_rows import GivenRows
from sgc.cli.programs.source import (
    check_program,
    is_source,
    load_function,
    parse_json_args,
    parse_pairs,
    read_pairs,
)
from sgc.core.stops import INTERPRET
from sgc.errors import ArgumentError, RaisedInTrace, SgcError, TraceError, UsageError, WordError
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.types import JSON, Type
from sgc.programs.compiling import compile_function, fixed_in
from sgc.programs.function import Function
from sgc.programs.program import Program, load
from sgc.runs.rows.records import PLAIN, Columns
from sgc.runs.rows.source import open_source
from sgc.runs.rows.survey import Asked
from sgc.tracing.watch.guards import check_source

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """function: the Python of a compiled program, if a run may continue in the interpreter; bound:
    the arguments fixed at compile time, which a run no longer takes; doubt: a warning to show after
    a run without an error; after an error it would only repeat it.
    """

    program: Program | Function
    function: Function | None = None
    bound: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments on the command line: of one run, or of the rows of a file. They are
    read once, as a file may be a pipe. json_args: None without --args; single_args: the texts of
    --arg; job: rows of a file.
    """

    json_args: Mapping[str, Any] | None
    single_args: Mapping[str, str]
    job: GivenRows | None = None

    @staticmethod
    def read(
        json_args: str | None,
        single_args: tuple[str, ...],
        rows: Path | None,
        columns: Columns = PLAIN,
    ) -> Given:
        if rows is not None and (json_args is not None or single_args):
            raise UsageError("--args and --arg are for one run, and --rows FILE has many")
        parsed = None if json_args is None else parse_json_args(json_args)
        if rows is None:
            return Given(parsed, read_pairs(single_args, "--arg"))
        return Given(None, {}, GivenRows(open_source(str(rows), columns=columns), Asked()))

    def __bool__(self) -> bool:
        return self.json_args is not None or bool(self.single_args or self.job)

    def arguments(self, types: Mapping[str, Type]) -> dict[str, Any]:
        """The arguments of the one run; --arg is parsed by the parameters' types."""
        arguments = dict(self.json_args or {})
        for name, value in parse_pairs(self.single_args, types, "--arg").items():
            if name in arguments:
                raise ArgumentError(f"argument {name!r} is given by --args and by --arg")
            arguments[name] = value
        return arguments

    def rows(self, types: Mapping[str, Type]) -> list[Arguments]:
        """The arguments of each run; of a job, of some that stand for all."""
        if self.job is not None:
            return [row.arguments for row in self.job.samples]
        return [self.arguments(types)] if self else []


NOTHING = Given(None, {})


def check_given(given: Given, function: Function) -> None:
    """Raises for arguments that do not fit the function; an error names a row's line."""
    if given.job is not None:
        given.job.look(function)
    else:
        arguments = function.signature.objects(given.arguments(signature_types(function)))
        function.signature.check_types(function.signature.bind((), arguments))


def signature_types(function: Function) -> dict[str, Type]:
    """The types by which command-line arguments are parsed; JSON for parameters without a type."""
    parameters = function.signature.parameters
    return {p.name: JSON if p.is_static else p.type for p in parameters}


def rows_of(given: Given, function: Function) -> list[Arguments]:
    """The arguments of each run as the function takes them; of a job, of some that stand for
    all."""
    return [function.signature.objects(row) for row in given.rows(signature_types(function))]


def static_arguments(function: Function, given: Given) -> tuple[dict[str, Any], dict[str, Type]]:
    """The arguments whose values must be known when compiling, and the types inferred from values
    for parameters without annotation. Raises TraceError if rows disagree.
    """
    signature, rows = function.signature, rows_of(given, function)
    types_of, bound = signature.types_of(rows), {}
    for name in signature.names_to_bind(rows, types_of):
        values = [row[name] for row in rows if name in row]
        if len(values) < len(rows) or any(value != values[0] for value in values):
            raise TraceError(
                f"the value of argument {name!r} of {function.name} must be known when compiling, "
                "and is not the same in all rows",
                where=str(function.loc),
                hint=f"annotate it as text, a number, a bool or a list of them, {name}: bool",
            )
        bound[name] = values[0]
    return bound, types_of


def load_source(
    function: Function, given: Given, level: int, check: bool, is_full: bool = False
) -> Loaded:
    """Compiles a function for the types of its arguments. If that leaves a part to the interpreter,
    compiles it for the values of data arguments that are equal in all rows.
    """
    bound, types_of = static_arguments(function, given)
    same = values_of(function, given)

    def compiled(values: Mapping[str, Any]) -> tuple[Loaded, bool]:
        program = compile_function(
            function, {**function.bind_arguments, **values}, check=check, opt_level=level,
            types_of=types_of, is_full=is_full, values=same, may_be_in_python=True,
        )  # fmt: skip
        is_whole = left_of(program.graph) is None
        fixed = fixed_in(program, function, {**function.bind_arguments, **values})
        return Loaded(program, function, (*values, *fixed)), is_whole

    values = bound | data_of(function, given)
    try:
        loaded, is_whole = compiled(bound)
    except TraceError:
        if len(values) == len(bound):
            raise
        return compiled(values)[0]
    if len(values) > len(bound) and not is_whole:
        return compiled(values)[0]
    return loaded


def data_of(function: Function, given: Given) -> dict[str, Any]:
    """Arguments annotated as data, if they are equal in all rows."""
    names = {p.name for p in function.signature.parameters if p.schema}
    return {name: value for name, value in same_of(function, given).items() if name in names}


def values_of(function: Function, given: Given) -> dict[str, Any]:
    """What tracing may fix arguments to: values that are equal in all rows, defaults included."""
    rows = rows_of(given, function)
    defaults = function.signature.defaults
    silent = {name: defaults[name] for name in defaults if not any(name in row for row in rows)}
    return silent | same_of(function, given)


def same_of(function: Function, given: Given) -> dict[str, Any]:
    """Arguments that are equal in all rows."""
    first, *others = rows_of(given, function) or [{}]
    return {
        name: value
        for name, value in first.items()
        if all(name in row and row[name] == value for row in others)
    }


def load_to_run(
    program: str, source: str | None, given: Given, interpret: bool, level: int, check: bool,
    is_full: bool,
) -> Loaded:  # fmt: skip
    """The program for `sgc run`; as in a call, a function that cannot be compiled is interpreted.

    Raises GuardError if the program was not compiled from `source`.
    """
    check_program(program)
    if is_source(program):
        if source is not None:
            raise UsageError("--source is for .sgir files; this is Python already")
        function = load_function(program)
        if interpret:
            return Loaded(function)
        if given:
            check_given(given, function)
        try:
            return load_source(function, given, level, check, is_full)
        except WordError:  # each run would raise it
            raise
        except SgcError as error:
            if is_full or function.full_graph:
                raise
            warning = _interpreted(error, function)
            if isinstance(error, RaisedInTrace) and given.job is None:
                return Loaded(function, doubt=warning)
            warn(warning)
            return Loaded(function)
    if interpret:
        raise UsageError("--interpret needs the Python source, not a compiled program")
    loaded = replace(load(program), level=level)
    if source is None:
        return Loaded(loaded)
    function = load_function(source)
    check_source(function, loaded.graph, source)
    return Loaded(loaded, function)


def _interpreted(error: SgcError, function: Function) -> str:
    """One line on why a program is not compiled, and what to do."""
    hint = error.hint.replace("; or " + INTERPRET, "").replace(INTERPRET, "")
    way_out = hint or "--interpret runs it so without this line"
    message = f"{error.where or function.loc}: {error.message}; {function.name} is interpreted"
    return " ".join(f"{message} ({way_out})".split())


def load_program(
    program: str, interpret: bool, level: int, check: bool, given: Given = NOTHING
) -> Loaded:
    """The program for a command that does not run it; source must compile."""
    if not is_source(program):
        return load_to_run(program, None, NOTHING, interpret, level, check, True)
    function = load_function(program)
    if given.job is not None:
        given.job.look(function)
    return Loaded(function) if interpret else load_source(function, given, level, check)
