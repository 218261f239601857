"""What does not fit a log, and what was written into it by hand; replies come back as they were."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random

import pytest
from executor.log.logged_runs import DONE, Counting, agent
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

import sgc
from sgc.errors import (
    GuardError,
    NonDeterministicProgram,
    RunLogError,
    UsageError,
)
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES
from sgc.runtime.executor.interface.backend import (
    ChoiceScore,
    FinishReason,
    Generated,
    Logprobs,
    Scored,
    Usage,
)
from sgc.runtime.executor.log.log_timeline import log_trace
from sgc.runtime.executor.log.logged_backend import ReplayBackend
from sgc.runtime.executor.log.records import (
    capabilities_json,
    capabilities_of,
    generated_json,
    generated_of,
    scored_json,
    scored_of,
)
from sgc.runtime.executor.log.run_log import RunLog

# -- what does not fit ---------------------------------------------------------------------------

pytestmark = pytest.mark.usefixtures("nothing_done")


def test_a_program_that_asks_otherwise_is_told_from_its_log(path):
    changing = iter("ab")

    @sgc.function
    def program(s):
        s += next(changing) + sgc.gen("g")

    with RunLog.open(path) as log:
        program.run(backend=Endpoint(Counting()), log=log).sync()
    with RunLog.open(path) as log, pytest.raises(NonDeterministicProgram) as caught:
        program.run(backend=Endpoint(Counting()), log=log).sync()
    assert caught.value.where.startswith("test_run_log_damage.py:")
    assert "another request: generate g at test_run_log_damage.py:" in str(caught.value)


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
            {"q": "why"}, sgc.runs.options.make_options({"log": log}), Endpoint(Counting())
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
    with pytest.raises(RunLogError, match="not the log of a run"):
        RunLog.read(path)


HEAD = '{"sgc_run_log":1}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "expected a run's log of format 1, found b'hello'"),
        ('{"sgc_run_log":2}\n', "of format 1"),
        (HEAD + "{\n", ":2: the line is not a record"),
        (HEAD + "[]\n", ":2: the line is not a record"),
        (HEAD + "[" * 100_000 + "\n", ":2: the line is not a record"),
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
    assert f"arguments of this row are not those of {path}: q\n" in str(caught.value)


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


@examples(40)
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
        st.lists(st.none() | NUMBERS).map(tuple), ROWS, ROWS,
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
