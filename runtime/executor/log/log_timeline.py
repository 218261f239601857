"""The timeline of a log: of all its rows, and of all the processes that wrote it."""

from __future__ import annotations

from typing import Any

from sgc.errors import RunLogError
from sgc.ir.graph import Loc
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.log.records import instance_of, usage_in
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.log.timeline import timeline
from sgc.runtime.executor.run.record import Request, ToolCall

_MAX_TIME_S = 1e11  # since 1970
REQUESTS = ("generate", "score", "commit")


def log_trace(log: RunLog) -> dict[str, Any]:
    """Returns the trace, to be written as JSON."""
    header = log.header
    has_rows = len(log.rows()) > 1
    requests, calls = [], []
    try:
        for record in log.records():
            prefix = f"{record['row']}: " if has_rows and "row" in record else ""
            if record["kind"] in REQUESTS:
                requests.append(_request(record, prefix))
            elif record["kind"] == "tool":
                calls.append(_call(record))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunLogError(f"{log.path} has a malformed record: {error}") from error
    return timeline(header.program if header is not None else "", [], requests, calls)


def _request(record: Json, prefix: str) -> Request:
    return Request(
        record["kind"], record["name"], prefix + record["path"], record["ordinal"], (),
        _loc(record), *times_in(record), usage_in(record),
    )  # fmt: skip


def _call(record: Json) -> ToolCall:
    return ToolCall(
        record["name"], record["ordinal"], record["effect"], "", _loc(record),
        *times_in(record), record["error"], is_logged=True,
        path=record.get("path", ""),
    )  # fmt: skip


def times_in(record: Json) -> tuple[float, float]:
    """When a record's request or call began and ended, in seconds since 1970."""
    start_s, end_s = (instance_of(record[name], float) for name in ("start_s", "end_s"))
    if not 0 <= start_s <= end_s <= _MAX_TIME_S:
        raise ValueError(f"it takes the time from {start_s} to {end_s}")
    return start_s, end_s


def _loc(record: Json) -> Loc | None:
    file, _, line = record["line"].rpartition(":")
    return Loc(file, int(line)) if file else None
