"""`sgc.view`: a page on programs, runs and jobs, to be saved or shown in a notebook."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from sgc.errors import UsageError
from sgc.ir.file.sgir import MAGIC, load
from sgc.ir.graph import Graph
from sgc.passes.base import Pass
from sgc.passes.pipeline import optimize
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.run import RunState
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.record import RunResult
from sgc.viewer.asked import KINDS, in_log, in_result
from sgc.viewer.page import page
from sgc.viewer.program_data import files_beside, program_data
from sgc.viewer.rows_data import MAX_ROWS, Rows, is_results, read_results
from sgc.viewer.run_data import Collected, run_data
from sgc.viewer.texts import cut, plain

Viewed = Program | Function | RunResult | RunState | RunLog | str | os.PathLike[str]

_LOG_START = b'{"sgc_run_log"'
_MAX_FRAME_PX = 640


@dataclass(frozen=True, slots=True)
class View:
    """A page. data: what it shows, as JSON."""

    title: str
    data: Mapping[str, Any] = field(repr=False)

    def html(self) -> str:
        """The page as one HTML file, which loads nothing else."""
        return page(self.data, self.title)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, and then replaces an existing file at once. It holds prompts and
        replies, so only its owner may read it. Raises UsageError if something other than a file is
        there.
        """
        target = Path(path).resolve()  # a link stays a link
        if target.exists() and not target.is_file():
            raise UsageError(f"{path}: expected the name of a file")
        data = self.html().encode("utf-8")
        handle, unfinished = tempfile.mkstemp(prefix=".sgc-view-", dir=target.parent)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(unfinished, target)
        except BaseException:
            os.unlink(unfinished)
            raise
        return Path(path)

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-scripts" style="width:100%;height:{_MAX_FRAME_PX}px;border:0" '
            f'srcdoc="{escape(self.html())}"></iframe>'
        )


def view(*things: Viewed | Iterable[RunState | RunResult]) -> View:
    """A page on a program, a run, many runs, or a job; of several things, one page on all.

    things: a program or function; what `run` returns, or a list of such; a log, or the path of a
    log, of a `.sgir` file or of a job's results in JSON lines. Runs nothing, and asks no model.
    Raises UsageError for anything else.
    """
    made = PageMaker()
    for thing in things:
        made.add(thing)
    return made.view()


