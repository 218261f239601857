"""Jobs through providers' batch APIs, on a scripted server that follows their contract."""

from __future__ import annotations

import itertools

import pytest
from providers.batch_jobs import BROKEN, BUSY, CUT, N_ROWS, ONE, STAGES, faults, plain, sizes
from providers.batch_server import (
    CANCELLED,
    DAMAGED,
    EXPIRED,
    MISSING,
    ODD,
    OK,
    TWICE,
)
from providers.provider_server import Fault

from sgc.runtime.executor.backends.providers.batches import stages

SLOW = pytest.mark.slow
of_openai_first = pytest.mark.parametrize(
    "model", ["openai", pytest.param("anthropic", marks=SLOW)]
)
of_anthropic_first = pytest.mark.parametrize(
    "model", [pytest.param("openai", marks=SLOW), "anthropic"]
)
both = pytest.mark.parametrize("model", ["openai", "anthropic"])


@of_openai_first
def test_a_job_goes_stage_by_stage_and_gives_what_it_gives_at_once(place, model):
    server, run = place()
    at_once = run(model, "--seed", "3", out="once", by_batch=False)
    assert server.batches == {}
    ended = run(model, "--seed", "3")
    assert (at_once.code, ended.code) == (0, 0)
    assert plain(ended.rows) == plain(at_once.rows)
    assert sizes(server) == [N_ROWS * n for n in STAGES]
    for key, row in ended.rows.items():
        assert row["usage"]["cost_usd"] == pytest.approx(at_once.rows[key]["usage"]["cost_usd"] / 2)
    assert "batch 3: 6 requests are submitted (batch_2)" in ended.err
    assert "batch_2" not in ended.err.splitlines()[-1]


def some(what, every=3):
    """An outcome of each third request of the first batch."""

    def outcome(batch, id, body):
        return what if batch.id == "batch_0" and [*batch.requests].index(id) % every == 0 else OK

    return outcome


@of_anthropic_first
@pytest.mark.parametrize(
    ("what", "words"),
    [
        (EXPIRED, "2 are asked again"),
        pytest.param(MISSING, "2 are asked again", marks=SLOW),
        pytest.param(ODD, "2 are asked again", marks=SLOW),
        pytest.param(Fault("status", 500, body={"error": {"message": "it broke"}}),
                     "2 are asked again", marks=SLOW),
        pytest.param(DAMAGED, "2 lines of its results are damaged", marks=SLOW),
        pytest.param(TWICE, "2 results came twice; the first ones count", marks=SLOW),
        pytest.param("strange", "2 results were not asked for, such as 'never-",
                     marks=SLOW),
    ],
    ids=["expired", "missing", "odd", "500", "damaged", "twice", "strange"],
)  # fmt: skip
def test_what_a_batch_leaves_open_is_asked_again_and_told(place, model, what, words):
    server, run = place(outcome=some(what))
    ended = run(model)
    assert (ended.code, len(ended.rows)) == (0, N_ROWS)
    assert words in ended.err
    n_again = 0 if what in (TWICE, "strange") else 2
    assert sorted(server.submitted.values())[::-1][:3] == [2] * n_again + [1] * (3 - n_again)


@SLOW
@both
def test_a_request_that_fails_fails_its_row_alone(place, model):
    said = {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}
    server, run = place(outcome=some(Fault("status", 400, body=said)))
    ended = run(model)
    assert ended.code == 100
    failed = [row["error"] for row in ended.rows.values() if "error" in row]
    assert len(failed) == 2
    assert {each["type"] for each in failed} == {"ContextExceeded"}
    assert "prog.py:6" in str(failed[0]["message"])
    assert max(server.submitted.values()) == 1
    server.outcome = lambda batch, id, body: OK
    again = run(model, "--retry-errors")
    assert (again.code, len(again.rows)) == (0, N_ROWS)


@SLOW
def test_what_always_expires_fails_after_three_batches(place):
    server, run = place(outcome=lambda _, id, body: EXPIRED if "tea 0" in str(body) else OK)
    ended = run("openai")
    assert ended.code == 100
    assert [row["error"]["type"] for row in ended.rows.values() if "error" in row] == [
        "DeadlineExceeded"
    ]
    assert sorted(server.submitted.values())[-1] == 3


