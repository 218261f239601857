"""SGLang's helpers that start, await and end its own server.

The stand-in does not include SGLang's server. If the real package is installed beside sgc, its
server runs as a process of its own; else starting a server is an error that says what to do.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from importlib.machinery import PathFinder
from typing import Any

from sgc.errors import EngineUnavailable, UsageError

END_TIMEOUT_S = 10.0
POLL_S = 0.5


def launch_server_cmd(
    command: str, host: str = "0.0.0.0", port: int | None = None
) -> tuple[subprocess.Popen[str], int]:
    """Starts a server by its command line and a `--port`; returns the process and the port.

    Raises UsageError if the command is SGLang's server and SGLang is not installed.
    """
    words = shlex.split(command)
    if any(word.partition(".")[0] == "sglang" for word in words):
        _require_sglang()
    port = _free_port(host) if port is None else port
    argv = [*words, "--port", str(port)]
    return subprocess.Popen(argv, text=True, start_new_session=True), port


def popen_launch_server(
    model: str,
    base_url: str,
    timeout: float,
    api_key: str | None = None,
    other_args: Any = (),
    env: dict[str, str] | None = None,
    **_: Any,
) -> subprocess.Popen[str]:
    """Starts SGLang's server for a test and waits until it answers."""
    _require_sglang()
    host, _colon, port = base_url.partition("://")[2].rpartition(":")
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", model]
    argv += ["--host", host, "--port", port, *map(str, other_args)]
    argv += [] if api_key is None else ["--api-key", api_key]
    process = subprocess.Popen(argv, text=True, start_new_session=True, env=env)
    try:
        wait_for_server(base_url, timeout)
    except BaseException:
        kill_process_tree(process.pid)
        raise
    return process


def wait_for_server(base_url: str, timeout: float | None = None) -> None:
    """Waits until a server answers; raises EngineUnavailable after `timeout` seconds."""
    deadline = None if not timeout else time.monotonic() + timeout
    while not _answers(base_url):
        if deadline is not None and time.monotonic() > deadline:
            raise EngineUnavailable(f"no server answered at {base_url} within {timeout:g} s")
        time.sleep(POLL_S)


def terminate_process(process: subprocess.Popen[Any]) -> None:
    """Ends a process that `launch_server_cmd` started, and its children."""
    kill_process_tree(process.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT_S)


def kill_process_tree(parent_pid: int, include_parent: bool = True, **_: Any) -> None:
    """Ends a process started here, with the process group that it leads."""
    if not include_parent:
        raise UsageError("kill_process_tree ends children together with their parent only")
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(parent_pid) == parent_pid:
            os.killpg(parent_pid, signal.SIGKILL)
        else:
            os.kill(parent_pid, signal.SIGKILL)


def _answers(base_url: str) -> bool:
    for path in ("health", "get_model_info"):
        try:
            with urllib.request.urlopen(f"{base_url.rstrip('/')}/{path}", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            continue
    return False


def _require_sglang() -> None:
    if PathFinder.find_spec("sglang") is None:
        raise UsageError(
            "this starts SGLang's own server, and SGLang is not installed",
            hint="start a server yourself and give its address to sgl.RuntimeEndpoint, or use "
            "sgl.Runtime(model_path=…), an engine of sgc's",
        )


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
