"""Replies and tool results of a run's log, from which dry runs of the same program are answered.

A row that is in the log with equal arguments gets the same replies. Other rows get those of the
log's rows in turn, and so take the same paths; a generation that the log's row did not reach is
answered from its draws in other rows, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgc.errors import RunLogError, UsageError
from sgc.ir.graph import Graph
from sgc.runtime.executor.interface.backend import Generated, Scored, Usage
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.interface.place import Place
from sgc.runtime.executor.interface.plain import canonical
from sgc.runtime.executor.log.records import generated_of, scored_of
from sgc.runtime.executor.log.run_log import RunLog, header_of
from sgc.runtime.executor.run.options import RunOptions

Draw = tuple[str, str, int]  # row, path, ordinal


@dataclass(frozen=True, slots=True)
class Part:
    """The log's row from which a row is answered. is_same: it is the same row."""

    row: str
    is_same: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A reply of the log. is_same: to the same request, judged by its place."""

    reply: Generated | Scored
    is_same: bool


class Samples:
    """The replies of an open log. Raises UsageError for the log of another program."""

    def __init__(self, log: RunLog, graph: Graph) -> None:
        check_program(log, graph)
        self._log = log
        self.rows = log.rows()
        self.capabilities = log.capabilities()
        self._parts: dict[str, Part] = {}
        self._draws: dict[tuple[str, str, str], list[Draw]] = {}  # by kind, line and name
        self._tools: dict[tuple[str, str], list[Json]] = {}  # by row and name
        self._taken: dict[tuple[str, Draw], Draw] = {}
        self._n_taken: dict[tuple[str, str, str], int] = {}
        for record in log.records():
            self._note(record)

    def _note(self, record: Json) -> None:
        kind, name, line = record["kind"], record.get("name", ""), record.get("line", "")
        if kind in ("generate", "score") and record["number"] == 0:
            draw = (record["row"], record["path"], record["ordinal"])
            self._draws.setdefault((kind, line, name), []).append(draw)
        elif kind == "tool":
            self._tools.setdefault((record["row"], name), []).append(record)

    def arguments(self, row: str) -> Mapping[str, Any]:
        """A row's arguments. Raises UsageError where the log does not have them."""
        found = self._log.arguments(row)
        if found is None:
            raise UsageError(
                f"{self._log.path} does not have the arguments of row {row}: they were no plain "
                "data",
                hint="give them with --args or --rows",
            )
        return found

    def usages(self) -> Iterator[tuple[Place, Usage]]:
        """The usage of each generation and choice in the log."""
        for record in self._log.records():
            if record["kind"] in ("generate", "score"):
                names = ("row", "path", "ordinal", "name", "line", "number")
                place = Place(**{name: record[name] for name in names})
                yield place, self._decoded(record).usage

    def options(self) -> RunOptions:
        """The options of the run that wrote the log."""
        header = self._log.header
        assert header is not None
        known = RunOptions.__slots__
        given = {name: value for name, value in header.options.items() if name in known}
        return RunOptions(seed=header.seed, **given)

    def assign(self, row: str, arguments: Mapping[str, Any]) -> None:
        """Chooses the log's row from which a row is answered."""
        if row in self._parts or not self.rows:
            return
        is_same = row in self.rows and self._has_arguments(row, arguments)
        n_others = sum(not part.is_same for part in self._parts.values())
        own = row if is_same else self.rows[n_others % len(self.rows)]
        self._parts[row] = Part(own, is_same)

    def is_same(self, row: str) -> bool:
        """Whether a row gets its own replies in the log."""
        return row in self._parts and self._parts[row].is_same

    def _has_arguments(self, row: str, arguments: Mapping[str, Any]) -> bool:
        logged = self._log.arguments(row)
        try:
            given = canonical({name: arguments[name] for name in logged or {}})
        except (KeyError, TypeError, ValueError):
            return False
        return logged is not None and given == canonical(logged)

    def reply(self, kind: str, place: Place) -> Found | None:
        """The log's reply to a request; None if it has none of that generation."""
        part = self._parts.get(place.row)
        if part is not None:
            record = self._log.find(kind, part.row, place.path, place.ordinal, place.number)
            if record is not None and record.get("name", "") == place.name:
                return Found(self._decoded(record), part.is_same)
        draw = self._any_draw(kind, place)
        if draw is None:
            return None
        record = self._log.find(kind, *draw, place.number) or self._log.find(kind, *draw, 0)
        assert record is not None
        return Found(self._decoded(record), is_same=False)

    def _any_draw(self, kind: str, place: Place) -> Draw | None:
        """A draw of the same generation: the next one, the same for all requests of a place."""
        own = (place.row, place.path, place.ordinal)
        key = (kind, place.line, place.name)
        draws = self._draws.get(key)
        if draws and (kind, own) not in self._taken:
            n = self._n_taken.get(key, 0)
            self._n_taken[key] = n + 1
            self._taken[kind, own] = draws[n % len(draws)]
        return self._taken.get((kind, own))

    def _decoded(self, record: Json) -> Generated | Scored:
        decode = generated_of if record["kind"] == "generate" else scored_of
        try:
            return decode(record["reply"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"{record['kind']} {record.get('name', '')}".rstrip()
            raise RunLogError(f"{self._log.path}: the reply to {what} is malformed") from error

    def results(self, row: str, name: str) -> Sequence[Json]:
        """The calls of a tool in the log's row from which a row is answered, else in any row."""
        part = self._parts.get(row)
        own = self._tools.get((part.row, name), ()) if part is not None else ()
        others = (calls for (_, tool), calls in self._tools.items() if tool == name)
        return own or next(others, ())


def check_program(log: RunLog, graph: Graph) -> None:
    """Raises UsageError if a log is of another program, or of another version of this one."""
    header, now = log.header, header_of(graph.name, graph.guards, RunOptions())
    if header is None:
        raise UsageError(f"{log.path} is not the log of a run: no run was begun in it")
    if header.program != now.program:
        raise UsageError(f"{log.path} is the log of {header.program}, not of {now.program}")
    if header.fingerprint != now.fingerprint:
        raise UsageError(
            f"{log.path} is the log of {now.program} as it was then ({header.fingerprint[:12]}), "
            f"not as it is ({now.fingerprint[:12]})",
            hint="run some rows of it again with --log, or undo the change",
        )
