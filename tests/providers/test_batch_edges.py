"""Batches when things go wrong in odd moments: nothing is lost, paid for twice, or waited for."""

from __future__ import annotations

import gc
import json

import pytest
from providers.batch_jobs import BROKEN, BUSY, CUT, N_ROWS, ONE, STAGES, faults, sizes
from providers.batch_server import OK, Batch
from providers.provider_server import Fault

from sgc.errors import LogUnwritable
from sgc.runtime.executor.backends.providers.batches import stages, submitting
from sgc.runtime.executor.backends.providers.batches.journal import Journal
from sgc.runtime.executor.backends.providers.openai.batches import OpenAIBatches

SLOW = pytest.mark.slow
EXPIRED_KEY = Fault("status", 401, body={"error": {"message": "the key has expired"}})
NOT_THERE = Fault("status", 404, body={"error": {"message": "no such thing"}})
ODD = Fault("status", 400, body={"error": {"message": "odd"}})


def test_what_waits_for_a_budget_is_woken_when_no_batch_will_wake_it(place, monkeypatch):
    """The request that holds the budget fits no batch, so none is submitted."""
    _, run = place(n_rows=2, program=ONE)
    monkeypatch.setattr(OpenAIBatches, "max_bytes", 1500)
    rows = [{"custom_id": f"r{n}", "topic": "x" * n} for n in (2000, 3)]
    (run.folder.path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ended = run("openai", "--max-cost", "0.0027", "--order", "given")
    assert ended.code == 100
    assert "does not fit a batch of 1,500" in ended.rows["r2000"]["error"]["message"]
    assert "error" not in ended.rows["r3"]


@SLOW
def test_lines_that_are_refused_are_counted_as_they_were_submitted(place):
    """Also when rows come to the batch one after the other."""

    def refuse(batch):
        bad = {"code": "invalid_request", "message": "a bad line", "line": 2}
        return [bad] if batch.id == "batch_0" else []

    _, run = place(program=ONE, refuse=refuse, step=faults("look", ("before", EXPIRED_KEY)))
    assert run("openai").code == 1
    ended = run("openai", "-j", "2")
    assert (ended.code, len(ended.rows)) == (100, N_ROWS)
    assert ["error" in row for row in ended.rows.values()].count(True) == 1


@SLOW
@pytest.mark.parametrize("model", ["openai", "anthropic"])
def test_a_batch_that_is_not_answered_for_is_not_given_up(place, model):
    """Only one that is not there any more is submitted again."""
    server, run = place(step=faults("look", ("before", ODD)))
    ended = run(model)
    assert (ended.code, ended.rows) == (1, {})
    assert "batch batch_0 cannot be followed" in ended.err
    assert run(model).code == 0
    assert set(server.submitted.values()) == {1}


@SLOW
def test_results_that_go_away_half_way_are_asked_again(place):
    left = [None, NOT_THERE]

    def step(name, when):
        is_content = (name, when) == ("content", "before") and left
        return left.pop(0) if is_content else None

    bad = Fault("status", 400, body={"error": {"message": "bad"}})
    server, run = place(program=ONE, step=step, outcome=lambda batch, id, body: (
        bad if batch.id == "batch_0" and [*batch.requests].index(id) < 2 else OK
    ))  # fmt: skip
    ended = run("openai")
    assert (ended.code, len(ended.rows)) == (0, N_ROWS)
    assert sizes(server) == [N_ROWS, 2]
    assert "cannot be read any more" in ended.err


@SLOW
@pytest.mark.parametrize(
    ("fault", "code", "words"), [(ODD, 0, "has ended already"), (BROKEN, 1, "is not cancelled")]
)
def test_all_batches_are_cancelled_also_if_one_cannot_be(place, monkeypatch, fault, code, words):
    server, run = place(step=lambda name, when: EXPIRED_KEY if name == "look" else None)
    monkeypatch.setattr(stages, "MAX_BYTES", 900)
    assert run("openai").code == 1
    assert len(server.batches) == 2
    server.step, server.n_polls = faults("cancel", ("before", fault)), 1 if code == 0 else 10
    done = run("openai", "--cancel-batches")
    assert (done.code, f"batch_0 {words}" in done.err) == (code, True)
    assert [batch.is_cancelled for batch in server.batches.values()].count(False) == 1
    server.n_polls = 1
    again = run("openai", "--cancel-batches")
    assert again.code == 0
    assert ("batch_0 is cancelled" in again.err) == (code == 1)
    assert run("openai").code == 0


@SLOW
def test_a_full_disk_keeps_no_batch_from_being_cancelled(place, monkeypatch):
    server, run = place(step=lambda name, when: EXPIRED_KEY if name == "look" else None)
    monkeypatch.setattr(stages, "MAX_BYTES", 900)
    assert run("openai").code == 1

    def over(journal, noted, word):
        raise LogUnwritable("no space left")

    with monkeypatch.context() as full:
        full.setattr(Journal, "over", over)
        done = run("openai", "--cancel-batches")
    assert (done.code, "no space left" in done.err) == (1, True)
    assert [batch.is_cancelled for batch in server.batches.values()] == [True, True]
    server.step, server.n_polls = lambda name, when: None, 1
    again = run("openai", "--cancel-batches")  # they are over already
    assert again.code == 0, again.err


@SLOW
def test_batches_of_rows_that_are_done_are_cancelled_too(place):
    server, run = place(program=ONE)
    assert run("openai").code == 0
    server.batches["batch_x"] = Batch("batch_x", "chat", {}, server.batches["batch_0"].told)
    with (run.folder.path / "out.log.batches").open("a") as file:
        for record in ({"kind": "intent", "at": 1.0, "ids": ["x"]},
                       {"kind": "submitted", "batch": "batch_x"}):  # fmt: skip
            file.write(json.dumps({**record, "number": 9}) + "\n")
    assert run("openai", "--cancel-batches").code == 0
    assert server.batches["batch_x"].is_cancelled


@SLOW
@pytest.mark.parametrize(
    ("model", "step"),
    [("openai", "list"), ("anthropic", "list"), ("anthropic", "look"), ("anthropic", "results")],
)
def test_a_batch_in_doubt_is_told_and_looked_for_whatever_fails(place, monkeypatch, model, step):
    server, run = place(step=faults("create", ("after", CUT)))
    monkeypatch.setattr(submitting, "MAX_FAILURES", 1)
    ended = run(model)
    assert (ended.code, ended.rows) == (1, {})
    assert "(number 1, if it arrived)" in ended.err
    monkeypatch.setattr(submitting, "MAX_FAILURES", 20)
    server.step = faults(step, ("before", BUSY), ("before", BROKEN), ("after", CUT))
    ended = run(model)
    assert (ended.code, len(ended.rows)) == (0, N_ROWS), ended.err
    assert sizes(server) == [N_ROWS * n for n in STAGES]
    assert set(server.submitted.values()) == {1}


@SLOW
def test_a_foreign_batch_that_is_gone_is_not_ours(place, monkeypatch):
    server, run = place(step=faults("create", ("after", CUT)))
    monkeypatch.setattr(submitting, "MAX_FAILURES", 1)
    assert run("anthropic").code == 1
    first = server.batches["batch_0"]
    other = Batch("batch_x", "messages", {id: {} for id in first.requests}, {})
    server.batches["batch_x"], other.created = other, first.created
    server.step = faults("look", ("before", NOT_THERE))
    ended = run("anthropic")
    assert (ended.code, len(ended.rows)) == (0, N_ROWS), ended.err
    assert set(server.submitted.values()) == {1}


@SLOW
@pytest.mark.parametrize(("model", "kind"), [
    ("openai", "intent"), ("openai", "file"), ("openai", "submitted"), ("openai", "over"),
    ("anthropic", "intent"), ("anthropic", "submitted"), ("anthropic", "over"),
])  # fmt: skip
def test_a_disk_that_is_full_ends_the_job_which_goes_on(place, monkeypatch, caplog, model, kind):
    server, run = place()
    append, n_left = Journal._append, [1]

    def full(journal, record):
        if record["kind"] == kind and n_left[0]:
            n_left[0] -= 1
            raise LogUnwritable(f"cannot write {journal.path}: No space left on device")
        append(journal, record)

    monkeypatch.setattr(Journal, "_append", full)
    ended = run(model)
    assert n_left == [0]
    gc.collect()
    assert (ended.code, "No space left on device" in ended.err) == (1, True)
    assert "never retrieved" not in caplog.text
    ended = run(model)
    assert (ended.code, len(ended.rows)) == (0, N_ROWS), ended.err
    assert set(server.submitted.values()) == {1}


@SLOW
def test_a_job_without_rows_or_questions_makes_no_batch(place):
    server, run = place()
    (run.folder.path / "rows.jsonl").write_text("")
    assert run("openai").code in (0, 2)
    server, run = place(n_rows=3, program='import sgc\n\n@sgc.function\ndef tri(s, topic: str):\n'
                        '    s += "Of " + topic\n')  # fmt: skip
    assert run("openai", out="plain").code == 0
    assert server.batches == {}
