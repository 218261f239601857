"""The record of a row as it is written: its arguments, texts, variables, usage or error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgc.errors import ProgramError, SgcError
from sgc.runs.rows.records import InputRow
from sgc.runtime.executor.run.record import RunResult, Stats

_USAGE = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
COLUMNS = ("key", "text", "return", "variables", "inputs", "error_type", "error",
           *_USAGE, "cost_usd", "streams")  # fmt: skip
_AS_JSON = ("variables", "inputs", "streams")
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """A row that a file of results has. digest: of its arguments; error: the type of its error, ""
    for none; start, end: its bytes in the file.
    """

    key: str
    digest: int
    error: str
    start: int
    end: int


def record_of(row: InputRow, outcome: RunResult | BaseException) -> Record:
    if isinstance(outcome, BaseException):
        told = outcome.message if isinstance(outcome, SgcError) else str(outcome)
        where = outcome.where if isinstance(outcome, SgcError) else ""
        message = f"{where}: {told}" if where else told
        error = {"type": type(outcome).__name__, "message": message}
        return {"key": row.key, "inputs": row.arguments, "error": error}
    found: Record = {
        "key": row.key,
        "inputs": row.arguments,
        "text": outcome.text(),
        "variables": dict(outcome.variables),
        "return": outcome.ret_value,
        "usage": _usage(outcome.stats, cost_of(outcome)),
    }
    if len(outcome.streams) > 1:
        found["streams"] = [{"name": each.name, "text": each.text, "variables": {**each.variables}}
                            for each in outcome.streams[1:]]  # fmt: skip
    return found


def _usage(stats: Stats, cost: float | None) -> dict[str, Any]:
    found = {name: getattr(stats, name) for name in _USAGE}
    return found if cost is None else {**found, "cost_usd": cost}


def cost_of(result: RunResult) -> float | None:
    """The whole cost of a row, with the requests in its log; None if it is not known."""
    costs = [
        request.usage.cost_usd
        for request in result.requests
        if request.usage.cost_usd is not None
        and not (request.usage.from_shared or request.usage.from_cache)
    ]
    return sum(costs) if costs else None


def digest_of(arguments: Mapping[str, Any]) -> int:
    """A number of 64 bits that differs for other arguments; of this process only."""
    return hash(_digested(arguments)) & ((1 << 64) - 1)


def flat(record: Record) -> dict[str, Any]:
    """A record as one value a column: texts stay, all else of any shape is JSON."""
    found: dict[str, Any] = {"key": record["key"]}
    for name in ("text", "return", *_AS_JSON):
        if name in record:
            value = record[name]
            is_text = isinstance(value, str) and name not in _AS_JSON
            found[name] = value if is_text else dumped(value)
    if "error" in record:
        found["error_type"], found["error"] = record["error"]["type"], record["error"]["message"]
    found |= record.get("usage", {})
    return found


_digested = json.JSONEncoder(sort_keys=True, default=repr).encode
_dumped = json.JSONEncoder(ensure_ascii=False, default=repr).encode


def dumped(value: Any) -> str:
    """A value as JSON; raises ProgramError if it has none."""
    try:
        return _dumped(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramError(f"the result cannot be written as JSON: {error}") from error