@pytest.mark.parametrize(
    ("model", "step"),
    [("openai", faults("create", ("after", CUT), ("before", BROKEN))),
     *(pytest.param(model, faults(step, ("before", BUSY), ("before", BROKEN), ("before", CUT),
                                  ("after", BROKEN), ("after", CUT)), marks=SLOW)
       for model, step in itertools.product(
           ["openai", "anthropic"], ["upload", "create", "look", "content", "results", "list"]))],
)  # fmt: skip
def test_nothing_is_submitted_twice_whatever_fails(place, model, step):
    server, run = place(step=step)
    ended = run(model)
    assert (ended.code, len(ended.rows)) == (0, N_ROWS)
    assert sizes(server) == [N_ROWS * n for n in STAGES]
    assert set(server.submitted.values()) == {1}


@of_openai_first
def test_a_server_without_batches_is_told(place, model):
    def step(name, when):
        return Fault("status", 404, body={"error": {"message": "no such route"}})

    _, run = place(step=step)
    ended = run(model)
    assert (ended.code, ended.rows) == (1, {})
    assert "the provider takes no batch of requests" in ended.err
    assert "Else run without --batch" in ended.err


def test_lines_that_are_refused_fail_and_the_others_are_asked_again(place):
    def refuse(batch):
        bad = {"code": "invalid_request", "message": "a bad line", "line": 2}
        return [bad] if batch.id == "batch_0" else []

    server, run = place(refuse=refuse)
    ended = run("openai")
    assert ended.code == 100
    failed = [row for row in ended.rows.values() if "error" in row]
    assert ["a bad line" in row["error"]["message"] for row in failed] == [True]
    assert sizes(server)[:2] == [N_ROWS, N_ROWS - 1]
    assert len(ended.rows) == N_ROWS


def test_a_batch_that_is_refused_as_a_whole_ends_the_job(place):
    def refuse(batch):
        no_model = {"code": "model_not_found", "message": "no such model"}
        return [{**no_model, "line": n + 1} for n in range(len(batch.requests))]

    _, run = place(refuse=refuse)
    ended = run("openai")
    assert (ended.code, ended.rows) == (1, {})
    assert "the provider refused a batch: no such model" in ended.err


@SLOW
def test_results_at_another_server_are_not_fetched(place):
    """The key goes with the request for them."""
    server, run = place()
    server.results_at = "http://127.0.0.1:9"
    ended = run("anthropic")
    assert (ended.code, ended.rows) == (1, {})
    assert "the results are at another server: http://127.0.0.1:9" in ended.err


@SLOW
@both
def test_rows_that_come_while_results_are_read_wait_for_the_next_reading(place, model):
    """Their results may have gone by already."""
    refused = Fault("status", 401, body={"error": {"message": "the key has expired"}})
    server, run = place(n_rows=8, program=ONE, step=faults("look", ("before", refused)))
    ended = run(model)
    assert (ended.code, ended.rows) == (1, {})
    assert "batch batch_0 cannot be followed" in ended.err
    server.line_s = 0.02
    ended = run(model, "-j", "2")
    assert (ended.code, len(ended.rows)) == (0, 8)
    assert set(server.submitted.values()) == {1}


@of_openai_first
def test_a_stage_waits_for_results_that_come_in_pieces(place, model):
    server, run = place()
    server.line_s = 0.02
    assert run(model).code == 0
    assert sizes(server) == [N_ROWS * n for n in STAGES]


@SLOW
def test_a_batch_that_the_provider_has_forgotten_is_submitted_again(place):
    lost = Fault("status", 404, body={"error": {"message": "no such batch"}})
    server, run = place(step=faults("look", ("before", lost)))
    ended = run("openai")
    assert (ended.code, len(ended.rows)) == (0, N_ROWS)
    assert "cannot be read any more" in ended.err
    assert sorted(set(server.submitted.values())) == [1, 2]


@SLOW
def test_a_full_queue_gets_smaller_batches(place):
    def refuse(batch):
        full = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
        return [full] if len(batch.requests) > 3 else []

    server, run = place(refuse=refuse)
    ended = run("openai")
    assert (ended.code, len(ended.rows)) == (0, N_ROWS)
    assert "Enqueued token limit reached; waits for room" in ended.err
    assert set(server.submitted.values()) == {1}


