"""The run's log: what it has is not asked again, whichever way it is run; no effect repeats."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import replace

import pytest
from executor.log.logged_runs import DONE, N_REQUESTS, WAYS, Counting, agent, compiled, outcome
from waiting import BOUND_S

import sgc
from sgc.errors import (
    RunLogError,
    ToolError,
    UnknownOutcome,
)
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES
from sgc.runtime.executor.log.file import LogFile
from sgc.runtime.executor.log.log_timeline import log_trace
from sgc.runtime.executor.log.logged_backend import ReplayBackend
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.patterns.checked_constraints import MAX_TRIES

pytestmark = pytest.mark.usefixtures("nothing_done")


@pytest.mark.sweep
@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_either_way_goes_on_from_the_others_log(path, first, second):
    """After each number of requests the run breaks off; what it had is not bought again."""
    whole = outcome(WAYS[first](agent, "why", backend=Endpoint(Counting()), seed=5))
    booked = [line for line in DONE if line.startswith("book")]
    for fails_at in range(N_REQUESTS + 1):
        path.unlink(missing_ok=True)
        DONE.clear()
        before, after = Counting(fails_at), Counting()
        with RunLog.open(path) as log:
            how = {"backend": Endpoint(before), "seed": 5, "log": log}
            if fails_at < N_REQUESTS:
                with pytest.raises(sgc.SgcError):
                    WAYS[first](agent, "why", **how)
            else:
                WAYS[first](agent, "why", **how)
        with RunLog.open(path) as log:
            result = WAYS[second](agent, "why", backend=Endpoint(after), log=log)
        assert outcome(result) == whole
        assert result.seed == 5, "a run that goes on has the seed of its log"
        n_logged = result.stats.logged_requests
        assert after.n_asked == result.stats.requests - n_logged
        # Several texts of one generation come together: those before a failure are lost with it.
        assert before.n_asked - 2 <= n_logged <= before.n_asked
        assert [line for line in DONE if line.startswith("book")] == booked
        assert all(r.usage.from_log for r in result.requests) == (after.n_asked == 0)


def test_a_replay_needs_neither_backend_nor_tools(path):
    with RunLog.open(path) as log:
        first = agent.run("why", backend=Endpoint(Counting()), log=log)
        first.sync()
    DONE.clear()
    with RunLog.read(path) as log:
        assert log.rows() == ["0"]
        assert log.arguments("0") == {"q": "why"}
        replayed = sgc.Program(compiled(agent).graph).run(
            "why", backend=Endpoint(ReplayBackend(log)), log=log
        )
    assert replayed.text() == first.text()
    assert replayed["booked"] == {"place": "r" + first["query"][1:], "seats": [1, 2.5, None, True]}
    assert DONE == []
    assert [call.is_logged for call in replayed.tool_calls] == [True, True]


def test_a_replay_stops_at_the_first_thing_the_log_does_not_have(path):
    with RunLog.open(path) as log, pytest.raises(sgc.SgcError, match="gone"):
        agent.run("why", backend=Endpoint(Counting(fails_at=1)), log=log).sync()
    with RunLog.read(path) as log, pytest.raises(RunLogError) as caught:
        agent.run("why", backend=Endpoint(ReplayBackend(log)), log=log).sync()
    assert "does not have " in str(caught.value)
    assert caught.value.where.startswith("logged_runs.py:")


def test_rows_of_a_batch_share_a_log(path):
    program, rows = compiled(agent), [(f"q{i}",) for i in range(5)]
    with RunLog.open(path) as log:
        first = program.run_batch(rows, backend=Endpoint(Counting()), log=log)
    backend = Counting()
    with RunLog.open(path) as log:
        assert log.rows() == [str(i) for i in range(5)]
        again = agent.run_batch(rows, backend=Endpoint(backend), log=log)
    assert [row.text() for row in again] == [row.text() for row in first]
    assert backend.n_asked == 0
    assert len(DONE) == 10
    with RunLog.read(path) as log:
        trace = log_trace(log)["traceEvents"]
    assert sum(e["ph"] == "X" and e["cat"] in ("generate", "score", "tool") for e in trace) == 45
    assert "3: agent/:0.1" in {e["args"].get("name") for e in trace if e["name"] == "thread_name"}


def test_thrown_tries_are_replayed(path):
    """A backend without regex is asked until its reply fits: each try is in the log."""

    class Plain(Counting):
        async def capabilities(self):
            return replace(CAPABILITIES, refuses=frozenset({"regex"}))

        def _answer(self, prompt, sampling):
            super()._answer(prompt, sampling)
            return "42" if self.n_asked % MAX_TRIES == 0 else "no number"

    @sgc.function
    def program(s):
        s += "n: " + sgc.gen("n", regex="[0-9]+")

    texts, counts = [], []
    for _ in range(2):
        backend = Plain()
        with RunLog.open(path) as log:
            result = program.run_once(
                {}, sgc.runs.options.make_options({"log": log}), Endpoint(backend)
            )
        texts.append([r.reply.text for r in result.requests])
        counts.append(backend.n_asked)
    assert texts[0] == texts[1] == ["no number"] * 3 + ["42"]
    assert counts == [4, 0]


# -- effects -----------------------------------------------------------------------------------


def unknown(path):
    """A log in which `book` was begun, and not seen to end."""
    with RunLog.open(path) as log:
        agent.run("why", backend=Endpoint(Counting()), log=log).sync()
    lines = path.read_text().splitlines(keepends=True)
    kept = [
        line for line in lines if not (json.loads(line).get("kind") == "tool" and "book" in line)
    ]
    assert len(kept) == len(lines) - 1
    path.write_text("".join(kept))
    DONE.clear()


def test_a_call_whose_outcome_is_unknown_stops_the_row(path):
    unknown(path)
    for _ in range(2):
        with RunLog.open(path) as log, pytest.raises(UnknownOutcome) as caught:
            agent.run("why", backend=Endpoint(Counting()), log=log).sync()
    assert caught.value.where.startswith("logged_runs.py:")
    assert "--retry-effect" in str(caught.value)
    assert ":book'" in str(caught.value)
    assert DONE == []


@pytest.mark.parametrize(("how", "n_done"), [("retry", 1), ("skip", 0)])
def test_the_two_ways_on(path, how, n_done):
    unknown(path)
    with RunLog.open(path, on_unknown=how) as log:
        state = agent.run("why", backend=Endpoint(Counting()), log=log)
        assert (state["booked"] is None) == (how == "skip")
    assert len(DONE) == n_done
    with RunLog.open(path) as log:  # what was decided holds from then on
        assert agent.run("why", backend=Endpoint(Counting()), log=log)["booked"] == state["booked"]
    assert len(DONE) == n_done


def test_a_failed_effect_is_not_tried_again_unasked(path):
    fails = [True]

    @sgc.tool
    def send(text: str) -> str:
        DONE.append(text)
        if fails[0]:
            raise ConnectionError("reset")
        return "sent"

    @sgc.function
    def program(s):
        s += send("hello")

    def attempt(on_unknown="stop"):
        with RunLog.open(path, on_unknown) as log:
            return program.run(backend=Endpoint(Counting()), log=log).text()

    with pytest.raises(ToolError, match="failed: ConnectionError: reset"):
        attempt()
    with pytest.raises(UnknownOutcome, match=r"in the log it failed: the tool .* reset"):
        attempt()
    fails[0] = False
    assert attempt("retry") == attempt() == "sent"
    assert DONE == ["hello", "hello"]


def test_an_effect_is_on_disk_before_it_begins(path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr(LogFile, "sync", lambda file: synced.append(path.read_text()))

    @sgc.tool
    def looks() -> str:
        assert synced[-1] == path.read_text()
        return synced[-1].splitlines()[-1]

    @sgc.function
    def program(s):
        s["seen"] = looks()

    with RunLog.open(path) as log:
        seen = json.loads(program.run(backend=Endpoint(Counting()), log=log)["seen"])
    assert (seen["kind"], seen["effect"], seen["line"][:16]) == (
        "intent",
        "effect",
        "test_run_log.py:",
    )


def test_an_effect_under_way_when_its_run_fails_is_waited_for(path):
    begun = threading.Event()

    @sgc.tool
    def slow() -> str:
        begun.set()
        time.sleep(0.05)
        DONE.append("slow")
        return "done"

    class Failing(Counting):
        async def generate(self, prompt, sampling, on_delta=None):
            await asyncio.to_thread(begun.wait, BOUND_S)
            raise ConnectionError("gone")

    @sgc.function
    def program(s):
        s += sgc.gen("g")
        s["slow"] = slow()

    for run in (WAYS["interpreted"], WAYS["compiled"]):
        with RunLog.open(path) as log, pytest.raises(sgc.SgcError, match="gone"):
            run(program, backend=Endpoint(Failing()), log=log, seed=1)
        with RunLog.open(path) as log:
            assert run(program, backend=Endpoint(Counting()), log=log)["slow"] == "done"
        assert DONE.pop() == "slow"
        assert not DONE
        path.unlink()
        begun.clear()
