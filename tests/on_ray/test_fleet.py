"""Engines on Ray: equal results, engines that are killed, added and taken away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")

from on_ray.conftest import children
from on_ray.programs_on_ray import answer, rows

import sgc
from sgc.ray import Fleet
from sgc.ray.fleet import _tokens
from sgc.runtime.engine.server.accounts.token_files import read_tokens

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GIVEN = [{name: row[name] for name in ("document", "question")} for row in rows(60)]


def texts(backend: object) -> list[str]:
    states = answer.run_batch(GIVEN, backend=backend, temperature=0, seed=1)
    return [state.text() for state in states]


def until(is_true: Callable[[], Any], seconds: float = 240.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := is_true()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def test_engines_move_and_come_and_go(ray):
    with sgc.Runtime("fake") as one:
        alone = texts(one)
    with Fleet(2, "fake", num_cpus=0.5, pool_tokens=4096) as fleet:
        both = fleet.wait(2)
        with sgc.connect(",".join(each.uri for each in both)) as engines:
            assert texts(engines) == alone
            pids = ray.get(fleet.actors[0].pids.remote())
            os.kill(pids["engine"], signal.SIGKILL)
            assert texts(engines) == alone  # of the one that is left
        gone = both[0]
        found = until(lambda: len(now := fleet.look()) == 2 and gone not in now and now)
        assert both[1] in found  # it has not moved
        fleet.scale(3)
        assert len(fleet.wait(3)) == 3
        fleet.scale(1)
        assert fleet.look() == [found[0]]
        with sgc.connect(found[0].uri) as engine:
            assert texts(engine) == alone
    served = "engine.serve --model fake --listen 127.0.0.1:0"  # those of datasets have sockets
    until(lambda: not [told for told in children(os.getpid()).values() if served in told])


def test_engines_elsewhere_want_a_token(ray, monkeypatch):
    """Another node is told by its id, so another id of home makes this node one."""
    monkeypatch.setattr("sgc.ray.fleet._home", lambda: "another node")
    with Fleet(1, "fake", num_cpus=0.5) as fleet:
        (found,) = fleet.wait()
        assert not found.uri.startswith("grpc://127.0.0.1")
        assert fleet.token not in repr(fleet._asked)
        with pytest.raises(sgc.SgcError), sgc.connect(found.uri) as engine:
            engine.get_model_name()
        with sgc.connect(found.uri, fleet.token) as engine:
            assert engine.get_model_name() == "fake"


def test_an_engine_that_cannot_start_is_told(ray):
    told: list[str] = []
    with (
        Fleet(2, "no/such/model", num_cpus=0.5, tell=told.append) as fleet,
        pytest.raises(sgc.SgcError, match="no/such/model"),
    ):
        fleet.wait()
    assert "is tried again in 1 s" in told[0]
    with Fleet(1, "fake", num_cpus=64) as fleet, pytest.raises(sgc.SgcError, match="0 of 1"):
        fleet.wait(timeout_s=2)


@pytest.mark.parametrize("name", ["tokens", "tokens.toml"])
def test_engines_take_the_tokens_of_clients_and_of_the_router(tmp_path, name):
    file = tmp_path / name
    is_toml = name.endswith("toml")
    file.write_text('[[token]]\nname = "a"\ntoken = "theirs-0123456789"' if is_toml
                    else "# clients\ntheirs-0123456789")  # fmt: skip
    text, written, is_open = _tokens(file, "own-0123456789-0123456789")
    tokens = read_tokens(text.encode(), written)
    assert len(tokens) == 2
    assert not is_open
    for each in ("theirs-0123456789", "own-0123456789-0123456789"):
        assert tokens.caller_of(f"Bearer {each}".encode())


class Command:
    """`sgc serve --ray`, with a Ray of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        environment = {n: v for n, v in os.environ.items() if n != "RAY_ADDRESS"}
        command = [sys.executable, "-P", "-m", "sgc", "serve", "--model", "fake", *options]
        command += ["--ray-cpus", "0.5", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0"]
        self.said = folder / "said"
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                command, stderr=said, stdout=said, env=environment | {"RAY_TMPDIR": str(folder)}
            )
        self.url = until(self._url)
        line = next(each for each in self.said.read_text().splitlines() if "routes to" in each)
        self.uri = next(each for each in line.split() if each.startswith("grpc://"))

    def _url(self) -> str:
        text = self.said.read_text()
        assert self.process.poll() is None, text
        return text.partition(" routes to ")[0].rpartition(" ")[2] if " routes to " in text else ""

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}") as found:
            return json.load(found)

    def ask(self) -> str:
        body = json.dumps({"model": "fake", "prompt": "hello", "max_tokens": 4, "temperature": 0})
        request = urllib.request.Request(
            f"{self.url}/v1/completions", body.encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as found:
            return json.load(found)["choices"][0]["text"]

    def engines(self) -> list[str]:
        return [row["url"] for row in self.get("/route")["engines"]]


def test_the_command_serves_all_engines_at_one_address(tmp_path, ray):
    """An engine and its actor are killed; a number in a file adds one."""
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        number = tmp_path / "n"
        number.write_text("2\n")
        command = Command(Path(folder), "--ray", str(number))
        try:
            now = until(lambda: len(urls := command.engines()) == 2 and urls)
            text = command.ask()
            with sgc.Runtime("fake") as one:
                alone = texts(one)
            with sgc.connect(command.uri) as engines:
                assert texts(engines) == alone
            for name in ("engine.serve", "ray::EngineActor"):
                before, below = now, children(command.process.pid)
                os.kill(next(pid for pid, told in below.items() if name in told), signal.SIGKILL)
                with sgc.connect(command.uri) as engines:
                    assert texts(engines) == alone
                for _ in range(10):
                    assert command.ask() == text
                now = until(lambda: len(urls := command.engines()) == 2 and urls != before and urls)  # noqa: B023
            number.write_text("3\n")
            until(lambda: len(command.engines()) == 3)
            assert command.ask() == text
            assert set(now) & set(command.engines())
            below = children(command.process.pid)
        finally:
            command.process.terminate()
            command.process.wait(60)
    every = {pid for pid in below if Path(f"/proc/{pid}").exists()}
    until(lambda: not {pid for pid in every if Path(f"/proc/{pid}").exists()})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--ray", "none"], "no number, and no file that has one"),
        (["--ray", "0"], "expected a number from 1"),
        (["--ray", "2", "--metrics", "9"], "--metrics is not for engines on Ray"),
        (["--ray-cpus", "2"], "are for --ray N"),
        (["--ray", "1", "--ray-address", "127.0.0.1:9"], "cannot be reached"),
    ],
)
def test_mistakes_of_the_command(options, told):
    command = [sys.executable, "-P", "-m", "sgc", "serve", "--model", "fake", *options]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2, found.stderr
    assert told in found.stderr
