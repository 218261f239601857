"""`map_batches`: a program on the rows of a Ray dataset.

With order="plan", the dataset is sorted by the beginnings of the rows' prompts
(`planning/sort_key.py`), so that the rows of a batch, which goes to one actor, have common
prefixes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import ray
from ray.data import ActorPoolStrategy, Dataset

from sgc.errors import SgcWarning, UsageError
from sgc.planning.sort_key import SortKeys
from sgc.programs.program import Program
from sgc.ray.asked import EngineAsked, RowsAsked, settings_of
from sgc.ray.loading import bytes_of, program_of
from sgc.ray.rows import FailedRows, ProgramRows
from sgc.runs.batch import MAX_CONCURRENCY
from sgc.runs.endpoints import require_engine
from sgc.runs.jobs.records import COLUMNS
from sgc.runs.options import known_options, make_options
from sgc.runs.planned_batch import has_effects
from sgc.runs.rows.parquet import arguments_of, require_pyarrow

ORDERS = ("plan", "batch", "given")
KEY, NUMBER, ORDER = "custom_id", "__sgc_number", "__sgc_order"
# The rows that an actor gets at once, and that run again if the actor is lost.
BATCH_SIZE = 256
IN_FLIGHT = 2  # batches at an actor: one runs, and the next is ready when that ends
_NOT_HERE = ("allow_tools", "log", "row")  # options that are not plain data


def map_batches(
    program: Any,
    dataset: Dataset,
    *,
    engine: str | None = None,
    token: str | None = None,
    model: str | None = None,
    serve: Mapping[str, Any] | None = None,
    concurrency: int | tuple[int, int] = 1,
    batch_size: int = BATCH_SIZE,
    order: str = "plan",
    key: str = KEY,
    keep: Sequence[str] = (),
    tools: Sequence[str] = (),
    max_concurrency: int = MAX_CONCURRENCY,
    max_errors: int | None = None,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    ray_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Runs a program once for each row, on actors with an engine each; lazy, as Ray's own.

    program: a `.sgir` file, a compiled program, or a function that compiles. Columns named as its
    parameters are its arguments; results have the columns of `sgc run --rows --out X.parquet`, and
    those in `keep`. engine: addresses as `sgc run --engine` takes them, else each actor starts one:
    `model`, and `serve`, the options of `sgc serve` with underscores. concurrency: actors, or the
    least and the most of them. batch_size: rows that an actor gets at once. order: "plan" sorts
    rows by how their prompts begin, "batch" does so within each batch only, and "given" not at all.
    key: the column of keys, by which rows sample; without such a column, rows are numbered, which
    requires computing the dataset first. tools: modules with the program's tools. max_errors: more
    failed rows end the dataset's run. num_cpus, num_gpus: of an actor; by default one CPU, or half
    of one if actors would leave none for reading and sorting (a single actor: none); ray_options:
    others. Other options are those of a run: seed, temperature, max_tokens.
    """
    data = bytes_of(program)
    loaded = program_of(data, tuple(tools))
    chosen = _options(loaded, options)
    if order not in ORDERS:
        raise UsageError(f"order must be one of {', '.join(ORDERS)}, found {order!r}")
    names = [param.value.name for param in loaded.graph.params]
    columns = _columns(dataset)
    _check_columns(loaded, columns, [*keep, *([key] if key != KEY else [])])
    if own := [name for name in keep if name in COLUMNS]:
        raise UsageError(f"keep: the results have a column {own[0]!r} of their own")
    if engine is None:
        require_engine()
    least, most = concurrency if isinstance(concurrency, tuple) else (concurrency, concurrency)
    if not 1 <= least <= most or batch_size < 1:
        raise UsageError(
            f"expected concurrency=N, or (LEAST, MOST), and batch_size, each from 1, found "
            f"{concurrency!r} and {batch_size!r}"
        )
    cpus = _cpus(least, num_cpus)
    settings = settings_of(serve or {}, cpus)
    has_keys = key in columns
    asked = RowsAsked(
        data, chosen, EngineAsked(engine, token, model, settings), key if has_keys else NUMBER,
        order, tuple(keep), tuple(tools), max_concurrency, max_errors,
    )  # fmt: skip
    if not has_keys:
        dataset = numbered(dataset)
    if order == "plan":
        needed = (*dict.fromkeys((*names, asked.key, *keep)),)
        dataset = dataset.map_batches(
            with_order, batch_format="pyarrow", fn_args=(data, needed), batch_size=None
        ).sort(ORDER)
    errors = None if max_errors is None else _counter(max_errors)
    return dataset.repartition(target_num_rows_per_block=batch_size).map_batches(
        ProgramRows,
        batch_size=batch_size,
        batch_format="pyarrow",
        fn_constructor_args=(asked, errors),
        compute=ActorPoolStrategy(
            min_size=least, max_size=most, max_tasks_in_flight_per_actor=IN_FLIGHT
        ),
        num_cpus=cpus,
        num_gpus=num_gpus,
        **(ray_options or {}),
    )


