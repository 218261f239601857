"""Runs a program's rows on one actor of Ray Data: a table of rows in, a table of results out.

Rows sample by their keys, so a row's result depends neither on the actor nor on other rows, and a
batch that Ray sends again has the same results. If the actor's own engine ends, the actor starts it
again; if the actor ends, Ray starts another and sends the batch to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgc.errors import EngineUnavailable, SgcError, UsageError
from sgc.programs.program import Program
from sgc.ray.asked import EngineAsked, RowsAsked
from sgc.ray.loading import program_of
from sgc.runs.batch import BatchOptions
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import Runtime, connect
from sgc.runs.jobs.job import TooManyFailed
from sgc.runs.jobs.parquet_out import schema_of, table_of
from sgc.runs.jobs.records import Record, flat, record_of
from sgc.runs.options import make_options
from sgc.runs.planned_batch import make_batch
from sgc.runs.row_iterator import run_all
from sgc.runs.rows.parquet import arguments_of, require_pyarrow
from sgc.runs.rows.records import InputRow
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.argument_shapes import with_tuples
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.run.record import RunResult

# How often an engine may end during a batch: a row that is running each time may be the cause.
MAX_LOST = 3
Outcome = RunResult | BaseException


class ProgramRows:
    """The callable that Ray Data makes once per actor. errors: the actor that counts failed rows,
    if they are limited."""

    def __init__(self, asked: RowsAsked, errors: Any = None) -> None:
        self._asked, self._errors = asked, errors
        self._program = program_of(asked.program, asked.tools)
        self._options = make_options(asked.options)
        self._names = {param.value.name for param in self._program.graph.params}
        self._endpoint = _opened(asked.engine)

    def __call__(self, table: Any) -> Any:
        """The results of a table's rows, in their order."""
        arrow, _ = require_pyarrow()
        columns = [name for name in table.column_names if name in {*self._names, self._asked.key}]
        rows = [self._row(cells) for cells in table.select(columns).to_pylist()]
        records = self._records(rows)
        self._count_errors(records)
        found = table_of(arrow, [flat(each) for each in records], schema_of(arrow))
        for name in self._asked.keep:
            found = found.append_column(name, table.column(name))
        return found

    def _row(self, cells: dict[str, Any]) -> InputRow:
        key = cells.pop(self._asked.key, None)
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise UsageError(
                f"a row's key, {self._asked.key!r}, must be a text or a number, found {key!r}",
                hint="fill the column, or drop it: without one, rows are numbered",
            )
        return InputRow(str(key), cells, 0)

    def _records(self, rows: Sequence[InputRow]) -> list[Record]:
        outcomes: dict[int, Outcome] = {}
        arguments: dict[int, dict[str, Any]] = {}
        for number, row in enumerate(rows):
            try:
                arguments[number] = self._arguments(row)
            except (SgcError, TypeError) as error:
                outcomes[number] = error
        outcomes |= self._answered(rows, arguments)
        return [_record(row, outcomes[number]) for number, row in enumerate(rows)]

    def _arguments(self, row: InputRow) -> dict[str, Any]:
        graph = self._program.graph
        arguments = with_tuples(graph, arguments_of(row.arguments))
        bind_arguments(graph, arguments)
        return arguments

    def _answered(
        self, rows: Sequence[InputRow], arguments: dict[int, dict[str, Any]]
    ) -> dict[int, Outcome]:
        """The outcomes of rows. Rows that are lost because our own engine ended run again on a new
        one. Raises EngineUnavailable if no row was answered, as that is no result of a row."""
        found: dict[int, Outcome] = {}
        left = [*arguments]
        for _ in range(MAX_LOST):
            states = self._run([(rows[n].key, arguments[n]) for n in left])
            for n, state in zip(left, states, strict=True):
                found[n] = state.error() or state.result()
            left = [n for n in left if isinstance(found[n], EngineUnavailable)]
            if not left or not self._renewed():
                break
        if left and len(left) == len(arguments):
            error = found[left[0]]
            assert isinstance(error, EngineUnavailable)
            raise error
        return found

    def _run(self, given: Sequence[tuple[str, dict[str, Any]]]) -> list[RunState]:
        program: Program = self._program
        backend = self._endpoint.with_adapter(self._options.adapter).backend
        sharing = program.sharing(backend)
        rows = [program.row(each, sharing, self._options, key) for key, each in given]
        order = "given" if self._asked.order == "given" else "plan"
        how = BatchOptions(max_concurrency=self._asked.max_concurrency, order=order)
        return run_all(make_batch(rows, how, backend, self._options.max_tokens))

    def _renewed(self) -> bool:
        """Starts the actor's own engine again if it has ended."""
        engine = self._endpoint
        if not isinstance(engine, Runtime) or engine.is_running:
            return False
        engine.shutdown()
        self._endpoint = _opened(self._asked.engine)
        return True

    def _count_errors(self, records: Sequence[Record]) -> None:
        """Raises TooManyFailed beyond `max_errors`, counted over all actors."""
        failed = [record for record in records if "error" in record]
        limit = self._asked.max_errors
        if limit is None or not failed:
            return
        import ray

        n_failed = ray.get(self._errors.add.remote([record["key"] for record in failed]))
        if n_failed > limit:
            key, error = failed[0]["key"], failed[0]["error"]
            raise TooManyFailed(
                f"{n_failed} rows failed; row {key}: {error['type']}: {error['message']}",
                hint="give a larger max_errors, or None for no limit",
            )


class FailedRows:
    """Counts the rows that failed, each once however often its batch runs; an actor of its own."""

    def __init__(self, limit: int) -> None:
        self._limit, self._keys = limit, set[str]()

    def add(self, keys: Sequence[str]) -> int:
        for key in keys:
            if len(self._keys) <= self._limit:
                self._keys.add(key)
        return len(self._keys)


def _record(row: InputRow, outcome: Outcome) -> Record:
    record = record_of(row, outcome)
    try:
        flat(record)
    except SgcError as error:  # a result that cannot be written as JSON
        record = record_of(row, error)
    return record


def _opened(asked: EngineAsked) -> Endpoint:
    if asked.uri is not None:
        return connect(asked.uri, asked.token)
    return Runtime(asked.model, **asked.settings)
