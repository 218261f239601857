"""The peers that `peers.py` measures, the tasks of a repetition, and the cases of a task."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import models
from shapes import SHAPES, Shape, chats
from texts import rows

OURS = "sgc"
N_VARIANTS = 2  # of a peer's cases of a task
PROBE = Shape(n_chats=1, n_turns=1, n_shared=0, n_own=32, n_out=1)


@dataclass(frozen=True, slots=True)
class Peer:
    """variable: the environment variable that names its Python, None for this one; ways_to_select:
    None if it runs no programs; options: of its driver; rival: the engine of ours that it is
    compared with, if that runs; is_usual: whether it runs if no peers are named.
    """

    name: str
    driver: str
    variable: str | None
    ways_to_select: tuple[str, ...] | None = ("score",)
    wants_priming: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    rival: str = OURS
    is_usual: bool = True

    @property
    def python(self) -> str | None:
        return os.environ.get(self.variable) if self.variable else sys.executable


def _ours(name: str, *flags: str) -> Peer:
    return Peer(name, "sgc_engine.py", None, options={"serve": list(flags)}, is_usual=False)


INT8 = f"{OURS}-int8"
LLAMA = Peer("llama.cpp", "llama_cpp_engine.py", "SGC_PEER_LLAMA_CPP", None)
STREAMS = {"unified": False, "n_context": 40_960}
PEERS = [
    Peer(OURS, "sgc_engine.py", None),
    _ours(INT8, "--weights", "int8"),
    _ours(f"{OURS}-int8-kv", "--weights", "int8", "--kv", "int8"),
    _ours(f"{OURS}-deterministic", "--deterministic"),
    _ours(f"{OURS}-no-lookup", "--no-lookup"),
    Peer("vllm", "vllm_engine.py", "SGC_PEER_VLLM", ("score", "first")),
    Peer("openvino", "openvino_engine.py", "SGC_PEER_OPENVINO", ("choice",), wants_priming=True),
    LLAMA,
    replace(LLAMA, name="llama.cpp-streams", options=STREAMS, is_usual=False),
    replace(LLAMA, name="llama.cpp-q8", options={"kind": "q8_0"}, rival=INT8, is_usual=False),
    Peer("transformers", "transformers_engine.py", None, None),
]


@dataclass(frozen=True, slots=True)
class Task:
    """A workload of one repetition. amount: its size in the unit.

    command: makes the command for a driver. A peer with two cases gets another variant of the
    prompts in the second, since its cache holds those of the first.
    """

    name: str
    command: Callable[[int], dict[str, Any]]
    unit: str
    amount: float
    is_program: bool


@dataclass(frozen=True, slots=True)
class Case:
    """A peer, with the options of a command; the name is for the report. n_busy: processes that
    keep a core each busy meanwhile."""

    name: str
    peer: str
    variant: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    n_busy: int = 0

    def pair(self, n_busy: int, rep: int) -> list[Case]:
        """The case alone and beside busy processes, which of them is first in turn; the case, if
        there are to be none."""
        if n_busy == 0:
            return [self]
        name, variant = beside(self.name), self.variant + N_VARIANTS
        both = [self, replace(self, name=name, variant=variant, n_busy=n_busy)]
        return both[:: -1 if rep % 2 else 1]


def beside(name: str) -> str:
    """The name of a case beside busy processes."""
    return f"{name} beside"


def tasks(
    workloads: Sequence[str], programs: Sequence[str], model: str, rep: int,
    n_rows: int, divisor: int,
) -> list[Task]:  # fmt: skip
    """The tasks of a repetition, whose prompts depend on its number."""
    found = []
    for index, workload in enumerate(workloads):
        if workload == "W5":
            found += [_program(name, 1000 * index + rep + 100, n_rows) for name in programs]
            continue
        shape = SHAPES[workload].made_smaller(divisor)
        found.append(_chats(workload, shape, vocab_size(model), [index, rep + 100]))
    return found


def _chats(name: str, shape: Shape, vocab_size: int, seed: list[int]) -> Task:
    def command(variant: int) -> dict[str, Any]:
        return {"kind": "chats", "chats": chats(shape, vocab_size, [*seed, variant])}

    return Task(name, command, "tok/s", shape.n_generated, is_program=False)


def _program(name: str, seed: int, n_rows: int) -> Task:
    def command(variant: int) -> dict[str, Any]:
        texts = rows(name, seed + 100_000 * variant, n_rows)
        return {"kind": "program", "program": name, "texts": texts}

    return Task(name, command, "rows/s", n_rows, is_program=True)


def cases(task: Task, running: Sequence[str]) -> list[Case]:
    """The cases of a task for the running peers."""
    found = []
    for peer in PEERS:
        if peer.name not in running:
            continue
        if not task.is_program:
            found.append(Case(peer.name, peer.name))
            if peer.wants_priming and task.name == "W1":
                found.append(Case(f"{peer.name} primed", peer.name, 1, {"is_primed": True}))
        elif peer.ways_to_select:
            found += _program_cases(task, peer.name, peer.ways_to_select)
    return found


def _program_cases(task: Task, peer: str, ways: tuple[str, ...]) -> list[Case]:
    if "select" not in task.name:
        return [Case(peer, peer, 0, {"select": ways[0]})]
    return [
        Case(peer if way == "score" else f"{peer} {way}", peer, variant, {"select": way})
        for variant, way in enumerate(ways)
    ]


def probe(model: str) -> dict[str, Any]:
    """The first command of a driver: one token after a short prompt."""
    return {"kind": "chats", "chats": chats(PROBE, vocab_size(model), [99])}


def vocab_size(model: str) -> int:
    size: int = models.SPECS[model]["vocab_size"]
    return size
