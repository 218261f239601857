"""The run's log: what it has is not asked again, whichever way it is run; no effect repeats."""

from __future__ import annotations

import asyncio
import errno
import functools
import json
import math
import os
import random
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sgc
from sgc.endpoints import Endpoint
from sgc.errors import (
    GuardError,
    NonDeterministicProgram,
    RunLogError,
    ToolError,
    UnknownOutcome,
    UsageError,
)
from sgc.runtime.executor.backend import (
    ChoiceScore,
    FinishReason,
    Generated,
    Logprobs,
    Scored,
    Usage,
)
from sgc.runtime.executor.log_file import LogFile
from sgc.runtime.executor.log_records import (
    capabilities_json,
    capabilities_of,
    generated_json,
    generated_of,
    scored_json,
    scored_of,
)
from sgc.runtime.executor.log_timeline import log_trace
from sgc.runtime.executor.logged import ReplayBackend
from sgc.runtime.executor.lowering import MAX_TRIES
from sgc.runtime.executor.run_log import RunLog
from sgc.runtime.executor.scripted import CAPABILITIES, ScriptedBackend

DONE: list[str] = []


@sgc.tool(effect="pure")
def search(query: str) -> str:
    DONE.append(f"search {query}")
    return f"[{query}]"


@sgc.tool
def book(place: str) -> dict:
    DONE.append(f"book {place}")
    return {"place": place, "seats": [1, 2.5, None, True]}


@sgc.function
def agent(s, q):
    s += "Q: " + q + sgc.gen("query")
    s += search(s["query"]) + sgc.gen("many", n=3)
    s["booked"] = book(s["query"])
    s += sgc.select("choice", ["yes", "no"])
    group = s.fork(2)
    group += lambda i: f" {i}"
    group += sgc.gen("g")
    s += group[1]["g"]


class Counting(ScriptedBackend):
    """Counts what is asked; fails from the request number `fails_at` on."""

    def __init__(self, fails_at: float = math.inf, model: str = "scripted") -> None:
        super().__init__(self._answer, lambda prompt, choices: 1)
        self.n_asked, self.fails_at = 0, fails_at
        self._model = model

    def _answer(self, prompt, sampling):
        self._count()
        return f"r{sampling.seed % 1000}"

    def _count(self):
        if self.n_asked >= self.fails_at:
            raise ConnectionError("gone")
        self.n_asked += 1

    async def capabilities(self):
        return replace(CAPABILITIES, model=self._model)

    async def score(self, prompt, choices, unconditional=False):
        self._count()
        return await super().score(prompt, choices, unconditional)

    async def commit_prefix(self, prompt, heads=()):
        self._count()
        return Usage(prompt_tokens=3, computed_tokens=3)


N_REQUESTS = 1 + 3 + 1 + 1 + 2


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.log"


WAYS = {
    "interpreted": lambda function, *args, **how: function.run_once(
        dict(zip("q", args, strict=False)),
        sgc.options.make_options({n: v for n, v in how.items() if n != "backend"}),
        how["backend"],
    ),
    "compiled": lambda function, *args, **how: compiled(function).run(*args, **how),
}


@functools.cache
def compiled(function):
    return function.compile()


def outcome(result):
    streams = [(s.path, s.text, dict(s.variables)) for s in result.streams]
    return streams, [c.identity() for c in result.tool_calls]


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
    assert caught.value.where.startswith("test_run_log.py:")


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
            result = program.run_once({}, sgc.options.make_options({"log": log}), Endpoint(backend))
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
    assert caught.value.where.startswith("test_run_log.py:")
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
            await asyncio.to_thread(begun.wait, 5)
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


# -- what does not fit ---------------------------------------------------------------------------


def test_a_program_that_asks_otherwise_is_told_from_its_log(path):
    changing = iter("ab")

    @sgc.function
    def program(s):
        s += next(changing) + sgc.gen("g")

    with RunLog.open(path) as log:
        program.run(backend=Endpoint(Counting()), log=log).sync()
    with RunLog.open(path) as log, pytest.raises(NonDeterministicProgram) as caught:
        program.run(backend=Endpoint(Counting()), log=log).sync()
    assert caught.value.where.startswith("test_run_log.py:")
    assert "another request: generate g at test_run_log.py:" in str(caught.value)


