"""Two engines of one model as one: texts, work, and one that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

import sgc
from sgc.proto import programs_pb2
from sgc.proto.programs_pb2_grpc import ProgramsStub
from sgc.runs.endpoints import Engines, Runtime, connect
from sgc.runtime.executor.backends.engine.backend import EngineBackend

pytestmark = pytest.mark.slow


@sgc.function
def steps(s, subject: str):
    s += "A long beginning that all rows of a group share. " * 6 + subject[0]
    s += subject + sgc.gen("one", max_tokens=24)
    s += " and " + sgc.gen("two", max_tokens=24)
    s += " so " + sgc.gen("three", max_tokens=24)


ROWS = [{"subject": f"{n % 4} subject {n}"} for n in range(120)]
OPTIONS = {"temperature": 0, "seed": 1}


def texts(backend: object) -> list[str]:
    return [each.text() for each in steps.run_batch(ROWS, backend=backend, **OPTIONS)]


class Server:
    """`sgc serve` of the fake model, on a socket."""

    def __init__(self, path: Path, *options: str) -> None:
        self.uri = f"unix:{path}"
        command = [sys.executable, "-P", "-m", "sgc", "serve", "--model", "fake"]
        self.process = subprocess.Popen(
            [*command, "--listen", self.uri, *options], start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with connect(self.uri) as endpoint:
            until = time.monotonic() + 60
            while True:
                try:
                    endpoint.get_model_name()
                    return
                except sgc.SgcError:
                    assert time.monotonic() < until
                    time.sleep(0.1)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    made = [Server(tmp_path / f"{name}.sock") for name in "ab"]
    yield made
    for each in made:
        if each.process.poll() is None:
            each.kill()


def test_texts_are_those_of_one_engine_and_both_work(servers):
    with Runtime("fake") as one:
        alone = texts(one)
    with Engines([each.uri for each in servers]) as engines:
        assert texts(engines) == alone
        each_computed = [m.held for m in engines.backend._shared.router.members]
    assert all(map(len, each_computed))


def test_a_killed_engine_costs_no_row_and_is_used_again(servers, tmp_path):
    with Runtime("fake") as one:
        alone = texts(one)
    with Engines([each.uri for each in servers]) as engines:
        threading.Timer(0.3, servers[1].kill).start()
        assert texts(engines) == alone
        servers[1].process.wait()
        assert texts(engines) == alone
        servers[1] = Server(tmp_path / "b.sock")
        time.sleep(1)
        member = engines.backend._shared.router.members[1]
        until = time.monotonic() + 30
        while not len(member.held):
            assert time.monotonic() < until
            assert texts(engines) == alone


class Router:
    """`sgc route` on a socket, to the engines that a file names."""

    def __init__(self, folder: Path, *servers: Server) -> None:
        self.uri, self.file = f"unix:{folder}/router.sock", folder / "engines"
        self.name(*servers)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sgc", "route", "--engines", str(self.file), "--grpc",
             self.uri, "--listen", "127.0.0.1:0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 60
        while not (folder / "router.sock").exists():
            assert time.monotonic() < until
            time.sleep(0.1)

    def name(self, *servers: Server) -> None:
        self.file.write_text("\n".join(each.uri for each in servers))


def n_requests(server: Server) -> int:
    async def asked() -> int:
        engine = EngineBackend(server.uri)
        stats = await engine.stats()
        await engine.close()
        return stats.requests

    return asyncio.run(asked())


def test_one_address_for_both_loses_no_row_and_takes_one_that_is_added(servers, tmp_path):
    with Runtime("fake") as one:
        alone = texts(one)
    router = Router(tmp_path, *servers)
    try:
        with connect(router.uri) as engines:
            assert texts(engines) == alone
            assert all(n_requests(each) > 100 for each in servers)
            threading.Timer(0.3, servers[1].kill).start()
            assert texts(engines) == alone
            servers[1].process.wait()
            servers.append(Server(tmp_path / "c.sock"))
            router.name(servers[0], servers[2])
            time.sleep(3)  # it looks once a second
            assert texts(engines) == alone
            assert n_requests(servers[2]) > 100
            engines.flush_cache()
    finally:
        router.process.terminate()
        router.process.wait(30)


def results(uri: str, rows: list[dict[str, str]] = ROWS[:60]) -> list[str]:
    """Of runs of the program, all at once, at an address: a connection has 64 calls at most."""
    with grpc.insecure_channel(uri) as channel:
        run = ProgramsStub(channel).RunProgram
        calls = [
            run(programs_pb2.ProgramCall(program="steps", arguments=json.dumps(row),
                                         options=json.dumps(OPTIONS)))
            for row in rows
        ]  # fmt: skip
        return [json.loads(event.result)["text"] for call in calls for event in call]


def test_programs_that_engines_run_are_run_elsewhere_if_one_is_killed(tmp_path):
    steps.compile().save(tmp_path / "steps.sgir")
    options = (f"--program={tmp_path / 'steps.sgir'}", "--http", "0")
    servers = [Server(tmp_path / f"{name}.sock", *options) for name in "ab"]
    router = Router(tmp_path, *servers)
    try:
        alone = results(servers[0].uri)
        assert len(alone) == 60
        before = n_requests(servers[1])
        assert results(router.uri) == alone
        assert n_requests(servers[1]) > before + 30
        threading.Timer(0.3, servers[1].kill).start()
        assert results(router.uri) == alone
        servers[1].process.wait()
        assert results(router.uri) == alone
    finally:
        router.process.terminate()
        router.process.wait(30)
        for each in servers:
            if each.process.poll() is None:
                each.kill()
