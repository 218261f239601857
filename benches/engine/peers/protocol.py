"""The protocol between the harness and the driver of a peer: JSON lines.

A driver is started with the model's folder and its options. It loads the model, prints one line
{"load_s", "versions"}, then replies to each command, a line of its stdin, with one line.

    {"kind": "chats", "chats": [[{"ids", "n_out"}…]…], "is_primed": false}
    {"kind": "arrivals", "programs": [as in arrivals.py…]}
    {"kind": "program", "program": "essay_judge", "texts": […], "select": "score"}

The reply: {"wall_s", "n_generated", "n_prompt", "n_cached" or null, "first_ids"}, or {"error"}.
Generation is greedy, ignores the end token and has exact lengths. This module imports only the
standard library, since every peer's own Python imports it. Other output of a peer goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

sys.path.append(str(Path(__file__).resolve().parent.parent))  # texts, programs_asyncio

Chats = list[list[dict[str, Any]]]


@dataclass
class Tally:
    """Sums over the turns, and the first generated id of each chat."""

    n_generated: int = 0
    n_prompt: int = 0
    n_cached: int | None = 0
    first_ids: list[int] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def add(self, n_prompt: int, n_generated: int, n_cached: int | None) -> None:
        self.n_prompt += n_prompt
        self.n_generated += n_generated
        if self.n_cached is not None:
            self.n_cached = None if n_cached is None else self.n_cached + n_cached


class Peer(Protocol):
    """The interface of a driver."""

    packages: tuple[str, ...]

    def run_chats(self, chats: Chats) -> Tally: ...

    def run_arrivals(self, programs: list[dict[str, Any]]) -> Tally: ...

    def run_program(self, program: str, texts: list[str], select: str) -> Tally: ...

    def close(self) -> None: ...


def serve(load: Callable[[str, dict[str, Any]], Peer]) -> None:
    """The main function of every driver."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--options", type=json.loads, default={})
    arguments = parser.parse_args()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output goes to stderr
    started = time.perf_counter()
    peer = load(arguments.model, arguments.options)
    loaded = {"load_s": time.perf_counter() - started, "versions": versions(peer.packages)}
    print(json.dumps(loaded), file=out)
    try:
        for line in sys.stdin:
            print(json.dumps(_answer(peer, json.loads(line))), file=out)
    finally:
        peer.close()


def _answer(peer: Peer, command: dict[str, Any]) -> dict[str, Any]:
    started, cpu = time.perf_counter(), os.times()
    try:
        tally = _run(peer, command)
    except Exception as error:  # fails only this command; the harness reports it
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    wall_s, after = time.perf_counter() - started, os.times()
    return {
        "wall_s": wall_s,
        "driver_cpu_s": after.user + after.system - cpu.user - cpu.system,
        "n_generated": tally.n_generated,
        "n_prompt": tally.n_prompt,
        "n_cached": tally.n_cached,
        "first_ids": tally.first_ids,
        **tally.extra,
    }


def _run(peer: Peer, command: dict[str, Any]) -> Tally:
    if command["kind"] == "program":
        return peer.run_program(command["program"], command["texts"], command["select"])
    if command["kind"] == "arrivals":
        return peer.run_arrivals(command["programs"])
    chats = command["chats"]
    if not command.get("is_primed") or len(chats) == 1:
        return peer.run_chats(chats)
    first, rest = peer.run_chats(chats[:1]), peer.run_chats(chats[1:])
    rest.add(first.n_prompt, first.n_generated, first.n_cached)
    rest.first_ids = first.first_ids + rest.first_ids
    return rest


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found
