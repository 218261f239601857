"""The rows of `sgc run --rows`, surveyed once the program tells their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgc.cli.output.verbose import warn
from sgc.errors import UsageError
from sgc.ir.types import JSON, Kind, Type
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.rows.records import InputRow
from sgc.runs.rows.source import RowSource
from sgc.runs.rows.survey import Asked, Survey, survey
from sgc.runtime.executor.interface.argument_shapes import schemas_of, with_tuples
from sgc.runtime.executor.interface.arguments import bind_arguments


@dataclass(frozen=True, slots=True)
class _Fit:
    """What rows must be for a program. is_by_type: whether only the types of arguments matter."""

    types: Mapping[str, Type]
    check: Callable[[Mapping[str, Any]], object]
    is_by_type: bool


class GivenRows:
    """Rows that are read again for each pass over them, so that they need not be in memory."""

    def __init__(self, source: RowSource, asked: Asked) -> None:
        self.source = source
        self._asked = asked
        self._types: Mapping[str, Type] = {}
        self._survey: Survey | None = None

    def look(self, program: Program | Function) -> Survey:
        """Reads all rows the first time. Raises UsageError for what does not fit the program, and
        for a key that comes twice."""
        if self._survey is None:
            if isinstance(program, Function) and self.source.columns.is_loose:
                _check_names(program)
            fit = _of_function(program) if isinstance(program, Function) else _of_graph(program)
            self._types = fit.types
            self._survey = survey(
                self.source, fit.types, fit.check, self._asked,
                warn, fit.is_by_type,
            )  # fmt: skip
        return self._survey

    @property
    def samples(self) -> list[InputRow]:
        """Some rows that represent all."""
        assert self._survey is not None
        return self._survey.samples

    def read(self) -> Iterator[InputRow]:
        """The rows to run."""
        assert self._survey is not None
        return self._survey.chosen.among(self.source.read(self._types))


def _check_names(function: Function) -> None:
    """Raises UsageError where every column is an argument."""
    if function.signature.options is not None:
        raise UsageError(
            f"--ignore-columns: {function.name} takes all columns, by "
            f"**{function.signature.options}",
            hint="name its parameters one by one",
        )


def _of_function(function: Function) -> _Fit:
    signature = function.signature
    types = {p.name: JSON if p.is_static else p.type for p in signature.parameters}
    depends = any(p.schema or p.type.kind is Kind.CHOICE for p in signature.parameters)
    return _Fit(types, lambda each: signature.check_types(signature.bind((), each)), not depends)


def _of_graph(program: Program) -> _Fit:
    graph = program.graph
    types = {param.value.name: param.value.type for param in graph.params}
    depends = bool(schemas_of(graph)) or any(t.kind is Kind.CHOICE for t in types.values())

    def check(arguments: Mapping[str, Any]) -> None:
        bind_arguments(graph, with_tuples(graph, dict(arguments)))

    return _Fit(types, check, not depends)
