"""Running a page's blocks in a folder: within this process, or as a user's shell does."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from page_blocks import Block, blocks_of, fits, shortened, typed_in

import sgc
from sgc.cli import main
from sgc.cli.running import run as run_command
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import RemoteEngine, Runtime

ROOT = Path(__file__).resolve().parents[2]
MOST_S = 120.0
BLESS = os.environ.get("SGC_BLESS") == "1"
_SERVER = re.compile(r"^(sgc|python -m sgc) (serve|route)\b")
_READY = re.compile(r"listening on| routes to ")
_SHELL = re.compile(r"[|<>;&*$`~]")
_PORT = re.compile(r"\b(?:30\d{3}|80\d\d|9464)\b(?=[/#\s\",)`]|$)")
_COMMENT = re.compile(r"\s+# .*$")

# Runs a command in a folder: its exit code, and what it printed.
Run = Callable[[str, Path], tuple[int, str]]


def run_page(page: Path, folder: Path, run: Run, servers: Servers) -> None:
    """Runs the blocks of a page in order; the first that does not do what it says is an error."""
    names: dict[str, Any] = {"__name__": "page", "sgc": sgc}
    ports = Ports()
    blessed: list[tuple[str, str]] = []
    for block in blocks_of(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if not block.runs:
            continue
        text = ports.mapped(block.text)
        if block.title is not None:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif block.language == "python":
            _execute(text, folder / f"block_{block.line}.py", names, where)
        elif block.language == "console":
            blessed += _console(block, page, folder, run, ports)
        else:
            for command in _commands(text):
                if _SERVER.match(command):
                    servers.start(command, folder, where, ports.mapped("127.0.0.1:30100"))
                    continue
                code, printed = run(command, folder)
                assert code == block.exits, f"{where}: {command}\nexit code {code}\n{printed}"
    if blessed:
        said = page.read_text(encoding="utf-8")
        for before, after in blessed:
            said = said.replace(before, after, 1)
        page.write_text(said, encoding="utf-8")


def _console(
    block: Block, page: Path, folder: Path, run: Run, ports: Ports
) -> list[tuple[str, str]]:
    blessed = []
    for typed in typed_in(block):
        command = ports.mapped(typed.command)
        code, printed = run(command, folder)
        where = f"{page.relative_to(ROOT)}:{typed.line}: $ {typed.command}"
        assert code == block.exits, f"{where}\nexit code {code}\n{printed}"
        if fits(ports.mapped(typed.expected), printed):
            continue
        shown = f"$ {typed.command}\n"
        assert BLESS, f"{where}\nprinted:\n{printed}\nexpected:\n{typed.expected}"
        blessed.append((shown + typed.expected, shown + shortened(printed)))
    return blessed


def _execute(text: str, path: Path, names: dict[str, Any], where: str) -> None:
    # The source of a traced function must be found in a file.
    path.write_text(text, encoding="utf-8")
    with contextlib.chdir(path.parent):
        try:
            exec(compile(text, str(path), "exec"), names)
        except Exception as error:
            raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error


def _commands(script: str) -> Iterator[str]:
    """The commands of a script: a line each, unless it goes on or opens what a later one closes."""
    waiting = ""
    for line in script.splitlines():
        waiting += _COMMENT.sub("", line)
        if waiting.endswith("\\") or _is_open(waiting):
            waiting += "\n"
            continue
        if waiting.strip() and not waiting.lstrip().startswith("#"):
            yield waiting
        waiting = ""
    assert not waiting.strip(), f"the command does not end: {waiting}"


def _is_open(command: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode != 0 or (
        "<<" in command and not re.search(r"<<\s*'?(\w+)'?.*\n\1\s*\Z", command, re.DOTALL)
    )


class Within:
    """Runs commands within this process, where they are `sgc` or a script.

    running: gives the engine of a model, None for the one that ships, and None if there is none.
    """

    def __init__(self, running: Callable[[str | None], Runtime | None]) -> None:
        self.running = running

    def __call__(self, command: str, folder: Path) -> tuple[int, str]:
        first, pipe, rest = command.partition(" | ")
        words = shlex.split(first, comments=True) if not _SHELL.search(first) else [""]
        if words[0] not in ("sgc", "python") or words[1] == "-m":
            return in_shell()(command, folder)
        with contextlib.chdir(folder):
            code, printed = self._inside(words)
        return in_shell(printed)(rest, folder) if pipe else (code, printed)

    def _inside(self, words: list[str]) -> tuple[int, str]:
        written = io.BytesIO()
        stream = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
        code: Any = 0
        modules = set(sys.modules)
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            try:
                if words[0] == "sgc":
                    with mock.patch.object(run_command, "Runtime", self._started):
                        main(words[1:])
                else:
                    self._script(words[1:])
            except SystemExit as ended:
                code = ended.code or 0
        for name in sys.modules.keys() - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(Path.cwd())):
                del sys.modules[name]
        return code, written.getvalue().decode("utf-8")

    def _started(self, model: str | None, **how: Any) -> Endpoint:
        """The engine, in place of a new one of the same model."""
        engine = None if any(how.values()) else self.running(model)
        if engine is None:
            return Runtime(model, **how)
        engine.flush_cache()
        return RemoteEngine(engine._engine.uri)

    def _script(self, words: list[str]) -> None:
        before, path = sys.argv, list(sys.path)
        sys.argv, sys.path[:0] = words, [str(Path.cwd())]
        try:
            runpy.run_path(words[0], run_name="__main__")
        finally:
            sys.argv, sys.path[:] = before, path


def in_shell(given: str = "") -> Run:
    """Runs commands as a user's shell does, with the `sgc` of this Python, on a text."""

    def run(command: str, folder: Path) -> tuple[int, str]:
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as taken:
            taken.write(given.encode("utf-8"))
            taken.seek(0)
            running = subprocess.Popen(
                ["bash", "-c", command], cwd=folder, env=_surroundings(folder),
                stdin=taken, stdout=printed, stderr=printed, start_new_session=True,
            )  # fmt: skip
            try:
                code = running.wait(timeout=MOST_S)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                code = running.wait()
            printed.seek(0)
            return code, printed.read().decode("utf-8", "replace")

    return run


