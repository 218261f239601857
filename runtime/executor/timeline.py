"""A run's timeline in Chrome trace format, for chrome://tracing and Perfetto."""

from __future__ import annotations

from typing import Any

from sgc.runtime.executor.record import Request, RunResult

_PROCESS = 1


def chrome_trace(result: RunResult) -> dict[str, Any]:
    """One row a stream; a block for each request, with what it asked and what it took."""
    paths = list(dict.fromkeys([stream.path for stream in result.streams]))
    paths += [r.path for r in result.requests if r.path not in paths and r.kind != "commit"]
    rows = {path: index for index, path in enumerate(paths)}
    begin_s = min((request.start_s for request in result.requests), default=0.0)
    events = [_named("process_name", 0, f"sgc run {result.program}")]
    events += [_named("thread_name", row, path) for path, row in rows.items()]
    events += [_block(request, _row(request, rows), begin_s) for request in result.requests]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _row(request: Request, rows: dict[str, int]) -> int:
    """A commit stands on the stream it commits; its path names the fork below it."""
    path = request.path.rpartition("/")[0] if request.kind == "commit" else request.path
    return rows.get(path, 0)


def _named(what: str, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": row, "args": {"name": name}}


def _block(request: Request, row: int, begin_s: float) -> dict[str, Any]:
    usage = request.usage
    return {
        "ph": "X",
        "name": request.name or request.kind,
        "cat": request.kind,
        "pid": _PROCESS,
        "tid": row,
        "ts": round((request.start_s - begin_s) * 1e6, 1),
        "dur": round((request.end_s - request.start_s) * 1e6, 1),
        "args": {
            "line": str(request.loc or ""),
            "stream": request.path,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "computed_tokens": usage.computed_tokens,
            "completion_tokens": usage.completion_tokens,
            "queue_ms": round(usage.queue_s * 1e3, 3),
            "prefill_ms": round(usage.prefill_s * 1e3, 3),
            "decode_ms": round(usage.decode_s * 1e3, 3),
        },
    }
