"""The lines that a server writes: an event each, whatever clients send; no prompt, no token."""

from __future__ import annotations

import http.client
import io
import json
import logging
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from engine.server.test_serve import SERVE, refused
from waiting import BOUND_S, until

from sgc.proto import engine_pb2 as pb
from sgc.proto.engine_pb2_grpc import EngineStub
from sgc.runtime.engine.logs.access import AccessLog, text_of
from sgc.runtime.engine.logs.log import JSON, MAX_WAITING, PLAIN, Log
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.quotas import Account
from sgc.runtime.engine.server.ledger import Active, Ended

BODY = {"model": "fake", "prompt": "SECRET words", "max_tokens": 3, "ignore_eos": True}
HOSTILE = 'a"b\\\n{"event": "fake"}\r\u2028\x1b[31m\x00\ud800é'


def written(form: str, **fields: Any) -> list[str]:
    stream = io.StringIO()
    Log(form, stream).record("request", fields)
    return stream.getvalue().splitlines()


def test_no_text_breaks_a_line() -> None:
    (line,) = written(JSON, path=HOSTILE)
    assert line.isascii()
    assert json.loads(line)["path"] == HOSTILE
    (line,) = written(PLAIN, path=HOSTILE, n=3, none=None)
    assert line.isascii()
    assert line.isprintable()
    assert line.endswith("n=3")


def test_what_modules_log_is_an_event_too() -> None:
    stream = io.StringIO()
    log = Log(JSON, stream)
    before = list(logging.getLogger().handlers)
    log.take_over()
    try:
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logging.getLogger("sgc.http").exception("it failed")
    finally:
        logging.getLogger().handlers[:] = before
        logging.captureWarnings(False)
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert (found["event"], found["level"], found["message"]) == ("log", "error", "it failed")
    assert "ValueError: two" in found["traceback"]


def test_a_request_s_parts_are_one_line() -> None:
    stream = io.StringIO()
    access = AccessLog(Log(JSON, stream), "m")
    caller = Caller(account=Account("batch"))
    usage = pb.Usage(prompt_tokens=5, cached_tokens=2, completion_tokens=3, queue_s=0.5)
    done = Ended(caller, 0, Active("generate"), "finished", usage, 1, is_part=True)
    lost = Ended(caller, 1, Active("generate", n_generated=2), "cancelled", is_part=True)
    for ended in (done, lost, done):
        access.observe(ended)
    assert not stream.getvalue()
    access.http("POST", "/generate", None, caller, "r")
    found = json.loads(stream.getvalue())
    assert (found["requests"], found["outcome"]) == (3, "cancelled")
    assert (found["prompt_tokens"], found["cached_tokens"]) == (10, 4)
    assert (found["completion_tokens"], found["queue_s"]) == (8, 0.5)
    assert (found["status"], found["disconnected"], found["token"]) == (499, True, "batch")


def test_a_prompt_is_a_bounded_text() -> None:
    segments = [
        pb.Segment(text=pb.TextRun(text="Hello ")),
        pb.Segment(tokens=pb.TokenRun(ids=[1, 2])),
        pb.Segment(images=pb.ImageRun()),
        pb.Segment(text=pb.TextRun(text="x" * 10**6)),
    ]
    text = text_of(pb.Prompt(segments=segments))
    assert text.startswith("Hello [2 tokens][images]xxx")
    assert len(text) < 40_000


def asked(arguments: list[str]) -> list[str]:
    """The lines of a server that gets a few requests, good and bad."""
    command = [*SERVE, "--model", "fake", "--http", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    while not any("listening on" in line for line in lines):
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    url = next(m[1] for line in lines if (m := re.search(r"HTTP on (http://[0-9.:]+)", line)))
    target = next(m[1] for line in lines if (m := re.search(r"listening on ([0-9.:]+)", line)))
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=BOUND_S)
    for path, body in (
        ("/v1/completions", {**BODY, "n": 2}),
        ("/v1/completions", {"model": "SECRET"}),
        ('/no%0Asuch"%1b', {}),
    ):
        data, headers = json.dumps(body), {"Authorization": "Bearer SECRET"}
        connection.request("POST", path, data, {**headers, "X-Request-Id": "one\ttwo"})
        connection.getresponse().read()
    connection.request("GET", "/health")
    connection.getresponse().read()
    connection.close()
    prompt = pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text="SECRET"))])
    with grpc.insecure_channel(target) as channel:
        frame = pb.ClientFrame(requests=[pb.Request(id=7, prompt=prompt, commit=pb.Commit())])
        metadata = (("authorization", "Bearer SECRET"), ("x-request-id", "mine"))
        next(EngineStub(channel).Session(iter([frame]), metadata=metadata))
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=BOUND_S)
    assert process.returncode == 0
    return [*lines, *rest.splitlines()]