def _surroundings(folder: Path) -> dict[str, str]:
    tools = folder.parent / "commands"
    tools.mkdir(exist_ok=True)
    for name, words in {"sgc": "-P -m sgc", "python": ""}.items():
        script = tools / name
        if not script.exists():
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            script.chmod(0o755)
    path = f"{tools}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Compiled kernels are found where they are; whatever else a page keeps at home is thrown away.
    kept = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = {"HOME": str(folder.parent), "XDG_CACHE_HOME": kept}
    return {**os.environ, **home, "PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1",
            "HF_HUB_OFFLINE": "1"}  # fmt: skip


class Ports:
    """Free ports for those that a page names."""

    def __init__(self) -> None:
        self._by_name: dict[str, str] = {}

    def mapped(self, text: str) -> str:
        return _PORT.sub(lambda found: self._free(found[0]), text)

    def _free(self, port: str) -> str:
        if port not in self._by_name:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._by_name[port] = str(free.getsockname()[1])
        return self._by_name[port]


class Servers:
    """Servers that a page starts; they end with it."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, command: str, folder: Path, where: str, listen: str) -> None:
        """Starts a server, and waits until it is ready. listen: where, if it names nothing."""
        log = folder.parent / f"server_{len(self._running)}.log"
        command = command.rstrip().removesuffix("&")
        if "serve" in command and "--listen" not in command:
            command += f" --listen {listen if not self._running else 'unix:another.sock'}"
        with log.open("wb") as out:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=folder, env=_surroundings(folder),
                stdout=out, stderr=out,
            )  # fmt: skip
        self._running.append(server)
        deadline = time.monotonic() + MOST_S
        while not _READY.search(said := log.read_text("utf-8", "replace")):
            assert server.poll() is None, f"{where}: {command} ended:\n{said}"
            assert time.monotonic() < deadline, f"{where}: {command} does not listen:\n{said}"
            time.sleep(0.05)

    def close(self) -> None:
        for server in self._running:
            server.terminate()
        for server in self._running:
            server.wait(timeout=60)