def _options(program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the runs, with a seed: all actors draw from the same one."""
    for name in _NOT_HERE:
        if name in given:
            raise UsageError(
                f"{name} cannot be sent to other machines",
                hint="tools=[MODULE] names tools; a run's log is for `sgc run --rows`",
            )
    chosen = make_options(known_options(given))
    if chosen.n > 1:
        raise UsageError(f"n={chosen.n} cannot be given to a compiled program")
    program.check_tools(chosen)
    if has_effects(program.graph):
        raise UsageError(
            f"{program.name} calls a tool that has effects, and rows of a lost actor run again",
            hint='if that does no harm, declare it so: @sgc.tool(effect="idempotent"); '
            "else `sgc run --rows` has a log",
        )
    return {**given, "seed": chosen.seed}


def _columns(dataset: Dataset) -> list[str]:
    """The columns of a dataset. Raises UsageError if it has none, or no rows."""
    schema = dataset.schema()
    if schema is None or not schema.names:
        raise UsageError("the dataset has no rows, or no columns")
    if taken := [name for name in (NUMBER, ORDER) if name in schema.names]:
        raise UsageError(
            f"the dataset has a column {taken[0]!r}, which is added here while rows are sorted",
            hint="dataset.rename_columns({...})",
        )
    return list(schema.names)


def _check_columns(program: Program, columns: Sequence[str], wanted: Sequence[str]) -> None:
    told = f"the dataset has {', '.join(columns) or 'none'}"
    needed = [param.value.name for param in program.graph.params if param.default is None]
    if missing := [name for name in needed if name not in columns]:
        raise UsageError(
            f"{program.name} takes {missing[0]}, of which the dataset has no column; {told}",
            hint="dataset.rename_columns({...}) names columns as the program's parameters",
        )
    for name in wanted:
        if name not in columns:
            raise UsageError(f"there is no column {name!r}; {told}")


def _cpus(n_actors: int, asked: float | None) -> float:
    """The CPUs of an actor. Warns if the actors take all CPUs that the cluster has now: reading,
    sorting and writing need one too, and would wait until the cluster grows."""
    left = ray.cluster_resources().get("CPU", 0.0) - 1
    choices: tuple[float, ...] = (1.0, 0.5) if asked is None else (asked,)
    if asked is None and n_actors == 1:  # several of none might share a machine
        choices += (0.0,)
    for each in choices:
        if each * n_actors <= left:
            return each
    found = 1.0 if asked is None else asked
    message = (
        f"{n_actors} actors of {found:g} CPUs leave none of the cluster's {left + 1:g} to reading, "
        "sorting and writing, which wait until it grows; fewer actors, or a smaller num_cpus, do"
    )
    warnings.warn(SgcWarning(message), stacklevel=3)
    return found


def _counter(max_errors: int) -> Any:
    return ray.remote(FailedRows).options(num_cpus=0).remote(max_errors)


def with_order(table: Any, program: bytes, needed: Sequence[str]) -> Any:
    """A table's needed columns, and a column to sort by: how a row's prompts begin."""
    arrow, _ = require_pyarrow()
    graph = program_of(program).graph
    keys, params = SortKeys(graph), {param.value.name for param in graph.params}
    table = table.select([name for name in needed if name in table.column_names])
    given = table.select([name for name in table.column_names if name in params]).to_pylist()
    texts = [_order(keys, cells) for cells in given]
    return table.append_column(ORDER, arrow.array(texts, arrow.string()))


def _order(keys: SortKeys, cells: Mapping[str, Any]) -> str:
    try:
        text = keys.of(arguments_of(cells))
    except TypeError:
        return ""  # the row's run reports what is wrong with it
    return text.encode("utf-8", "backslashreplace").decode()


def numbered(dataset: Dataset) -> Dataset:
    """The dataset with its rows numbered from 0, in its order; computes the dataset."""
    how = dataset.context.execution_options
    before, how.preserve_order = how.preserve_order, True
    try:
        refs = dataset.to_arrow_refs()
    finally:
        how.preserve_order = before
    counts = ray.get([ray.remote(_n_rows).remote(ref) for ref in refs])
    starts = accumulate(counts, initial=0)
    add = ray.remote(_with_numbers)
    return ray.data.from_arrow_refs([add.remote(*each) for each in zip(refs, starts, strict=False)])


def _n_rows(table: Any) -> int:
    return int(table.num_rows)


def _with_numbers(table: Any, start: int) -> Any:
    arrow, _ = require_pyarrow()
    numbers = arrow.array(range(start, start + table.num_rows), arrow.int64())
    return table.append_column(NUMBER, numbers)