@dataclass(slots=True)
class PageMaker:
    """What a page will show, as it is added."""

    program: dict[str, Any] | None = None
    rows: Rows | None = None
    found: Collected = field(default_factory=Collected)
    about: dict[str, Any] = field(default_factory=dict)
    own_rows: list[dict[str, Any]] = field(default_factory=list)
    n_rows: int = 0
    n_failed: int = 0
    has_log: bool = False

    def add(self, thing: Any) -> None:
        match thing:
            case Program():
                self.add_graph(thing.graph)
            case Function():
                self.add_function(thing)
            case RunResult() | RunState():
                self.add_state(thing)
            case RunLog():
                self.add_log(thing)
            case str() | os.PathLike():
                self.add_path(Path(thing))
            case Iterable():
                for each in thing:
                    if not isinstance(each, RunResult | RunState):
                        raise _unknown(each)
                    self.add_state(each)
            case _:
                raise _unknown(thing)

    def add_graph(self, graph: Graph, sources: Mapping[str, Path] | None = None,
                  steps: Sequence[tuple[Pass, Graph, Graph]] = ()) -> None:  # fmt: skip
        if self.program is not None:
            raise UsageError(f"a page shows one program, found {graph.name} too")
        self.program = program_data(graph, sources, steps)

    def add_function(self, function: Function) -> None:
        program = function.compile(opt_level=0)
        self.add_optimized(program.graph, 1, function)

    def add_optimized(self, graph: Graph, level: int, function: Function) -> None:
        """Adds a graph as the passes of a level make it, and what each of them changed."""
        steps: list[tuple[Pass, Graph, Graph]] = []
        made = optimize(graph, level, None, lambda row, old, new, _: steps.append((row, old, new)))
        source = Path(function.python.__code__.co_filename)
        self.add_graph(made, files_beside(source) if source.is_file() else {}, steps)

    def add_path(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                start = file.read(64)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        if start.startswith(MAGIC):
            self.add_graph(load(path))
        elif start.startswith(_LOG_START):
            with RunLog.read(path) as log:
                self.add_log(log)
        elif is_results(path):
            if self.rows is not None:
                raise UsageError(f"{path}: a page shows the results of one job")
            self.rows = read_results(path)
        else:
            raise UsageError(
                f"{path}: expected a .sgir file, the log of a run, or a job's results in JSON "
                "lines",
                hint="sgc run PROG --log RUN.log writes a log",
            )

    def add_log(self, log: RunLog) -> None:
        header = log.header
        if header is None:
            raise UsageError(f"{log.path}: no run was begun in it")
        if self.n_rows:  # its rows may have the same keys as others, and its clock is another
            raise UsageError(f"{log.path}: a page shows one log, and no runs beside it")
        self.has_log = True
        options = {name: plain(value) for name, value in header.options.items()}
        model = log.capabilities().model
        self.about |= {"program": header.program, "seed": header.seed, "model": model}
        self.about |= {"options": options} if options else {}
        self.found.add(in_log(log), log.count(KINDS))
        for key in log.rows():
            self.n_rows += 1
            if len(self.own_rows) < MAX_ROWS:
                self.own_rows.append({"key": key, "inputs": plain(log.arguments(key) or {})})

    def add_state(self, state: RunState | RunResult) -> None:
        """Adds a run, as the row of its number."""
        if self.has_log:
            raise UsageError("a page shows one log, or runs, not both")
        key = str(self.n_rows)
        self.n_rows += 1
        error = state.error() if isinstance(state, RunState) else None
        if error is not None:
            told = cut(f"{type(error).__name__}: {error}", 20_000)
            self._add_row({"key": key, "inputs": {}, "error": told})
            return
        result = state.result() if isinstance(state, RunState) else state
        self.about.setdefault("program", result.program)
        self.about.setdefault("seed", result.seed)
        n_all = len(result.requests) + len(result.tool_calls)
        self.found.add(in_result(key, result), n_all)
        self._add_row(_row(key, result))

    def _add_row(self, row: dict[str, Any]) -> None:
        self.n_failed += "error" in row
        if len(self.own_rows) < MAX_ROWS:
            self.own_rows.append(row)

    def view(self) -> View:
        data: dict[str, Any] = {}
        if self.program is not None:
            data["program"] = self.program
        if self.found.requests or self.found.calls or self.own_rows:
            data["run"] = run_data(self.found, self.about)
        if self.rows is not None or self.own_rows:
            data["rows"] = self._rows()
        if not data:
            raise UsageError("there is nothing to show: give a program, a run, or a log")
        name = self.about.get("program") or (self.program or {}).get("name") or "results"
        return View(f"sgc: {name}", data)

    def _rows(self) -> dict[str, Any]:
        """The rows of the results, and those rows of the log that are not done."""
        if self.rows is None:
            return {"rows": self.own_rows, "all": self.n_rows, "failed": self.n_failed}
        done = {row["key"] for row in self.rows.rows}
        is_whole = len(self.rows.rows) == self.rows.n_all
        begun = [
            row | {"begun": True} for row in self.own_rows if is_whole and row["key"] not in done
        ]
        return {
            "rows": [*self.rows.rows, *begun],
            "all": self.rows.n_all + len(begun),
            "failed": self.rows.n_failed,
        }


def is_log(path: Path) -> bool:
    """Whether a file is the log of a run, by its beginning."""
    try:
        with path.open("rb") as file:
            return file.read(len(_LOG_START)) == _LOG_START
    except OSError:
        return False


def _row(key: str, result: RunResult) -> dict[str, Any]:
    stats = result.stats
    return {
        "key": key,
        "inputs": {},
        "variables": {name: plain(value) for name, value in result.variables.items()},
        "return": plain(result.ret_value),
        "usage": {
            "requests": stats.requests,
            "prompt_tokens": stats.prompt_tokens,
            "cached_tokens": stats.cached_tokens,
            "completion_tokens": stats.completion_tokens,
            **({} if stats.cost_usd is None else {"cost_usd": stats.cost_usd}),
        },
        "streams": [[stream.name, cut(stream.text), _pieces(stream.pieces)]
                    for stream in result.streams],
    }  # fmt: skip


def _pieces(pieces: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Empty if the text is cut: its pieces would not match it then."""
    found = [[kind, text] for kind, text in pieces]
    return found if sum(len(text) for _, text in found) <= 100_000 else []


def _unknown(thing: Any) -> UsageError:
    return UsageError(
        f"expected a program, a run, a log or a path, found {type(thing).__name__}",
        hint="sgc.view(program), sgc.view(program.run(…)), sgc.view('run.log')",
    )
