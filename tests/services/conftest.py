"""A server with programs beside the fake model, started as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine.http.conftest import HttpEngine
from waiting import BOUND_S

import sgc
from sgc.cli.programs.source import load_function

TOKENS = ("alpha", "beta")


class Started:
    """A `sgc serve` process, once it listens."""

    def __init__(self, process: subprocess.Popen[str], uri: str) -> None:
        self.process, self.uri, self.stderr_tail = process, uri, ""
        assert process.stderr is not None
        for line in process.stderr:
            self.stderr_tail += line
            if line.startswith("listening on "):
                threading.Thread(target=self._read_rest, daemon=True).start()
                return
        raise AssertionError(self.stderr_tail)

    @property
    def said(self) -> str:
        return self.stderr_tail

    def _read_rest(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr_tail += line


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[HttpEngine]:
    socket = folder / "engine.sock"
    command = [sys.executable, "-P", "-m", "sgc", "serve", "--model", "fake", "--check",
               "--listen", f"unix:{socket}", "--http", "0", *options]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield HttpEngine(Started(process, f"unix:{socket}"))  # type: ignore[arg-type]
        process.terminate()
        assert process.wait(BOUND_S) == 0
    finally:
        process.kill()
        process.wait()


@sgc.function
def tip(s, topic: str, n: int = 3):
    s += "Tips for " + topic + ": " + sgc.gen("first", max_tokens=8, ignore_eos=True)
    forks = s.fork(2)
    forks += ["a ", "b "]
    forks += sgc.gen("more", max_tokens=n, ignore_eos=True)
    forks.join()
    return {"first": s["first"], "more": s["more"]}


@sgc.function
def chain(s, topic: str):
    s += topic
    for i in range(3):
        s += f" step {i}: " + sgc.gen(f"step{i}", max_tokens=4, ignore_eos=True)


@sgc.function
def endless(s, topic: str):
    s += topic + sgc.gen("long", max_tokens=30_000, ignore_eos=True)


@sgc.function
def fails(s, topic: str):
    s += topic + sgc.gen("x", max_tokens=2, ignore_eos=True)
    if s["x"] != "":
        raise ValueError("it is never empty")


@sgc.function
def odd(s, topic: str):
    """Returns what JSON has not."""
    s += topic + sgc.gen("x", max_tokens=2, ignore_eos=True)
    if topic == "a number":
        return float("inf")
    if topic == "a key":
        return {(1, 2): s["x"]}
    return chr(0xD800 + len(topic))


LOUD = """
import sgc

@sgc.tool
def shout(text: str) -> str:
    return text.upper()

@sgc.function
def loud(s, topic: str):
    s += shout(topic) + sgc.gen("said", max_tokens=2)
    return shout(s["said"])
"""
NAMES = ("tip", "chain", "endless", "fails", "loud", "odd")


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "loud.py").write_text(LOUD)
    for program in (tip, chain, endless, fails, odd, load_function(f"{folder}/loud.py")):
        program.compile(opt_level=1).save(folder / f"{program.name}.sgir")
    return folder


@pytest.fixture(scope="session")
def server(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpEngine]:
    programs = [f"--program={files / name}.sgir" for name in NAMES]
    options = [*programs, f"--program=other={files / 'tip.sgir'}", f"--tools={files / 'loud.py'}",
               "--max-programs", "2"]  # fmt: skip
    with serving(tmp_path_factory.mktemp("socket"), *options) as started:
        yield started
