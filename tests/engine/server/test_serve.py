"""How a server starts, whom it lets in, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest
from waiting import BOUND_S, until

import sgc.errors
from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.runtime.engine.config import ServerConfig
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.logs.log import Log
from sgc.runtime.engine.process.child import python_module
from sgc.runtime.engine.serve import run_server
from sgc.runtime.engine.server.listen import (
    Address,
    Security,
    check_exposure,
    check_free,
    parse_address,
    read_security,
)
from sgc.runtime.engine.serving import _warn
from sgc.runtime.engine.text.template import PLAIN
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.engine.worker import process as worker_process
from sgc.runtime.executor.backends.engine.backend import EngineBackend

SERVE = python_module("sgc.runtime.engine.serve")


@contextmanager
def serving(*arguments: str, **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server and its address, stopped at the end if it still runs."""
    env = {**os.environ, **more}
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
    done = subprocess.run([*SERVE, "--model", "fake", *arguments], capture_output=True, text=True)
    return done.returncode, done.stderr


# What SIGTERM does without requests is also in test_drain.py.
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGINT]
)
def test_signal_stops_it_promptly_and_removes_the_socket(
    number: signal.Signals, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    begun = time.monotonic()
    with serving("--listen", f"unix:{path}") as (process, address):
        start_s = time.monotonic() - begun
        assert address == f"unix:{path}"
        assert path.is_socket()
        assert path.stat().st_mode & 0o777 == 0o600
        workers = _children(process.pid)
        assert workers
        begun = time.monotonic()
        process.send_signal(number)
        assert process.wait(BOUND_S) == 0
        assert time.monotonic() - begun < 2 * start_s  # which a busy machine draws out as much
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
    assert "not a socket" in said


def test_a_server_that_takes_its_time_to_answer_is_alive(tmp_path: Path) -> None:
    """Its queue of connections is full, so nothing is said; its socket is not ours to remove."""
    tmp_path.chmod(0o700)
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as busy, contextlib.ExitStack() as queue:
        busy.bind(str(path))
        busy.listen(0)
        with contextlib.suppress(BlockingIOError):
            for _ in range(8):
                waiting = queue.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(str(path))
        with pytest.raises(UsageError, match="another server listens"):
            check_free(Address(path=path))
        assert path.is_socket()


def test_a_server_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    listen = ("--listen", f"unix:{tmp_path / 's'}")
    with serving(*listen) as (process, _):
        process.kill()
        process.wait()
    assert (tmp_path / "s").is_socket()
    with serving(*listen) as (_, at):
        assert at.endswith("/s")


def test_a_socket_goes_where_others_cannot_replace_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with pytest.raises(UsageError, match="no such folder"):
        check_free(Address(path=folder / "s"))
    assert not folder.exists()
    folder.mkdir()
    for mode, is_allowed in ((0o700, True), (0o755, True), (0o1777, True), (0o777, False)):
        folder.chmod(mode)
        if is_allowed:
            check_free(Address(path=folder / "s"))
        else:
            with pytest.raises(UsageError, match="other users can change"):
                check_free(Address(path=folder / "s"))


def test_port_in_use_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = refused("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        port = taken.getsockname()[1]
    assert (code, said) == (2, f"error: port {port} on 127.0.0.1 is in use\n")


def test_mistakes_are_found_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worker_process, "spawn", None)
    (tmp_path / "text").write_text("hi")
    text = str(tmp_path / "text")
    for changes, words in (
        ({"tls_cert": text, "tls_key": text}, "text is not a PEM certificate"),
        ({"pool_tokens": 999999999999}, "--pool-tokens must be from 1 to 100000000"),
        ({"max_context": 10**12}, "--max-context must be from 1 to"),
        ({"listen": f"unix:{tmp_path / 'none' / 's'}"}, "no such folder"),
        ({"listen": f"unix:{text}"}, "exists and is not a socket"),
    ):
        config = {"model": "fake", "listen": f"unix:{tmp_path / 's'}", **changes}
        assert run_server(ServerConfig(**config)) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert words in said
        assert "Traceback" not in said


def test_end_tokens_outside_the_vocabulary_are_warned_of_once(
    shipped: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    _warn(Log(), PLAIN, shipped, 2048)
    assert capsys.readouterr().err == ""
    _warn(Log(), PLAIN, shipped, 2)
    assert capsys.readouterr().err.count("warning: end-of-sequence ids 2 are not in the voc") == 1


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
        async with EngineBackend(f"grpc://localhost:{port}") as backend:
            with pytest.raises(EngineUnavailable, match="it speaks TLS"):
                await backend.capabilities()
        monkeypatch.delenv("SGC_TLS_CA")
        async with EngineBackend(f"grpcs://localhost:{port}") as backend:
            with pytest.raises(EngineUnavailable, match="certificate is not trusted"):
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
    for text in ("", "80", "host:", ":80", "host:²", "unix:", "unix:/" + "x" * 120):
        with pytest.raises(UsageError):
            parse_address(text)
    for text in ("host:99999", "host:" + "9" * 5000):
        with pytest.raises(UsageError, match="a port is from 0 to 65535"):
            parse_address(text)


def test_security_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGC_TOKEN", raising=False)
    assert read_security(None, None, None) == Security()
    monkeypatch.setenv("SGC_TOKEN", "t")
    assert read_security(None, None, None).tokens.find(b"Bearer t") == b""
    (tmp_path / "empty").write_text("\n# nobody\n")
    for arguments in [
        (str(tmp_path / "empty"), None, None),
        (str(tmp_path / "none"), None, None),
        (None, "cert", None),
    ]:
        with pytest.raises(UsageError):
            read_security(*arguments)


def _runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def test_embedded_engine_ends_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import os, sys; from sgc.runtime.engine.launch import EmbeddedEngine;"
        "engine = EmbeddedEngine('fake').start(); print(engine.pid, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    pid = int(done.stdout)
    until(lambda: not _runs(pid))
    assert list(tmp_path.iterdir()) == []  # its socket's folder is gone too


def test_an_interrupt_while_loading_ends_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = EmbeddedEngine()
    interrupted: list[subprocess.Popen[bytes]] = []

    def interrupt(process: subprocess.Popen[bytes]) -> None:
        until(lambda: _children(process.pid))  # the step process, which loads torch
        interrupted.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_wait_ready", interrupt)
    with pytest.raises(KeyboardInterrupt):
        engine.start()
    assert interrupted[0].returncode == -signal.SIGKILL  # it was not waited for
    assert list(tmp_path.iterdir()) == []


def test_embedded_engine_leaves_nothing() -> None:
    begun = time.monotonic()
    engine = EmbeddedEngine("fake").start()
    start_s = time.monotonic() - begun
    folder, pid = engine._folder, engine.pid
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    begun = time.monotonic()
    engine.stop()
    assert time.monotonic() - begun < 2 * start_s
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


def test_children_run_this_very_copy_and_nothing_of_the_language(tmp_path: Path) -> None:
    """Wherever they are started, and whatever else is called sgc on the import path."""
    (tmp_path / "sgc").mkdir()
    (tmp_path / "sgc" / "__init__.py").write_text("raise ImportError('another sgc')")
    (tmp_path / "probe.py").write_text(
        "import sys, sgc.errors\nprint(sgc.errors.__file__, 'sgc.functions' in sys.modules)"
    )
    done = subprocess.run(
        python_module("probe"),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout.split() == [str(Path(sgc.errors.__file__).absolute()), "False"], done.stderr


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]