def test_a_log_of_another_program_model_or_run_is_refused(path):
    with RunLog.open(path) as log:
        agent.run("why", backend=Endpoint(Counting()), log=log, seed=1, temperature=0.5).sync()

    @sgc.function
    def other(s):
        s += sgc.gen("g")

    with RunLog.open(path) as log:
        with pytest.raises(GuardError, match=r"is the log of agent .* not of this other"):
            other.run(backend=Endpoint(Counting()), log=log)
        with pytest.raises(GuardError, match="was written on scripted, not on new"):
            agent.run("why", backend=Endpoint(Counting(model="new")), log=log)
        for options in ({"seed": 2}, {"temperature": 1.0}, {"max_tokens": 3}, {"stop": "x"}):
            with pytest.raises(UsageError, match="was written with seed=1"):
                agent.run("why", backend=Endpoint(Counting()), log=log, **options)
        assert agent.run("why", backend=Endpoint(Counting(0)), log=log).text()
    with pytest.raises(UsageError, match="log takes a sgc\\.RunLog"):
        agent.run("why", backend=Endpoint(Counting()), log="run.log")


def test_a_tool_may_be_another_one_inside(path, monkeypatch):
    """Mending a tool that failed must not make its run's log useless."""
    with RunLog.open(path) as log:
        first = agent.run("why", backend=Endpoint(Counting()), log=log).text()

    def search(query: str) -> str:
        raise AssertionError("it is in the log")

    monkeypatch.setitem(globals(), "search", sgc.tool(effect="pure")(search))
    with RunLog.open(path) as log:
        assert agent.run("why", backend=Endpoint(Counting(0)), log=log).text() == first