@SLOW
@both
def test_batches_keep_within_the_limits(place, monkeypatch, model):
    monkeypatch.setattr(stages, "MAX_BYTES", 900)
    server, run = place(max_bytes=900)
    ended = run(model)
    assert (ended.code, len(ended.rows)) == (0, N_ROWS)
    assert len(server.batches) > len(STAGES)
    assert set(server.submitted.values()) == {1}


@SLOW
def test_a_budget_holds_at_half_the_price_and_is_gone_on_with(place):
    server, run = place(n_rows=8)
    ended = run("openai", "--max-cost", "0.0004")
    assert ended.code == 101
    spent = [row["usage"]["cost_usd"] for row in ended.rows.values()]
    assert len(ended.rows) < 8
    assert sum(spent) <= 0.0004
    again = run("openai", "--max-cost", "1")
    assert (again.code, len(again.rows)) == (0, 8)
    assert set(server.submitted.values()) == {1}


@SLOW
@both
def test_a_batch_that_somebody_cancels_ends_the_job_and_the_command_asks_anew(place, model):
    server, run = place(outcome=some(CANCELLED, every=2))
    ended = run(model)
    assert ended.code == 1
    assert "batch_0 was cancelled at the provider" in ended.err
    assert not any("error" in row for row in ended.rows.values())
    again = run(model)
    assert (again.code, len(again.rows)) == (0, N_ROWS)
    assert sorted(server.submitted.values())[-4:] == [1, 2, 2, 2]


TOOLS = """
import sgc

@sgc.tool
def lookup(word: str) -> str:
    return word.upper()

@sgc.function
def tri(s, topic: str):
    s += sgc.user("A word for " + topic) + sgc.assistant(sgc.gen("word", max_tokens=8))
    s += sgc.user("So: " + lookup(s["word"])) + sgc.assistant(sgc.gen("end", max_tokens=8))
    kind = sgc.select("kind", ["hot", "cold"])
    s += sgc.user("Which?") + sgc.assistant(kind)
"""


@SLOW
@pytest.mark.parametrize("more", [(), ("--interpret",), ("--ordered", "-j", "3")])
@both
def test_tools_threads_and_order_change_no_result(place, monkeypatch, model, more):
    server, run = place(program=TOOLS)
    if "--interpret" in more:  # the rows' threads are busy all the time
        monkeypatch.setattr(stages, "LINGER_S", 0.1)
    tools = ("--tools", str(run.folder.path / "prog.py"), "--seed", "3")
    at_once = run(model, *tools, *more, out="once", by_batch=False)
    ended = run(model, *tools, *more)
    assert (at_once.code, ended.code) == (0, 0)
    assert plain(ended.rows) == plain(at_once.rows)
    if not more:
        assert sizes(server) == [N_ROWS] * 3


LONG = """
import sgc

@sgc.function
def tri(s, topic: str):
    s += sgc.system("All that is known is told here. " * 700) + sgc.user("Of " + topic)
    s += sgc.assistant(sgc.gen("title", max_tokens=8))
    s += sgc.user("And?") + sgc.assistant(sgc.gen("end", max_tokens=8))
"""


@SLOW
@both
def test_cache_marks_are_sent_and_a_job_with_fewer_rows_finds_its_requests(place, model):
    """Where marks go depends on the rows that are left, and names of requests must not."""
    server, run = place(program=LONG)
    assert run(model, "--limit", "3", "--seed", "3").code == 0
    marked = [batch.requests for batch in server.batches.values()]
    if model == "anthropic":
        assert all("cache_control" in str(body) for each in marked for body in each.values())
    digests = {id.partition("-")[0] for id in server.submitted}
    (run.folder.path / "out.jsonl").unlink()
    (run.folder.path / "out.log").unlink()
    (run.folder.path / "out.log.batches").unlink()
    server.submitted.clear()
    assert run(model, "--limit", "2", "--seed", "3").code == 0
    assert {id.partition("-")[0] for id in server.submitted} < digests


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--cancel-batches"], "is for a job with --batch"),
        (["--batch", "--rpm", "3"], "--rpm is for requests one by one"),
        (["--batch", "--engine", "grpc://x:1"], "--batch is for model providers"),
    ],
)
def test_a_wrong_command_is_told(place, argv, words):
    _, run = place()
    ended = run("openai", *argv, by_batch=False)
    assert ended.code == 2
    assert words in ended.err
