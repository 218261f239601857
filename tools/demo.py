"""The main job, end to end: compile a program to .sgir, then run it without its source.

Every line that begins with `$` is a command you can type yourself.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SGC = [sys.executable, "-P", "-m", "sgc"]
START_S = 120.0


def sgc(arguments: str, folder: Path) -> None:
    """Prints a command and runs it in `folder`; if it fails, ends the demo with its exit code."""
    print(f"\n$ sgc {arguments}", flush=True)
    code = subprocess.run([*SGC, *shlex.split(arguments)], cwd=folder, check=False).returncode
    if code != 0:
        raise SystemExit(code)


def start_engine(folder: Path) -> subprocess.Popen[bytes]:
    """Starts an engine on a socket in `folder` and waits until it says that it listens."""
    arguments = "serve --listen unix:engine.sock"
    print(f"\n$ sgc {arguments} &", flush=True)
    log = folder / "engine.log"
    with log.open("wb") as stderr:
        engine = subprocess.Popen([*SGC, *shlex.split(arguments)], cwd=folder, stderr=stderr)
    deadline = time.monotonic() + START_S
    while "listening on" not in log.read_text(encoding="utf-8", errors="replace"):
        if engine.poll() is not None or time.monotonic() > deadline:
            engine.kill()
            raise SystemExit(f"the engine did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    print(log.read_text(encoding="utf-8"), end="", flush=True)
    return engine


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sgc-demo-") as name:
        folder = Path(name)
        sgc(f"compile {ROOT / 'examples' / 'tip_suggestion.py'} -o tip.sgir", folder)
        sgc("dump tip.sgir", folder)
        engine = start_engine(folder)
        try:
            run = (
                "run tip.sgir --engine unix:engine.sock --arg topic='staying healthy' "
                "--temperature 0"
            )
            sgc(run, folder)
            print("\nThe same again: what the first run computed is cached.", flush=True)
            sgc(run, folder)
            print("\nAn agent with two tools, from its source:", flush=True)
            agent = ROOT / "examples" / "react.py"
            asked = "--arg question='What is 12 times 7?' --temperature 0"
            sgc(f"run {agent} --engine unix:engine.sock {asked}", folder)
            print(
                "\nThat was sgc-tiny, a model of 3.9 million parameters that knows a toy world. "
                "Name a real one with --model.",
                flush=True,
            )
        finally:
            engine.terminate()
            engine.wait(timeout=30)


if __name__ == "__main__":
    main()
