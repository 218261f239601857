"""A run's timeline in Chrome trace format, for chrome://tracing and Perfetto.

Each stream has a row; each request is a block on it, and inside the block are the engine's phases:
queue, prefill, decode. The engine reports how long these took but not when: they are drawn so that
they end with the request, and the time before them is transport (sending, tokenizing). If requests
of a stream overlap, as several texts of one draw do, they take further rows, so that each phase is
inside its block. Tools and prefetches have rows of their own. Counters are above the rows. Times
are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sgc.runtime.executor.run.record import Request, RunResult, ToolCall

_PROCESS = 1
Event = dict[str, Any]


def chrome_trace(result: RunResult) -> dict[str, Any]:
    """Returns the trace of a run, to be written as JSON."""
    paths = [stream.path for stream in result.streams]
    return timeline(result.program, paths, result.requests, result.tool_calls, result.prefetches)


def timeline(
    program: str,
    paths: Sequence[str],
    requests: Sequence[Request],
    calls: Sequence[ToolCall],
    prefetches: Sequence[Request] = (),
) -> dict[str, Any]:
    """Returns the trace of requests, tool calls and prefetches. paths: streams that have a row even
    without requests.
    """
    requests = sorted(requests, key=lambda request: request.start_s)
    starts = [request.start_s for request in (*requests, *prefetches)]
    starts += [call.start_s for call in calls]
    begin_s = min(starts, default=0.0)
    rows = _Rows(paths)
    blocks: list[Event] = []

    def place(path: str, each: Request | ToolCall) -> tuple[int, int, int]:
        start, end = _micros(each.start_s - begin_s), _micros(each.end_s - begin_s)
        return rows.place(path, start, end), start, end

    for request in requests:
        at = place(_path(request), request)
        blocks += [_block(request, *at), *_phases(request, *at)]
    for call in sorted(calls, key=lambda call: call.start_s):
        blocks.append(_call_block(call, *place("tools", call)))
    for prefetch in sorted(prefetches, key=lambda prefetch: prefetch.start_s):
        at = place("prefetches", prefetch)
        blocks += [_block(prefetch, *at), *_phases(prefetch, *at)]
    events = [_named("process_name", 0, f"sgc run {program}"), *rows.events()]
    return {"traceEvents": events + blocks + _counters(requests, begin_s), "displayTimeUnit": "ms"}


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)


def _path(request: Request) -> str:
    """A commit is shown on the stream that it commits; its path names a fork of that stream."""
    return request.path.rpartition("/")[0] if request.kind == "commit" else request.path


class _Rows:
    """The row of each request: the first row of its stream that is free.

    paths: streams that have a row even without requests, in this order.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._ends: dict[str, list[int]] = {path: [0] for path in paths}  # of each row's last block
        self._numbers: dict[tuple[str, int], int] = {}
        for path in paths:
            self._number(path, 0)

    def place(self, path: str, start: int, end: int) -> int:
        """Returns the row's number; requests must be placed in order of their start."""
        ends = self._ends.setdefault(path, [])
        free = next((i for i, last in enumerate(ends) if last <= start), len(ends))
        ends[free:] = [end, *ends[free + 1 :]]
        return self._number(path, free)

    def events(self) -> Iterator[Event]:
        """Returns the events that name the rows and order them by stream."""
        ordered = ((path, i) for path, ends in self._ends.items() for i in range(len(ends)))
        for order, (path, index) in enumerate(ordered):
            row = self._numbers[path, index]
            yield _named("thread_name", row, f"{path} ({index + 1})" if index else path)
            yield _about("thread_sort_index", row, {"sort_index": order})

    def _number(self, path: str, index: int) -> int:
        return self._numbers.setdefault((path, index), len(self._numbers))


def _about(what: str, row: int, args: dict[str, Any]) -> Event:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": row, "ts": 0, "args": args}


def _named(what: str, row: int, name: str) -> Event:
    return _about(what, row, {"name": name})


def _slice(name: str, kind: str, row: int, start: int, end: int, args: dict[str, Any]) -> Event:
    about = {"ph": "X", "name": name, "cat": kind, "pid": _PROCESS, "tid": row}
    return {**about, "ts": start, "dur": end - start, "args": args}


def _block(request: Request, row: int, start: int, end: int) -> Event:
    usage = request.usage
    args = {
        "line": str(request.loc or ""),
        "stream": request.path,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "computed_tokens": usage.computed_tokens,
        "completion_tokens": usage.completion_tokens,
        "forced_tokens": usage.forced_tokens,
        "queue_ms": round(usage.queue_s * 1e3, 3),
        "prefill_ms": round(usage.prefill_s * 1e3, 3),
        "decode_ms": round(usage.decode_s * 1e3, 3),
    }
    return _slice(request.name or request.kind, request.kind, row, start, end, args)


def _call_block(call: ToolCall, row: int, start: int, end: int) -> Event:
    args = {"line": str(call.loc or ""), "effect": call.effect, "error": call.error}
    return _slice(call.name, "tool", row, start, end, args)


def _phases(request: Request, row: int, start: int, end: int) -> Iterator[Event]:
    """Returns the engine's phases in order; none for a backend that reports no times."""
    usage = request.usage
    prompt = {"cached_tokens": usage.cached_tokens, "computed_tokens": usage.computed_tokens}
    phases: tuple[tuple[str, float, dict[str, Any]], ...] = (
        ("queue", usage.queue_s, {}),
        ("prefill", usage.prefill_s, prompt),
        ("decode", usage.decode_s, {"completion_tokens": usage.completion_tokens}),
    )
    left_s = usage.queue_s + usage.prefill_s + usage.decode_s
    for name, seconds, args in phases:
        begins = max(start, end - _micros(left_s))
        left_s -= seconds
        ends = max(start, end - _micros(left_s))
        if ends > begins:
            yield _slice(name, "engine", row, begins, ends, args)


def _counters(requests: Sequence[Request], begin_s: float) -> list[Event]:
    """Counts requests and tokens in flight, and the share of cached prompt tokens so far."""
    changes = [(_micros(r.start_s - begin_s), 1, r) for r in requests]
    changes += [(_micros(r.end_s - begin_s), -1, r) for r in requests]
    events: list[Event] = []
    n_requests = n_tokens = n_prompt = n_cached = 0
    for ts, step, request in sorted(changes, key=lambda change: (change[0], -change[1])):
        usage = request.usage
        n_requests += step
        n_tokens += step * (usage.prompt_tokens + usage.completion_tokens)
        events.append(_counter("requests in flight", ts, {"requests": n_requests}))
        events.append(_counter("tokens in flight", ts, {"tokens": n_tokens}))
        if step < 0 and usage.prompt_tokens:
            n_prompt, n_cached = n_prompt + usage.prompt_tokens, n_cached + usage.cached_tokens
            hit = {"percent": round(100 * n_cached / n_prompt, 1)}
            events.append(_counter("prompt tokens from the cache", ts, hit))
    return events


def _counter(name: str, ts: int, args: dict[str, Any]) -> Event:
    return {"ph": "C", "name": name, "pid": _PROCESS, "tid": 0, "ts": ts, "args": args}
