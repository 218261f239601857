"""Jobs of rows on a backend of this process: the command, its files, and what they have."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sgc.errors import SgcError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import Generated, Usage

PROGRAM = """
import sgc

@sgc.function
def note(s, text: str, stars: int = 3):
    s += text + ":" + sgc.gen("first", max_tokens=8) + " then" + sgc.gen("second", max_tokens=8)
    return stars
"""
COMMAND = ("run", "note.py", "--no-check", "--engine", "here")


class Counting(ScriptedBackend):
    """Counts its requests. fails: the error of a prompt, if it is to fail; dollars: of each.
    waits: prompts that wait until nothing else is done on the loop for a while."""

    def __init__(self) -> None:
        super().__init__(lambda prompt, sampling: f" {len(prompt[0].text)} of {sampling.seed}")
        self.n_asked = 0
        self.dollars: float | None = None
        self.fails: Callable[[str], SgcError | None] = lambda text: None
        self.waits: Callable[[str], bool] = lambda text: False

    async def generate(self, prompt: Any, sampling: Any, on_delta: Any = None) -> Generated:
        self.n_asked += 1
        text = "".join(each.text for each in prompt)
        while self.waits(text):
            n_before = self.n_asked
            for _ in range(500):
                await asyncio.sleep(0)
            if self.n_asked == n_before:
                break
        if (error := self.fails(text)) is not None:
            raise error
        reply = await super().generate(prompt, sampling, on_delta)
        return replace(reply, usage=Usage(10, 5, 5, 3, cost_usd=self.dollars))


def endpoint(backend: Counting) -> Callable[..., Endpoint]:
    return lambda *_, **__: Endpoint(backend)


def write_rows(path: str | Path, n: int, key: str = "r", **more: Any) -> list[dict[str, Any]]:
    rows = [{"custom_id": f"{key}{i}", "text": f"text {i}", **more} for i in range(n)]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def read_out(path: str | Path) -> list[dict[str, Any]]:
    """Records, without what differs from run to run."""
    text = Path(path).read_text()
    if str(path).endswith(".csv"):
        return [
            {k: v for k, v in row.items() if k == "key" or v}
            for row in csv.DictReader(text.splitlines(True))
        ]
    return [json.loads(line) for line in text.splitlines()]


def by_key(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Records by their keys, each of which is there once."""
    found = {record["key"]: record for record in records}
    assert len(found) == len(records)
    return found
