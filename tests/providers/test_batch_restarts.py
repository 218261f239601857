"""Jobs by batches whose process is killed at each step, and that go on with the same command."""

from __future__ import annotations

import os
import signal
import time

import pytest
from providers.batch_jobs import STAGES, Folder
from providers.batch_server import Batch, BatchServer

N_ROWS = 5
WAIT_S = 120


@pytest.fixture
def place(tmp_path):
    servers = []

    def make(**settings):
        server = BatchServer(**settings)
        servers.append(server)
        return server, Folder(tmp_path, N_ROWS)

    yield make
    for server in servers:
        server.close()
        assert server.wrong == []


class Numbered:
    """Replies that all differ, so that a draw that is used twice is seen."""

    def __init__(self):
        self.n = 0

    def __call__(self, ask):
        self.n += 1
        return f"<{self.n}>"


class Killer:
    """Ends the client by SIGKILL the nth time that a step is made, before it or after it."""

    def __init__(self, step, when, nth):
        self.wanted, self.left, self.pid = (step, when), nth, 0
        self.has_killed = False

    def __call__(self, name, when):
        if (name, when) == self.wanted and not self.has_killed:
            self.left -= 1
            if not self.left:
                self.has_killed = True
                os.kill(self.pid, signal.SIGKILL)
        return None


STEPS = [("openai", step, when) for step in ("upload", "create", "look", "content")
         for when in ("before", "after")]  # fmt: skip
STEPS += [("anthropic", step, when) for step in ("create", "look", "results")
          for when in ("before", "after")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(("model", "step", "when"), STEPS)
def test_a_killed_job_goes_on_and_submits_nothing_twice(place, model, step, when, nth):
    killer = Killer(step, when, nth)
    server, folder = place(reply=Numbered(), step=killer)
    child = folder.child(server, model)
    killer.pid = child.pid
    child.communicate(timeout=WAIT_S)
    assert child.returncode == -signal.SIGKILL
    child = folder.child(server, model)
    _, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 0, err
    rows = folder.results()
    assert len(rows) == N_ROWS
    assert set(server.submitted.values()) == {1}
    assert sum(server.submitted.values()) == N_ROWS * sum(STAGES)
    drawn = [text for row in rows.values() for text in texts_of(row)]
    assert len(set(drawn)) == len(drawn) == N_ROWS * sum(STAGES)


def texts_of(row):
    """The replies that a row has used."""
    found = [*row["variables"].values()]
    for stream in row["streams"]:
        found.append(stream["variables"]["part"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai", "anthropic"])
@pytest.mark.parametrize("n_replies", [1, 3, N_ROWS + 4])
def test_a_job_killed_among_the_results_takes_each_once(place, model, n_replies):
    server, folder = place(reply=Numbered())
    child = folder.child(server, model, KILL_AFTER=str(n_replies))
    child.communicate(timeout=WAIT_S)
    assert child.returncode == -signal.SIGKILL
    # Fewer rows at once: results that nobody waits for yet stay at the provider.
    child = folder.child(server, model, "-j", "2")
    _, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 0, err
    rows = folder.results()
    assert set(server.submitted.values()) == {1}
    assert "not asked for" not in err
    drawn = [text for row in rows.values() for text in texts_of(row)]
    assert len(set(drawn)) == len(drawn) == N_ROWS * sum(STAGES)


@pytest.mark.slow
def test_another_jobs_batch_is_not_taken_for_ours(place):
    """Anthropic's batches have no names: one of the same time and size is read, and left."""
    killer = Killer("create", "before", 1)
    server, folder = place(reply=Numbered(), step=killer)
    child = folder.child(server, "anthropic")
    killer.pid = child.pid
    child.communicate(timeout=WAIT_S)
    other = {"model": "x", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    requests = {f"other-{n}": other for n in range(N_ROWS)}
    server.batches["batch_x"] = Batch("batch_x", "messages", requests, {}, created=time.time())
    child = folder.child(server, "anthropic")
    _, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 0, err
    assert server.batches["batch_x"].n_looks
    assert set(server.submitted.values()) == {1}
    assert sum(server.submitted.values()) == N_ROWS * sum(STAGES)


@pytest.mark.slow
def test_many_kills_lose_nothing(place):
    server, folder = place(reply=Numbered(), n_polls=4)
    kills = [("create", "after"), ("look", "after"), ("content", "before"), ("upload", "after"),
             ("create", "before"), ("content", "after")]  # fmt: skip
    for step, when in kills:
        server.step = killer = Killer(step, when, 1)
        child = folder.child(server, "openai")
        killer.pid = child.pid
        child.communicate(timeout=WAIT_S)
    server.step = lambda name, when: None
    child = folder.child(server, "openai")
    _, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 0, err
    assert len(folder.results()) == N_ROWS
    assert set(server.submitted.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai", "anthropic"])
def test_an_interrupt_tells_what_goes_on_and_how_to_cancel_it(place, model):
    waiting = 10**6
    server, folder = place(reply=Numbered(), n_polls=waiting)
    child = folder.child(server, model)
    while child.poll() is None and server.steps["look"] < 2:
        pass
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 130
    assert "1 batch goes on at the provider, and will be paid for (batch_0)" in err
    assert "with --cancel-batches it cancels them" in err
    done = folder.child(server, model, "--cancel-batches")
    _, err = done.communicate(timeout=WAIT_S)
    assert (done.returncode, server.batches["batch_0"].is_cancelled) == (0, True), err
    server.n_polls = 1
    child = folder.child(server, model)
    _, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == 0, err
    assert len(folder.results()) == N_ROWS
