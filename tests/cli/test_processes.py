"""The command as a process: pipes, interrupts, servers; help and version."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from cli.conftest import SGC, TIP
from tests_support import written
from waiting import BOUND_S

from sgc.programs.program import load


@pytest.mark.parametrize(
    "name", ["", "compile", "run", "dump", "explain", "verify", "serve", "top", "version"]
)
def test_help_is_there(sgc_command, name):
    code, out, _ = sgc_command(*filter(None, [name]), "--help")
    assert code == 0
    assert "Usage: sgc" in out


def test_version(sgc_command):
    assert sgc_command("version")[1].startswith("sgc 0.")
    assert sgc_command("--version")[1].startswith("sgc 0.")


def test_output_follows_links_and_writes_into_pipes(sgc_command, tmp_path):
    (tmp_path / "real.sgir").write_bytes(b"old")
    (tmp_path / "link.sgir").symlink_to("real.sgir")
    assert sgc_command("compile", TIP, "-o", "link.sgir")[0] == 0
    assert (tmp_path / "link.sgir").is_symlink()
    assert load(tmp_path / "real.sgir").name == "tip_suggestion"
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    assert sgc_command("compile", TIP, "-o", "pipe")[0] == 0
    reader.join(timeout=BOUND_S)
    assert found == [(tmp_path / "real.sgir").read_bytes()]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_serve_and_run_against_it(sgc_command, tip, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    serve = [*SGC, "serve", "--model", "fake", "--listen", "127.0.0.1:0", "--token-file", "token"]
    server = subprocess.Popen(serve, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        said, line = server.stderr.readline(), server.stderr.readline()
        assert said.startswith("fake: fake on cpu, context 32,768, KV pool ")
        assert line.startswith("listening on ")
        address = line.split()[-1].removeprefix("grpc://")
        run = ["run", "tip.sgir", "--arg", "topic=a", "--seed", "1", "--json"]
        run += ["--engine", f"grpc://{address}"]
        code, _, err = sgc_command(*run)
        assert code == 1
        assert "token" in err
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SGC_TOKEN", "secret")
            first, second = (json.loads(sgc_command(*run)[1]) for _ in range(2))
        assert first["text"] == second["text"]
        assert second["stats"]["computed_tokens"] == 5
    finally:
        server.terminate()
        assert server.wait(timeout=BOUND_S) == 0
        server.stderr.close()


def test_interrupt_ends_at_once_and_leaves_no_process(tmp_path):
    path = written(tmp_path, "import time\n@sgc.function\ndef p(s):\n    s += 'x' + sgc.gen('g')\n    print(s['g'], flush=True)\n    time.sleep(60)\n")  # fmt: skip
    run = [*SGC, "run", path, "--interpret", "--model", "fake"]
    child = subprocess.Popen(
        run, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline()
    engines = _children(child.pid)
    assert engines
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=BOUND_S)
    assert child.returncode == 130
    assert err.strip() == "sgc: interrupted"
    assert not [pid for pid in engines if Path(f"/proc/{pid}").exists() and _is_alive(pid)]


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(child) for child in path.read_text().split()]
    return found + [grandchild for child in found for grandchild in _children(child)]


def _is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_output_to_a_closed_pipe_is_quiet(tip):
    read, write = os.pipe()
    os.close(read)
    run = [*SGC, "dump", str(tip)]
    done = subprocess.run(run, stdout=write, stderr=subprocess.PIPE, check=False, timeout=BOUND_S)
    os.close(write)
    assert (done.stderr, done.returncode) == (b"", 141)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_ends_nothing(tip, on_fake, closed):
    run = [*SGC, "run", str(tip), "--arg", "topic=a", *on_fake, "-q"]
    command = f"exec {shlex.join(run)} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, timeout=BOUND_S)
    assert (done.returncode, done.stderr) == (0, b"")
