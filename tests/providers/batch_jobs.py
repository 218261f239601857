"""Jobs by batches on a scripted provider, in this process or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from providers.batch_server import BatchServer
from providers.conftest import KEY
from providers.provider_server import Fault

from sgc.cli import main

CHILD = Path(__file__).with_name("batch_child.py")
MODELS = {"openai": "openai:gpt-4o", "anthropic": "anthropic:claude-haiku-4-5"}
# Both forks ask the same, and so do all rows at the end: draws must not be mixed up.
PROGRAM = """
import sgc

@sgc.function
def tri(s, topic: str):
    s += sgc.user("A title for " + topic) + sgc.assistant(sgc.gen("title", max_tokens=8))
    forks = s.fork(2)
    for fork in forks:
        fork += sgc.user("A number") + sgc.assistant(sgc.gen("part", max_tokens=8))
    with s.user():
        s += "Join " + forks[0]["part"] + " and " + forks[1]["part"]
    s += sgc.assistant(sgc.gen("end", max_tokens=8))
    return s["end"]
"""
STAGES = (1, 2, 1)  # requests of a row
N_ROWS = 6
ONE = """
import sgc

@sgc.function
def tri(s, topic: str):
    s += sgc.user("A title for " + topic) + sgc.assistant(sgc.gen("title", max_tokens=8))
"""

BUSY = Fault("status", 429, {"retry-after-ms": "20"})
BROKEN, CUT = Fault("status", 500), Fault("cut")


@dataclass(frozen=True)
class Ended:
    """How a job ended: its code, its lines on stderr, and its results by row."""

    code: int
    err: str
    rows: dict[str, Any]


class Folder:
    """A program and its rows. environ: of commands that run them on a server."""

    def __init__(self, folder: Path, n_rows: int, program: str = PROGRAM) -> None:
        self.path = folder
        (folder / "prog.py").write_text(program)
        rows = [json.dumps({"custom_id": f"r{n}", "topic": f"tea {n}"}) for n in range(n_rows)]
        (folder / "rows.jsonl").write_text("\n".join(rows))

    def argv(self, model: str, *more: str, out: str = "out") -> list[str]:
        return ["run", str(self.path / "prog.py"), "--rows", str(self.path / "rows.jsonl"),
                "--engine", MODELS.get(model, model), "--out", str(self.path / f"{out}.jsonl"),
                "--resume", str(self.path / f"{out}.log"), "--progress", "none",
                *more]  # fmt: skip

    def results(self, out: str = "out") -> dict[str, Any]:
        path = self.path / f"{out}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        assert len({each["key"] for each in found}) == len(found), "a row came twice"
        return {each["key"]: each for each in found}

    def child(
        self, server: BatchServer, model: str, *more: str, **environ: str
    ) -> subprocess.Popen[str]:
        environ = {**os.environ, **environ_of(server), **environ}
        return subprocess.Popen(
            [sys.executable, str(CHILD), *self.argv(model, "--batch", *more)],
            env=environ, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


def environ_of(server: BatchServer) -> Mapping[str, str]:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url + "/v1",
            "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}  # fmt: skip


def run_here(
    folder: Folder, capsys: Any, model: str, *more: str, out: str = "out", by_batch: bool = True
) -> Ended:
    argv = folder.argv(model, *more, *(["--batch"] if by_batch else []), out=out)
    with pytest.raises(SystemExit) as ended:
        main(argv)
    err = capsys.readouterr().err
    return Ended(int(ended.value.code or 0), err, folder.results(out))


def plain(rows):
    """Rows without what they cost."""
    return {key: {k: v for k, v in row.items() if k != "usage"} for key, row in rows.items()}


def sizes(server):
    return [len(batch.requests) for batch in server.batches.values()]


def faults(step, *kinds):
    """The faults of the first times that a step is made, before it or after it."""
    left = list(kinds)

    def fault(name, when):
        if name == step and left and left[0][0] == when:
            return left.pop(0)[1]
        return None

    return fault