def test_a_full_disk_fails_the_row_and_leaves_the_log_whole(path, monkeypatch):
    def full(fd, data, at, write=os.pwrite):
        if path.stat().st_size < 2500:
            return write(fd, data[: len(data) // 2 + 1], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunLog.open(path) as log, monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(RunLogError, match="No space left on device"):
            agent.run("why", backend=Endpoint(Counting()), log=log).sync()
    assert path.read_bytes().endswith(b"}\n")
    with RunLog.open(path, "retry") as log:
        result = agent.run_once(
            {"q": "why"}, sgc.options.make_options({"log": log}), Endpoint(Counting())
        )
    assert result.stats.logged_requests > 0


def test_only_the_owner_may_read_it_and_one_process_writes_it(path):
    umask = os.umask(0)
    try:
        with RunLog.open(path), pytest.raises(RunLogError, match="written by another run"):
            RunLog.open(path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_closed_or_temporary_log(path):
    with RunLog.temporary() as log:
        for _ in range(2):
            agent.run("why", backend=Endpoint(Counting()), log=log).sync()
    assert len(DONE) == 2
    with pytest.raises(RunLogError, match="is closed"):
        log.append({"kind": "row", "row": "1"})
    with RunLog.open(path) as log:
        pass
    with pytest.raises(RunLogError, match="the log of no run"):
        RunLog.read(path)


HEAD = '{"sgc_run_log":1}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "expected a run's log of format 1, found b'hello'"),
        ('{"sgc_run_log":2}\n', "of format 1"),
        (HEAD + "{\n", ":2: the line is no record"),
        (HEAD + "[]\n", ":2: the line is no record"),
        (HEAD + "[" * 100_000 + "\n", ":2: the line is no record"),
        (HEAD + '{"kind":"spell"}\n', "no record of the kind 'spell'"),
        (HEAD + '{"kind":["row"]}\n', "no record of the kind"),
        (HEAD + '{"kind":"row","row":3}\n', "needs row"),
        (HEAD + '{"kind":"tool","row":"0","ordinal":true}\n', "needs row, path, ordinal"),
        (HEAD + "\x00\n" + '{"kind":"row","row":"0"}\n', ":2: the line"),
    ],
)
def test_a_damaged_log_is_refused_and_left_as_it_is(path, text, message):
    path.write_text(text)
    for opens in (RunLog.open, RunLog.read):
        with pytest.raises(RunLogError, match=message.replace("[", r"\[")):
            opens(path)
    assert path.read_text() == text


@pytest.mark.parametrize("where", ["a folder", "a pipe", "no such folder"])
def test_what_cannot_be_a_log(tmp_path, where):
    path = {"a folder": tmp_path, "no such folder": tmp_path / "x" / "y"}.get(where, tmp_path / "p")
    if where == "a pipe":
        os.mkfifo(path)
    with pytest.raises(RunLogError, match="cannot open the log"):
        RunLog.open(path)


def test_a_log_cut_anywhere_is_gone_on_with(path, tmp_path):
    """A crash leaves a beginning of the file: any of them is a log, and leads to the same."""
    with RunLog.open(path) as log:
        first = agent.run("why", backend=Endpoint(Counting()), log=log, seed=1).text()
    data, cut = path.read_bytes(), tmp_path / "cut.log"
    rng = random.Random(0)
    for n_bytes in [0, 1, len(HEAD) - 1, len(HEAD), *rng.sample(range(len(data)), 25)]:
        cut.write_bytes(data[:n_bytes])
        with RunLog.open(cut, on_unknown="retry") as log:
            assert agent.run("why", backend=Endpoint(Counting()), log=log, seed=1).text() == first


@pytest.mark.parametrize("name", ["reply", "value"])
def test_a_malformed_reply_is_an_error_with_its_place(path, name):
    with RunLog.open(path) as log:
        agent.run("why", backend=Endpoint(Counting()), log=log).sync()
    path.write_text(path.read_text().replace(f'"{name}":', '"other":'))
    with RunLog.open(path) as log, pytest.raises(RunLogError, match="malformed"):
        agent.run("why", backend=Endpoint(Counting()), log=log).sync()


def test_other_arguments_of_a_row_are_told(path):
    with RunLog.open(path) as log:
        agent.run("why", backend=Endpoint(Counting()), log=log, seed=1).sync()
    with RunLog.open(path) as log, pytest.raises(NonDeterministicProgram) as caught:
        agent.run("how", backend=Endpoint(Counting()), log=log).sync()
    assert "arguments of this row are not those of the log: q;" in str(caught.value)


DAMAGES = [
    ('"seed":1', '"seed":"1"'),
    ('"options":{}', '"options":{"a":1}'),
    ('"options":{}', '"options":[]'),
    ('"arguments":{', '"arguments":7,"other":{'),
    ('"max_context":', '"max_context":[],"other":'),
    ('"special_tokens":[]', '"special_tokens":[[]]'),
    ('"pool_tokens":null', '"pool_tokens":true'),
]


@pytest.mark.parametrize(("was", "becomes"), DAMAGES)
def test_what_was_written_by_hand_is_an_error(path, was, becomes):
    with RunLog.open(path) as log:
        agent.run("why", backend=Endpoint(Counting()), log=log, seed=1).sync()
    assert was in path.read_text()
    path.write_text(path.read_text().replace(was, becomes))
    with pytest.raises(RunLogError):
        replayed(path)


def replayed(path):
    with RunLog.read(path) as log:
        agent.run(
            **log.arguments(log.rows()[0]), backend=Endpoint(ReplayBackend(log)), log=log
        ).sync()


@pytest.mark.parametrize(
    ("was", "becomes"), [("start_s", "NaN"), ("end_s", "1e300"), ("line", "4")]
)
def test_a_timeline_of_times_that_are_none(path, was, becomes):
    with RunLog.open(path) as log:
        agent.run("why", backend=Endpoint(Counting()), log=log, seed=1).sync()
    path.write_text(path.read_text().replace(f'"{was}":', f'"{was}":{becomes},"other":'))
    with RunLog.read(path) as log, pytest.raises(RunLogError, match="malformed record"):
        log_trace(log)


# -- replies come back as they were ---------------------------------------------------------------

TEXTS = st.text(st.characters(codec=None), max_size=8)  # lone surrogates too
NUMBERS = st.floats(allow_nan=False)
ROWS = st.lists(st.tuples(st.none() | NUMBERS, st.integers(0, 9), st.none() | TEXTS)).map(tuple)
IDS = st.lists(st.integers(0, 2**31)).map(tuple)
TOPS = st.lists(st.none() | ROWS).map(tuple)


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        Generated, text=TEXTS, ids=IDS, kept_ids=IDS, tail=TEXTS,
        finish_reason=st.sampled_from(FinishReason), matched=st.none() | TEXTS | st.integers(),
        usage=st.builds(Usage, from_log=st.just(True)),
        logprobs=st.none() | st.builds(Logprobs, ROWS, ROWS, TOPS, TOPS),
        extra=st.dictionaries(TEXTS, st.lists(st.integers() | TEXTS)), head=TEXTS,
    ),
    st.builds(
        ChoiceScore, IDS, st.lists(NUMBERS).map(tuple), st.lists(st.none() | TEXTS).map(tuple),
        st.lists(st.none() | NUMBERS).map(tuple),
    ),
)  # fmt: skip
def test_replies_come_back_as_they_were(generated, choice):
    def through(value):
        return json.loads(json.dumps(value, allow_nan=False))

    assert generated_of(through(generated_json(generated))) == generated
    scored = Scored((choice,), Usage(3, from_log=True))
    assert scored_of(through(scored_json(scored))) == scored
    assert capabilities_of(through(capabilities_json(CAPABILITIES))) == CAPABILITIES


def test_the_log_writes_while_runs_go_on_side_by_side(path):
    """Appending from several loops and threads keeps every record whole."""

    async def add(log, row):
        await log.append_durably({"kind": "row", "row": row, "arguments": {"x": "é" * 100}})

    async def main(log):
        await asyncio.gather(*(add(log, str(i)) for i in range(50)))

    with RunLog.open(path) as log:
        asyncio.run(main(log))
    with RunLog.open(path) as log:
        assert len(log.rows()) == 50
