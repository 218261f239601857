"""The step process as its server sees it: a socket with length-prefixed messages."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from waiting import BOUND_S

import sgc.runtime.engine as engine
from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.worker import wire
from sgc.runtime.engine.worker.intake import Intake
from sgc.runtime.engine.worker.main import serve
from sgc.runtime.engine.worker.wire import Channel

ROOT = Path(engine.__file__).resolve().parents[2]
MODULE = [sys.executable, "-P", "-m", "sgc.runtime.engine.worker.main"]
TOKENIZER = str(Path(engine.__file__).parent / "assets" / "sgc_tiny")


class Worker:
    def __init__(self, **config: object) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(60)
        config = {"fake": True, "model_folder": None, "tokenizer_folder": TOKENIZER, **config}
        self.process = subprocess.Popen(
            [*MODULE, "--fd", str(theirs.fileno()), "--config", json.dumps(config)],
            pass_fds=[theirs.fileno()],
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            stderr=subprocess.PIPE,
        )
        theirs.close()
        self.ready = self.receive(wpb.Ready)

    def send(self, message: wpb.StepInput) -> None:
        data = message.SerializeToString()
        self._ours.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self, kind):
        size = int.from_bytes(self._exactly(4), "big")
        return kind.FromString(self._exactly(size))

    def _exactly(self, n: int) -> bytes:
        data = b""
        while len(data) < n:
            more = self._ours.recv(n - len(data))
            assert more, "the worker hung up"
            data += more
        return data

    def until_final(self, ids: set[int]) -> dict[int, list[wpb.Update]]:
        seen: dict[int, list[wpb.Update]] = {i: [] for i in ids}
        while not all(updates and updates[-1].final for updates in seen.values()):
            for update in self.receive(wpb.StepOutput).updates:
                seen[update.id].append(update)
        return seen

    def close(self) -> int:
        self._ours.close()
        code = self.process.wait(BOUND_S)
        self.process.stderr.close()
        return code


@pytest.fixture
def worker():
    worker = Worker(check=True, eos_ids=[0], pool_tokens=5000)
    assert worker.ready.error == ""
    yield worker
    assert worker.close() == 0


def sampling(**changes: object) -> pb.Sampling:
    plain = {"max_tokens": 20, "top_p": 1, "top_k": -1, "repetition_penalty": 1}
    return pb.Sampling(**{**plain, **changes})


def test_all_kinds_of_requests_and_statistics(worker) -> None:
    assert worker.ready.pool_tokens == 5000
    assert worker.ready.max_context == 32768
    assert worker.ready.dtype == "fake"
    tokens = [10, 11, 12, 13]
    choices = [wpb.TokenIds(ids=[20, 21]), wpb.TokenIds(ids=[20]), wpb.TokenIds(ids=[22])]
    requests = [
        wpb.WorkerRequest(id=1, tokens=tokens, generate=sampling(temperature=1, seed=2**64 - 1)),
        wpb.WorkerRequest(id=2, tokens=tokens, score=wpb.ScoreChoices(choices=choices)),
        wpb.WorkerRequest(id=3, tokens=tokens, commit=wpb.CommitTokens()),
        wpb.WorkerRequest(id=4, tokens=[], commit=wpb.CommitTokens()),
    ]
    worker.send(wpb.StepInput(requests=requests))
    seen = worker.until_final({1, 2, 3, 4})
    generated = [i for update in seen[1] for i in update.new_ids]
    assert len(generated) == seen[1][-1].usage.completion_tokens == 20
    assert seen[1][-1].finish_reason == pb.FINISH_REASON_LENGTH
    assert seen[1][-1].matched_id == -1
    assert [len(c.logprobs) for c in seen[2][-1].choices] == [2, 1, 1]
    assert seen[3][-1].usage.prompt_tokens == 4
    assert seen[4][-1].usage.prompt_tokens == 0
    worker.send(wpb.StepInput(want_stats=True))
    stats = worker.receive(wpb.StepOutput).stats
    assert stats.requests == 4
    assert stats.positions_run == 4 + 19 + (1 + 1)
    worker.send(wpb.StepInput(flush_cache=True))
    output = worker.receive(wpb.StepOutput)
    assert output.flushed
    assert output.flushed_tokens == stats.cached_pool_tokens


def test_a_cancelled_request_is_not_heard_of_again(worker) -> None:
    endless = sampling(max_tokens=4000, min_tokens=4000)
    worker.send(wpb.StepInput(requests=[wpb.WorkerRequest(id=1, tokens=[9], generate=endless)]))
    assert worker.receive(wpb.StepOutput).updates[0].id == 1
    worker.send(wpb.StepInput(cancels=[1], want_stats=True))
    output = worker.receive(wpb.StepOutput)
    while not output.HasField("stats"):
        output = worker.receive(wpb.StepOutput)
    assert list(output.updates) == []
    assert output.stats.running_requests == 0


def test_stop_strings_are_found_in_the_text(worker) -> None:
    def ask(i: int, **changes: object) -> list[wpb.Update]:
        generate = sampling(max_tokens=200, seed=3, temperature=1, **changes)
        request = wpb.WorkerRequest(id=i, tokens=[9, 10], generate=generate)
        worker.send(wpb.StepInput(requests=[request]))
        return worker.until_final({i})[i]

    plain = [i for update in ask(1) for i in update.new_ids]
    stopped = ask(2, stop=["\n"])
    ids = [i for update in stopped for i in update.new_ids]
    assert stopped[-1].matched == "\n"
    assert len(ids) < len(plain)
    assert plain[: len(ids)] == ids


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"chunk_tokens": 0}, "chunk_tokens must be 1 or more"),
        pytest.param({"tokenizer_folder": "/nonexistent"}, "nonexistent", marks=pytest.mark.slow),
        pytest.param({"surprise": 1}, "surprise", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_loaded_is_said_in_ready(config, words) -> None:
    worker = Worker(**config)
    assert words in worker.ready.error
    assert worker.process.stderr.read() == b""  # nothing is said twice
    assert worker.close() == 1


@pytest.mark.slow
def test_a_worker_whose_server_goes_while_it_loads_ends_silently() -> None:
    ours, theirs = socket.socketpair()
    config = json.dumps({"fake": True, "tokenizer_folder": TOKENIZER})
    process = subprocess.Popen(
        [*MODULE, "--fd", str(theirs.fileno()), "--config", config],
        pass_fds=[theirs.fileno()],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        stderr=subprocess.PIPE,
    )
    theirs.close()
    ours.close()
    assert process.communicate(timeout=BOUND_S)[1] == b""
    assert process.returncode == 0


class _Faulty:
    def __init__(self, model) -> None:
        self._model = model

    def run(self, batch):
        if 666 in batch.token_ids:
            raise RuntimeError("out of luck")
        return self._model.run(batch)


def test_a_failing_step_is_reported_and_the_loop_goes_on(lab, capsys) -> None:
    core: EngineCore = lab.make_core(forward=_Faulty(lab.make_model(4096)))
    ours, theirs = socket.socketpair()
    message = wpb.StepInput(
        requests=[
            wpb.WorkerRequest(id=1, tokens=[666], commit=wpb.CommitTokens()),
            wpb.WorkerRequest(id=2, tokens=[5], commit=wpb.CommitTokens()),
        ]
    )
    data = message.SerializeToString()
    ours.sendall(len(data).to_bytes(4, "big") + data)
    data = wpb.StepInput(
        requests=[wpb.WorkerRequest(id=3, tokens=[5], commit=wpb.CommitTokens())]
    ).SerializeToString()
    ours.sendall(len(data).to_bytes(4, "big") + data)
    ours.shutdown(socket.SHUT_WR)
    channel = Channel(theirs)
    # The end of the socket is seen together with the requests; serve what came before it.
    received = channel.receive(None)
    assert [len(m.requests) for m in received] == [2, 1]
    from sgc.runtime.engine.worker.main import _step
    from sgc.runtime.engine.worker.wire import request_of

    for request in received[0].requests:
        core.submit(request_of(request))
    assert _step(core) == []
    assert "out of luck" in capsys.readouterr().err
    errors = {u.id: u.error.code for u in core.step()}
    assert errors == dict.fromkeys([1, 2], pb.ERROR_CODE_INTERNAL)
    core.submit(request_of(received[1].requests[0]))
    assert [u.error for u in _step(core)] == [None]
    serve(channel, core, Intake(core, lambda message: None))  # ends at the end of the socket
    theirs.close()
    ours.close()


def _frame(message: wpb.StepInput) -> bytes:
    data = message.SerializeToString()
    return len(data).to_bytes(4, "big") + data


def _served(core: EngineCore, n: int) -> dict[int, tuple]:
    """What clients of a loop hear of `n` generations, half of which are cancelled at once."""
    ours, theirs = socket.socketpair()
    ours.settimeout(BOUND_S)
    loop = Thread(target=serve, args=(Channel(theirs), core, Intake(core, lambda message: None)))
    loop.start()
    asked = [
        wpb.WorkerRequest(
            id=i, tokens=[7, 8, i], generate=sampling(max_tokens=5 + 3 * i, temperature=0.7, seed=i)
        )
        for i in range(1, 2 * n + 1)
    ]
    ours.sendall(_frame(wpb.StepInput(requests=asked)))
    ours.sendall(_frame(wpb.StepInput(cancels=range(n + 1, 2 * n + 1))))
    heard: dict[int, tuple] = {}
    ids: dict[int, list[int]] = {}
    data = b""
    while heard.keys() < set(range(1, n + 1)):
        data += ours.recv(1 << 16)
        while len(data) >= 4 and len(data) - 4 >= (size := int.from_bytes(data[:4], "big")):
            message, data = wpb.StepOutput.FromString(data[4 : 4 + size]), data[4 + size :]
            for update in message.updates:
                ids.setdefault(update.id, []).extend(update.new_ids)
                if update.final:
                    heard[update.id] = (*ids[update.id], update.finish_reason)
    ours.close()
    loop.join(BOUND_S)
    theirs.close()
    return {i: heard[i] for i in range(1, n + 1)}


def test_a_loop_that_works_while_the_model_runs_says_the_same(lab) -> None:
    """It sends what earlier steps gave while the next one runs."""
    plain = lab.make_core()
    ahead = lab.make_core(is_ahead=True)
    assert _served(ahead, 9) == _served(plain, 9)
    assert not ahead.has_work


def test_a_server_that_is_gone_is_no_failure_of_the_step(lab, capsys) -> None:
    ours, theirs = socket.socketpair()
    core = lab.make_core(is_ahead=True)
    asked = wpb.WorkerRequest(id=1, tokens=[7, 8], generate=sampling(max_tokens=9))
    ours.sendall(_frame(wpb.StepInput(requests=[asked])))
    sent: list[int] = []

    class Closing(Channel):
        def send(self, message: wpb.StepOutput) -> None:
            sent.append(len(message.updates))
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        serve(Closing(theirs), core, Intake(core, lambda message: None))
    assert sent
    assert capsys.readouterr().err == ""
    ours.close()
    theirs.close()


def test_messages_above_the_bound_are_refused() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall((1 << 31).to_bytes(4, "big"))
    with pytest.raises(ValueError, match="bytes"):
        Channel(theirs).receive(None)
    ours.close()
    theirs.close()


def test_what_is_too_long_for_a_message_goes_in_several(monkeypatch) -> None:
    monkeypatch.setattr(wire, "MAX_MESSAGE_BYTES", 1000)
    output = wpb.StepOutput(flushed=True)
    for i in range(100):
        output.updates.add(id=i, new_ids=range(20))
    parts = wire.bounded(output)
    assert [update.id for part in parts for update in part.updates] == list(range(100))
    assert [part.flushed for part in parts].count(True) == 1
    assert all(part.ByteSize() <= 1000 for part in parts)
    assert wire.bounded(wpb.StepOutput()) == []
