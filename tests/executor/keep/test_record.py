"""Recordings: what was asked and replied is run again without a model, whichever way it is run."""

from __future__ import annotations

import stat

import pytest

import sgc
from sgc.cli import main
from sgc.errors import NotRecorded, RunLogError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.options import make_options
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import Usage


@sgc.tool(effect="pure")
def search(query: str) -> str:
    return f"[{query}]"


@sgc.function
def agent(s, q):
    s += "Q: " + q + sgc.gen("query")
    s += search(s["query"]) + sgc.gen("many", n=3)
    s += sgc.select("choice", ["yes", "no"])
    group = s.fork(2)
    group += lambda i: f" {i}"
    group += sgc.gen("g")
    s += group[1]["g"]


class Counting(ScriptedBackend):
    """Gives another reply each time, as models that draw do."""

    def __init__(self):
        super().__init__(self._answer, lambda prompt, choices: 1)
        self.n_asked = 0

    def _answer(self, prompt, sampling):
        self.n_asked += 1
        return f"r{self.n_asked}"

    async def commit_prefix(self, prompt, heads=()):
        return Usage(prompt_tokens=3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def interpreted(function, **how):
    options = {name: how.pop(name) for name in ("seed",) if name in how}
    return function.run_once(
        {name: value for name, value in how.items() if name != "backend"},
        make_options(options),
        how["backend"],
    )


def recorded(path, function, **arguments):
    with sgc.record(Endpoint(Counting()), path) as endpoint:
        return interpreted(function, **arguments, backend=endpoint, seed=3)


def outcome(result):
    return [(s.path, s.text, dict(s.variables)) for s in result.streams]


WAYS = {
    "interpreted": interpreted,
    "compiled": lambda function, **how: function.compile(check=False).run(**how),
    "asked for each": lambda function, **how: function.compile(check=False, opt_level=0).run(**how),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_run_again(path, way):
    wanted = recorded(path, agent, q="why")
    with sgc.replay(path) as endpoint:
        found = WAYS[way](agent, q="why", backend=endpoint, seed=3)
        assert outcome(found) == outcome(wanted)
        assert endpoint.backend.n_unused == 0
        assert found.stats.logged_requests == sum(r.kind != "commit" for r in wanted.requests)
        assert found.stats.cost_usd is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_run_with_another_seed_gets_what_was_recorded_in_its_order(path):
    @sgc.function
    def tips(s):
        s += "A tip:" + sgc.gen("a") + " and" + sgc.gen("b", max_tokens=3)

    wanted = recorded(path, tips)
    with sgc.replay(path) as endpoint:
        found = tips.run(backend=endpoint)
        assert found.text() == wanted.text()
        with pytest.raises(NotRecorded, match="requested fewer times"):
            tips.run(backend=endpoint).sync()


def test_equal_requests_get_their_replies_in_order_and_then_the_last(path):
    @sgc.function
    def twice(s):
        for child in s.fork(2):
            child += "Q" + sgc.gen("a", temperature=0)

    with sgc.record(Endpoint(Counting()), path) as endpoint:
        twice.run(backend=endpoint).sync()
    assert len(path.read_text().splitlines()) == 2 + 2
    with sgc.replay(path) as endpoint:
        texts = []
        for _ in range(2):
            result = interpreted(twice, backend=endpoint)
            texts += sorted(stream.text for stream in result.streams[1:])
        assert texts == ["Qr1", "Qr2", "Qr2", "Qr2"]


@pytest.mark.parametrize("is_compiled", [True, False])
def test_batches_and_maps(path, is_compiled):
    @sgc.function
    def note(s, x: str):
        s += x + sgc.gen("n", max_tokens=3)
        return s["n"]

    @sgc.function(jit=is_compiled)
    def notes(s, q: str):
        s += "/".join(sgc.map(note, [q, q + "!"]).returns) + sgc.select("v", ["a", "b"])

    rows = [{"q": f"{n % 5}"} for n in range(40)]
    with sgc.record(Endpoint(Counting()), path) as endpoint:
        wanted = [s.text() for s in notes.run_batch(rows, backend=endpoint, seed=3)]
    with sgc.replay(path) as endpoint:
        found = [s.text() for s in notes.run_batch(rows, backend=endpoint, seed=3)]
        assert found == wanted
        assert endpoint.backend.n_unused == 0
        turned = notes.run_batch(rows, backend=endpoint, seed=3, max_concurrency=1)
        assert [s.text() for s in turned] == wanted


def test_streaming_shows_the_recorded_text(path):
    @sgc.function
    def tip(s):
        s += "A tip:" + sgc.gen("a")

    recorded(path, tip)
    with sgc.replay(path) as endpoint:
        state = tip.run(backend=endpoint, seed=3, stream=True)
        assert "".join(state.text_iter("a")) == "r1"


@sgc.function
def one(s, q: str, t: float = 1.0):
    s += "A question: " + q + ". The answer is: " + sgc.gen("a", temperature=t)
    s += sgc.select("v", ["yes", "no"])


@sgc.function
def nothing(s):
    s += "nothing"


def test_what_was_not_recorded_names_the_line_and_the_difference(path):
    recorded(path, one, q="how tall is the tower", t=0.5)
    line = one.loc.line + 2
    with sgc.replay(path) as endpoint:
        for run in (one.run, one.compile(check=False).run):
            with pytest.raises(NotRecorded) as told:
                run(q="how tall is the bridge", t=0.5, backend=endpoint, seed=3).text()
            assert told.value.where == f"test_record.py:{line}"
            assert "character 28 of its prompt" in str(told.value)
            assert "recorded '…on: how tall is the tower. The answer is: '" in str(told.value)
            assert "asked '…on: how tall is the bridge. The answer is: '" in str(told.value)
        with pytest.raises(NotRecorded, match=r"but: temperature recorded 0\.5, asked"):
            one.run(q="how tall is the tower", t=0.25, backend=endpoint).sync()
    empty = path.with_name("empty.jsonl")
    recorded(empty, nothing)
    with sgc.replay(empty) as endpoint, pytest.raises(NotRecorded, match="it has none"):
        one.run(q="a", backend=endpoint).sync()


def test_other_choices_are_told(path):
    @sgc.function
    def other(s):
        s += "A question: a. The answer is: " + sgc.gen("a", temperature=0.0)
        s += sgc.select("v", ["yes", "no", "maybe"])

    recorded(path, one, q="a", t=0.0)
    with sgc.replay(path) as endpoint, pytest.raises(NotRecorded) as told:
        other.run(backend=endpoint).sync()
    assert "choices recorded ['yes', 'no'], asked ['yes', 'no', 'maybe']" in str(told.value)


def test_files_that_are_no_recording(path, tmp_path):
    recorded(path, one, q="a")
    with pytest.raises(UsageError, match="already is a recording"):
        sgc.record(Endpoint(Counting()), path)
    log = tmp_path / "run.log"
    with sgc.RunLog.open(log) as opened:
        one.run(q="a", backend=Endpoint(Counting()), log=opened).sync()
    with pytest.raises(RunLogError, match="expected a recording"):
        sgc.replay(log)
    with pytest.raises(RunLogError, match="expected a run's log"):
        sgc.RunLog.open(path)
    with pytest.raises(RunLogError, match="cannot open"):
        sgc.replay(tmp_path / "missing")
    for damage in ('{"kind":"reply"}', '{"kind":"other"}', "x"):
        path.write_text('{"sgc_recording":1}\n' + damage + "\n")
        with pytest.raises(RunLogError, match=r"run\.jsonl:2"):
            sgc.replay(path)


def test_a_line_that_was_cut_off_is_left_out(path):
    recorded(path, one, q="a", t=0.0)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with sgc.replay(path) as endpoint:
        assert endpoint.backend.n_replies == 1
        with pytest.raises(NotRecorded, match="a choice that the run asks for"):
            one.run(q="a", t=0.0, backend=endpoint).sync()


MALFORMED = [
    ('"finish_reason":"stop"', '"finish_reason":"x"'),
    ('"matched":null', '"matched":[]'),
    ('"extra":{}', '"extra":[]'),
    ('"ids":[', '"ids":[null,'),
    ('"usage":{}', '"usage":{"cached_tokens":[1]}'),
    ('"usage":{}', '"usage":{"computed_tokens":-1}'),
    ('"usage":{}', '"usage":{"decode_s":Infinity}'),
    ('"usage":{}', '"usage":{"cost_usd":"1"}'),
]


@pytest.mark.parametrize(("was", "becomes"), MALFORMED)
def test_a_malformed_reply_is_an_error(path, was, becomes):
    recorded(path, one, q="a", t=0.0)
    assert was in path.read_text()
    path.write_text(path.read_text().replace(was, becomes))
    with sgc.replay(path) as endpoint, pytest.raises(RunLogError, match="a reply is malformed"):
        one.run(q="a", t=0.0, backend=endpoint).sync()


# -- the command --------------------------------------------------------------------------

PROGRAM = """
import sgc

@sgc.function
def tip(s, topic: str):
    s += "A tip for " + topic + ":"
    for child in s.fork(2):
        child += sgc.gen("tip", max_tokens=8)
    s += sgc.gen("last", max_tokens=4) + sgc.select("v", ["a", "b"])
"""


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Runs `sgc …` in a folder with a program: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tip.py").write_text(PROGRAM)

    def run(*argv):
        with pytest.raises(SystemExit) as ended:
            main(["run", *argv])
        return ended.value.code or 0, *capsys.readouterr()

    return run


def test_the_command_records_and_replays(command, fake_engine):
    engine = ("--engine", fake_engine._engine.uri)
    tea = ("--arg", "topic=tea")
    code, wanted, _ = command("tip.py", *tea, "--record", "r.jsonl", *engine)
    assert code == 0
    assert command("tip.py", *tea, "--record", "r.jsonl", *engine)[0] == 2
    # The recorded seed is taken, so choices that are drawn are the same, too.
    for how in ([], ["--interpret"], ["-O0"], ["-O2"], ["--log", "run.log"]):
        assert command("tip.py", *tea, "--replay", "r.jsonl", *how)[:2] == (0, wanted)
    code, _, err = command("tip.py", "--arg", "topic=milk", "--replay", "r.jsonl")
    assert (code, ": the recording r.jsonl does not have a generation" in err) == (1, True)
    for wrong in (engine, ("--model", "fake"), ("--record", "x"), ("--resume", "run.log")):
        code, _, err = command("tip.py", *tea, "--replay", "r.jsonl", *wrong)
        assert (code, "--replay asks no model" in err) == (2, True)


def test_the_command_tells_what_was_not_asked_for(command, fake_engine, tmp_path):
    engine = ("--engine", fake_engine._engine.uri)
    command("tip.py", "--arg", "topic=tea", "--record", "r.jsonl", *engine)
    (tmp_path / "tip.py").write_text(PROGRAM.rpartition("    s +=")[0])
    replayed = ("tip.py", "--arg", "topic=tea", "--replay", "r.jsonl")
    code, _, err = command(*replayed)
    assert (code, "2 of 4 recorded replies were not asked for" in err) == (0, True)
    assert "not asked for" not in command(*replayed, "-q")[2]


def test_a_whole_number_asks_for_the_same_as_its_float(path):
    """`--temperature 0` records 0.0, and a test says `temperature=0`."""

    @sgc.function
    def ask(s):
        s += "Q: " + sgc.gen("a")

    with sgc.record(Endpoint(Counting()), path) as endpoint:
        ask.run(temperature=0.0, backend=endpoint).text()
    assert ask.run(temperature=0, backend=sgc.replay(path))["a"] == "r1"
