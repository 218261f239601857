"""How a server starts, whom it lets in, and how it stops."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.runtime.engine.child import environment, python_module
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.listen import (
    Address,
    Security,
    check_exposure,
    parse_address,
    read_security,
)
from sgc.runtime.executor.engine_backend import EngineBackend

SERVE = python_module("sgc.runtime.engine.serve")


@contextmanager
def serving(*arguments: str, **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and its address, stopped at the end if it still runs."""
    env = {**environment(), **more}
    process = subprocess.Popen(
        [*SERVE, "--model", "fake", *arguments], stderr=subprocess.PIPE, text=True, env=env
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.match(r"listening on (\S+)", line)
        assert found, line + process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.wait()


def refused(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [*SERVE, "--model", "fake", *arguments], capture_output=True, text=True, env=environment()
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_it_promptly_and_removes_the_socket(
    number: signal.Signals, tmp_path: Path
) -> None:
    path = tmp_path / "private" / "s"
    with serving("--listen", f"unix:{path}") as (process, address):
        assert address == f"unix:{path}"
        assert path.is_socket()
        assert path.parent.stat().st_mode & 0o077 == 0
        workers = _children(process.pid)
        assert workers
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(5) == 0
        assert time.monotonic() - started < 3
        assert not path.exists()
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_socket_left_behind_is_replaced_but_nothing_else_is(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(folder / "s"))
    left.close()
    with serving("--listen", f"unix:{folder / 's'}"):
        code, said = refused("--listen", f"unix:{folder / 's'}")
        assert (code, "another server listens" in said) == (2, True)
        assert (folder / "s").is_socket()
    (folder / "file").write_text("mine")
    code, said = refused("--listen", f"unix:{folder / 'file'}")
    assert (code, (folder / "file").read_text()) == (2, "mine")
    assert "no socket" in said
    folder.chmod(0o755)
    code, said = refused("--listen", f"unix:{folder / 's'}")
    assert (code, "open to other users" in said) == (2, True)


def test_port_in_use_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = refused("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert code == 2
    assert "cannot listen" in said


def test_token_is_asked_of_every_call_but_health(tmp_path: Path) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async def main(address: str) -> None:
        for token in ("wrong", "", "secret "):
            async with EngineBackend(f"grpc://{address}", token=token) as backend:
                with pytest.raises(BackendError, match="SGC_TOKEN") as caught:
                    await backend.capabilities()
                assert not isinstance(caught.value, EngineUnavailable)
        async with EngineBackend(f"grpc://{address}", token="secret") as backend:
            assert (await backend.capabilities()).model == "fake"
        async with grpc.aio.insecure_channel(address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            await health.Check(health_pb2.HealthCheckRequest())
            call = channel.stream_stream("/sgc.engine.v1.Engine/Session")()
            assert await call.code() is grpc.StatusCode.UNAUTHENTICATED

    (tmp_path / "token").write_text("secret\n")
    with serving("--listen", "127.0.0.1:0", "--token-file", str(tmp_path / "token")) as (_, at):
        asyncio.run(main(at))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, cert = str(tmp_path / "key"), str(tmp_path / "cert")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    extension = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert]
    subprocess.run([*command.split(), *extension], check=True, capture_output=True)

    async def main(address: str) -> None:
        port = address.rpartition(":")[2]
        async with EngineBackend(f"grpcs://localhost:{port}") as backend:
            assert (await backend.capabilities()).model == "fake"
        async with EngineBackend(f"grpc://localhost:{port}", connect_timeout_s=0.5) as backend:
            with pytest.raises(EngineUnavailable):
                await backend.capabilities()

    monkeypatch.setenv("SGC_TLS_CA", cert)
    with serving("--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key) as (_, at):
        asyncio.run(main(at))


def test_outside_addresses_need_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(UsageError, match="token"):
            check_exposure(Address(host, 1), Security())
        check_exposure(Address(host, 1), Security("secret"))
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        check_exposure(Address(host, 1), Security())
    code, said = refused("--listen", "0.0.0.0:0")
    assert code == 2
    assert "no token is set" in said


def test_addresses() -> None:
    assert parse_address("127.0.0.1:80") == Address("127.0.0.1", 80)
    assert parse_address("[::1]:0") == Address("::1", 0)
    assert parse_address("unix:/a/b") == Address(path=Path("/a/b"))
    for text in ("", "80", "host:", ":80", "host:99999", "unix:", "unix:/" + "x" * 120):
        with pytest.raises(UsageError):
            parse_address(text)


def test_security_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGC_TOKEN", raising=False)
    assert read_security(None, None, None) == Security()
    monkeypatch.setenv("SGC_TOKEN", "t")
    assert read_security(None, None, None).token == "t"
    (tmp_path / "empty").write_text("\n")
    for arguments in [
        (str(tmp_path / "empty"), None, None),
        (str(tmp_path / "none"), None, None),
        (None, "cert", None),
    ]:
        with pytest.raises(UsageError):
            read_security(*arguments)


def test_embedded_engine_ends_with_its_parent() -> None:
    code = (
        "import os, sys; from sgc.runtime.engine.launch import EmbeddedEngine;"
        "engine = EmbeddedEngine('fake').start(); print(engine.pid, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=environment()
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_embedded_engine_leaves_nothing() -> None:
    engine = EmbeddedEngine("fake").start()
    folder, pid = engine._folder, engine.pid
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    started = time.monotonic()
    engine.stop()
    assert time.monotonic() - started < 3
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()
    engine.stop()


def test_startup_failures_carry_what_the_child_said() -> None:
    with pytest.raises(EngineUnavailable, match="no model folder at /no/such/model") as caught:
        EmbeddedEngine("/no/such/model").start()
    assert "exit status 1" in str(caught.value)
    engine = EmbeddedEngine("fake", start_timeout_s=0.05)
    with pytest.raises(EngineUnavailable, match=r"did not start within 0\.05 s"):
        engine.start()
    assert not engine.is_running


def test_async_embedded_engine() -> None:
    async def main() -> None:
        async with EmbeddedEngine("fake") as engine, EngineBackend(engine.uri) as backend:
            assert (await backend.stats()).requests == 0

    asyncio.run(main())


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]
