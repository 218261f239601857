"""A run's timeline: whatever ran side by side, each row nests, and the phases fit inside."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgc.cli import main
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.interface.backend import Usage
from sgc.runtime.executor.log.timeline import chrome_trace
from sgc.runtime.executor.run.record import Request, RunResult, Stats, StreamResult

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
Event = dict[str, Any]


def asked(path: str, start_s: float, end_s: float, usage: Usage, kind: str = "generate") -> Request:
    return Request(kind, "answer", path, 0, (), None, start_s, end_s, usage)


def trace_of(*requests: Request) -> list[Event]:
    stream = StreamResult("p", "p", "", {}, ())
    result = RunResult("p", (stream,), None, Stats.of(requests, 1.0), 0, requests)
    return check_trace(json.loads(json.dumps(chrome_trace(result))))


def check_trace(trace: Event) -> list[Event]:
    """Holds what the trace viewers' format asks of events against each; gives them."""
    events: list[Event] = trace["traceEvents"]
    rows: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        assert event["ph"] in ("X", "M", "C")
        assert isinstance(event["name"], str)
        assert all(isinstance(event[key], int) and event[key] >= 0 for key in ("ts", "pid", "tid"))
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
        if event["ph"] == "X":
            assert isinstance(event["dur"], int)
            assert event["dur"] >= 0
            rows[event["tid"]].append(event)
    named = [e["tid"] for e in events if e["name"] == "thread_name"]
    assert len(named) == len(set(named))
    assert rows.keys() <= set(named)
    for row in rows.values():
        _check_nesting(row)
    return events


def _check_nesting(row: list[Event]) -> None:
    open_until: list[int] = []
    for event in sorted(row, key=lambda e: (e["ts"], -e["dur"])):
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        end = event["ts"] + event["dur"]
        assert not open_until or end <= open_until[-1], event
        open_until.append(end)


def slices(events: list[Event], name: str) -> list[tuple[int, int]]:
    return [(e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["name"] == name]


def test_phases_stand_at_the_end_of_their_request_in_order() -> None:
    usage = Usage(100, 60, 40, 7, queue_s=0.1, prefill_s=0.2, decode_s=0.5)
    events = trace_of(asked("p", 5.0, 6.0, usage))
    assert slices(events, "answer") == [(0, 1_000_000)]
    assert slices(events, "queue") == [(200_000, 100_000)]
    assert slices(events, "prefill") == [(300_000, 200_000)]
    assert slices(events, "decode") == [(500_000, 500_000)]
    args = {e["name"]: e["args"] for e in events if e["ph"] == "X"}
    assert args["prefill"] == {"cached_tokens": 60, "computed_tokens": 40}
    assert args["decode"] == {"completion_tokens": 7}


def test_a_backend_that_tells_no_times_has_no_phases() -> None:
    events = trace_of(asked("p", 0.0, 1.0, Usage(10, 0, 10, 1)))
    assert {e["name"] for e in events if e["ph"] == "X"} == {"answer"}


def test_draws_of_a_stream_that_overlap_stand_in_rows_of_their_own() -> None:
    usage = Usage(10, 0, 10, 1)
    events = trace_of(
        asked("p", 0.0, 2.0, usage), asked("p", 0.5, 3.0, usage), asked("p", 2.0, 4.0, usage)
    )
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [names[e["tid"]] for e in events if e["ph"] == "X"] == ["p", "p (2)", "p"]


def test_counters_show_what_is_in_flight_and_the_hit_rate() -> None:
    events = trace_of(
        asked("p", 0.0, 2.0, Usage(100, 0, 100, 10)), asked("p/a", 1.0, 3.0, Usage(100, 80, 20, 5))
    )
    told = [(e["ts"], *e["args"].values()) for e in events if e["name"] == "tokens in flight"]
    assert told == [(0, 110), (1_000_000, 215), (2_000_000, 105), (3_000_000, 0)]
    hit = [e["args"]["percent"] for e in events if e["name"] == "prompt tokens from the cache"]
    assert hit == [0, 40]


TIMES = st.floats(0, 10, allow_nan=False)


@given(st.lists(st.tuples(st.sampled_from(("p", "p/a")), TIMES, TIMES, TIMES, TIMES, TIMES)))
def test_any_run_nests(runs: list[tuple[str, float, float, float, float, float]]) -> None:
    trace_of(
        *(
            asked(path, start, start + long, Usage(1, 0, 1, 1, queue, prefill, decode))
            for path, start, long, queue, prefill, decode in runs
        )
    )


@pytest.mark.parametrize("name", ["tip_suggestion", "essay_judge"])
def test_runs_of_an_engine(
    fake_engine: Runtime, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = EXAMPLES / f"{name}.py"
    arguments = {"tip_suggestion": "topic=tea", "essay_judge": "essay=a"}[name]
    trace = tmp_path / "t.json"
    command = ["run", str(program), "--arg", arguments, "--engine", fake_engine._engine.uri]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--json", "--trace", str(trace)])
    assert not ended.value.code
    events = check_trace(json.loads(trace.read_text(encoding="utf-8")))
    stats = json.loads(capsys.readouterr().out)["stats"]
    calls = stats["by_request"]
    assert len(calls) == stats["requests"] > 1
    for field in ("prompt_tokens", "cached_tokens", "completion_tokens", "queue_s", "decode_s"):
        assert sum(call[field] for call in calls) == pytest.approx(stats[field])
    assert stats["hit_rate"] == pytest.approx(
        stats["cached_tokens"] / stats["prompt_tokens"], abs=1e-4
    )
    for call in calls:
        assert call["line"].startswith(f"{name}.py:")
        assert call["wall_s"] >= call["queue_s"] + call["prefill_s"] + call["decode_s"]
    assert len(slices(events, "prefill")) <= len(calls)
    assert slices(events, "decode")