def test_every_line_of_a_server_is_an_object(tmp_path: Path) -> None:
    tokens = tmp_path / "t.toml"
    tokens.write_text('[[token]]\nname = "mine"\ntoken = "SECRET"\n')
    lines = asked(["--log-format", "json", "--token-file", str(tokens)])
    assert not any("SECRET" in line for line in lines)
    events = [json.loads(line) for line in lines]
    assert {"http", "listening", "request"} <= {event["event"] for event in events}
    first, wrong, lost, commit = [event for event in events if event["event"] == "request"]
    assert first["id"].startswith("req-")  # the client's own is no plain word
    assert (first["face"], first["method"], first["path"]) == ("http", "POST", "/v1/completions")
    assert (first["status"], first["outcome"], first["finish_reason"]) == (
        200,
        "finished",
        "length",
    )
    assert (first["token"], first["model"], first["requests"]) == ("mine", "fake", 2)
    assert first["completion_tokens"] == 6
    assert first["took_s"] >= first["decode_s"] > 0
    assert (wrong["status"], lost["status"]) == (404, 404)
    assert (commit["id"], commit["face"], commit["kind"]) == ("mine/7", "grpc", "commit")
    assert (commit["status"], commit["token"]) == ("OK", "mine")


@pytest.mark.slow
def test_plain_lines_are_of_requests_only_if_asked_for() -> None:
    quiet = asked([])
    assert not any(" request " in line for line in quiet)
    told = asked(["--access-log", "--log-prompts"])
    requests = [line for line in told if " request " in line]
    assert len(requests) == 4
    assert 'prompt="SECRET words"' in requests[0]
    assert "face=grpc" in requests[3]


def test_prompts_need_a_line_to_be_in() -> None:
    code, said = refused("--log-prompts")
    assert (code, "--access-log" in said) == (2, True)
    code, said = refused("--log-format", "xml")
    assert code == 2


@pytest.mark.parametrize("form", [JSON, pytest.param(PLAIN, marks=pytest.mark.slow)])
def test_an_error_at_the_start_is_told_in_the_form(form: str) -> None:
    code, said = refused("--log-format", form, "--listen", "0.0.0.0:0")
    assert code == 2
    assert "no token is set" in (json.loads(said)["message"] if form == JSON else said)


class Sink(io.StringIO):
    """Where lines go. goes: whether they can be written now; else it stalls or is gone."""

    def __init__(self, is_gone: bool = False) -> None:
        super().__init__()
        self.is_gone, self.goes = is_gone, threading.Event()

    def write(self, text: str) -> int:
        if self.is_gone:
            raise BrokenPipeError
        self.goes.wait(BOUND_S)
        return super().write(text)


@pytest.mark.parametrize("is_threaded", [False, True])
def test_a_log_that_nobody_reads_any_more_fails_nothing(is_threaded: bool) -> None:
    log = Log(JSON, Sink(is_gone=True))
    if is_threaded:
        log.start()
    log.record("request", {"n": 1})
    log.tell("stop", "stopping")
    log.close()


def test_a_reader_that_stalls_holds_nobody_up_and_is_told_what_it_missed() -> None:
    sink = Sink()
    log = Log(JSON, sink)
    log.start()
    n = MAX_WAITING + 100
    for i in range(n):  # returns although nothing can be written
        log.record("request", {"n": i})
    sink.goes.set()
    until(lambda: "dropped" in sink.getvalue())
    log.close()
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    requests = [line["n"] for line in lines if line["event"] == "request"]
    assert requests == list(range(len(requests)))
    (dropped,) = [line["message"] for line in lines if line["event"] == "dropped"]
    assert dropped.startswith(f"{n - len(requests)} lines")
