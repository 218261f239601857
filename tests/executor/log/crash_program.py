"""Runs a program that is killed at a chosen point, again and again: see test_crash_resume.py.

A process that has imported everything, and forks a child for each order it reads from stdin. The
child kills itself, as `kill -9` would, when it comes to its point number `kill_at`: before, inside
and after every write to the log, every generation and every effect.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path

import sgc
from sgc.errors import UnknownOutcome
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.log import file as log_file
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.loop import shared

UNKNOWN, N_POINTS = 3, itertools.count()
ORDER: dict = {}


def point() -> None:
    if next(N_POINTS) == ORDER["kill_at"]:
        os.kill(os.getpid(), signal.SIGKILL)


def append(path: str, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (line + "\n").encode())
    os.close(fd)


def write_in_pieces(fd: int, data: bytes, at: int, write=os.pwrite) -> int:
    point()
    n_bytes = write(fd, data[: len(data) // 2 + 1], at)
    point()
    return n_bytes


class Asked(ScriptedBackend):
    """Writes down what is asked before it answers."""

    async def generate(self, prompt, sampling, on_delta=None):
        text = "".join(segment.text for segment in prompt)
        append(ORDER["asked"], json.dumps([text, sampling.seed]))
        point()
        return await super().generate(prompt, sampling, on_delta)


def effect(what: str) -> int:
    point()
    append(ORDER["effects"], what)
    point()
    return 0  # what a call that was skipped gives


@sgc.tool
def pay(who: str) -> int:
    return effect(f"pay {who}")


@sgc.tool
async def send(text: str, *, to: list) -> int:
    return effect(f"send {text} {to}")


@sgc.tool(effect="idempotent")
def store(text: str) -> str:
    return f"<{text}>"


@sgc.function
def agent(s, q: str):
    s += "Q: " + q + sgc.gen("a")
    pay(s["a"])
    s += store(s["a"]) + sgc.gen("b", n=2)
    group = s.fork(2)
    group += lambda i: f" {i}:"
    group += sgc.gen("c")
    s["sent"] = send(group[0]["c"], to=[group[1]["c"], 1])
    s += sgc.select("d", ["x", "yy"]) + sgc.gen("e")
    s += f"{s['sent']} {pay(s['e'])}"


def run() -> None:
    """One attempt, in a child: to its end, or to its point."""
    log_file.os = type("os", (), {**vars(os), "pwrite": staticmethod(write_in_pieces)})
    endpoint = Endpoint(Asked(lambda prompt, sampling: f"r{sampling.seed % 9973}"))
    with RunLog.open(ORDER["log"], ORDER["on_unknown"]) as log:
        options = sgc.runs.options.make_options({"log": log, "seed": 3})
        if ORDER["is_compiled"]:
            program = sgc.load(ORDER["program"], allow_tools=[pay, send, store])
        else:
            program = agent
        text = program.run_once({"q": "why"}, options, endpoint).text()
    Path(ORDER["text"]).write_text(f"{text}\n{next(N_POINTS)}")


def attempt() -> int:
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        except UnknownOutcome:
            os._exit(UNKNOWN)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    if sys.argv[1:]:
        agent.compile().save(sys.argv[1])
        return
    assert shared._loop is None, "nothing runs yet that a child would be without"
    for line in sys.stdin:
        ORDER.update(json.loads(line))
        print(attempt(), flush=True)


main()
