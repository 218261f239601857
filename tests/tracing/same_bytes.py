"""Programs whose files must be the same bytes everywhere: the examples, and some over budget."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import sgc
from sgc.ir.file.sgir import to_bytes
from sgc.passes.pipeline import optimize
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTS = Path(__file__).parents[1]
NAMES = (
    "chat", "essay_judge", "json_retry", "map_reduce", "react", "router", "self_consistency",
    "tip_suggestion", "tree_of_thought",
)  # fmt: skip
ASKED = "import json; from tracing.same_bytes import digests; print(json.dumps(digests()))"


@sgc.function
def accumulates(s, q: str):
    notes, n = [], 0
    s += q
    while True:
        s += "Note:" + sgc.gen("note", max_tokens=9, stop="\n")
        n += 1
        notes.append(s["note"])
        if s["note"].strip() == "done" or "end" in s["note"]:
            break
    s += "\n".join(notes) + f"\n{n} notes"


@sgc.function
def decides(s, a: str, b: str):
    text = f"{a}, {b}"[:40]
    for word in sorted({"red", "green", "blue"}):
        if word in text:
            s += f"{word}? " + sgc.gen(word, max_tokens=3)
            text = text.replace(word, s[word])
        else:
            s += "%-6s" % word + "{:>8}".format(text[-8:])  # noqa: UP031, UP032
    s += text


PROGRAMS = (*NAMES, "accumulates", "decides")


def digest(name: str) -> str:
    """SHA-256 of a program's file, in hex."""
    own = {"accumulates": accumulates, "decides": decides}
    function = own[name] if name in own else getattr(_module(name), name)
    graph = optimize(trace(function, budget=Budget(runs=40)))
    return hashlib.sha256(to_bytes(graph)).hexdigest()


def digests() -> dict[str, str]:
    return {name: digest(name) for name in PROGRAMS}


def digests_elsewhere(python: str, hash_seed: int) -> dict[str, str]:
    """What a process of its own gives, perhaps of another Python."""
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    env["PYTHONPATH"] = os.pathsep.join(map(str, (TESTS.parent, TESTS)))
    command = [python, "-P", "-c", ASKED]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
