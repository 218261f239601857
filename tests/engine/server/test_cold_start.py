"""What a first answer costs: which modules each of the three processes has imported for it.

Counts, not times: `benches/cold_start.py` measures those.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sgc.runtime.engine.process.child import python_module

# Each process that finds this on its import path tells, when it is signalled, what it imported.
SITE = """
import os, signal, sys
def tell(number, frame):
    path = os.environ["TOLD"] + f"/{os.getpid()}"
    with open(path + ".new", "w") as file:
        file.write(" ".join(sys.modules))
    os.rename(path + ".new", path)
signal.signal(signal.SIGUSR1, tell)
"""
CLIENT = """
import sys, sgc
@sgc.function
def ask(s):
    s += "Hello" + sgc.gen("word", max_tokens=2, temperature=0)
print(len(ask.run(backend=sgc.Runtime())["word"]), flush=True)
sys.stdin.read()
"""
LIMIT_S = 60.0


@dataclass(frozen=True)
class Imported:
    client: frozenset[str]
    server: frozenset[str]
    step: frozenset[str]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    """The modules of each process after the default model's first answer."""
    folder = tmp_path_factory.mktemp("cold")
    told = folder / "told"
    told.mkdir()
    (folder / "sitecustomize.py").write_text(SITE)
    (folder / "client.py").write_text(CLIENT)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    client = subprocess.Popen(
        [sys.executable, "-P", str(folder / "client.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "TOLD": str(told)},
    )
    try:
        assert client.stdout is not None
        assert int(client.stdout.readline()) > 0
        (server,) = _children(client.pid)
        (step,) = _children(server)
        yield Imported(*(_ask(pid, told) for pid in (client.pid, server, step)))
    finally:
        assert client.stdin is not None
        client.stdin.close()
        client.wait(LIMIT_S)


def _children(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _ask(pid: int, told: Path) -> frozenset[str]:
    os.kill(pid, signal.SIGUSR1)
    deadline = time.monotonic() + LIMIT_S
    while not (told / str(pid)).exists():
        assert time.monotonic() < deadline, f"process {pid} does not tell"
        time.sleep(0.01)
    return frozenset((told / str(pid)).read_text().split())


def test_nobody_imports_transformers(imported: Imported) -> None:
    for modules in (imported.client, imported.server, imported.step):
        assert not {m for m in modules if m.partition(".")[0] in ("transformers", "accelerate")}


def test_the_client_and_the_server_do_no_numerics(imported: Imported) -> None:
    for modules in (imported.client, imported.server):
        assert not {"torch", "numpy", "safetensors", "jinja2", "opentelemetry"} & modules
    assert "grpc" in imported.client & imported.server


def test_the_step_process_has_nothing_of_the_network_nor_of_compilers(imported: Imported) -> None:
    assert {"torch", "sgc.runtime.engine.model.ways"} <= imported.step
    unused = {"grpc", "llguidance", "aiohttp", "sympy", "networkx", "scipy", "pandas", "torch.onnx",
              "torch._dynamo", "torch._inductor", "torch.distributed.tensor"}  # fmt: skip
    assert unused & imported.step == set()


def test_the_engine_has_nothing_of_the_language(imported: Imported) -> None:
    """`sgc/__init__.py` is not run there."""
    language = {
        "sgc.programs.function",
        "sgc.core.session",
        "sgc.tracing",
        "sgc.ir",
        "sgc.runtime.executor",
    }
    assert language - {"sgc.tracing"} <= imported.client
    assert not language & (imported.server | imported.step)


def test_how_many_modules_each_imports(imported: Imported) -> None:
    """474, 351 and 485 with Python 3.11; far more of them have come in unseen."""
    assert len(imported.client) < 520
    assert len(imported.server) < 450
    assert len([m for m in imported.step if m.partition(".")[0] != "torch"]) < 600


SPAWN = """
import os, sys
from sgc.runtime.engine import serve
from sgc.runtime.engine.worker import process
def spawn(config, is_heard):
    print(*sys.modules, flush=True)
    os._exit(0)
process.spawn = spawn
serve.main(["--listen", f"unix:{sys.argv[1]}"])
"""


def test_the_server_imports_next_to_nothing_before_it_starts_the_step_process(
    tmp_path: Path,
) -> None:
    (tmp_path / "spawn.py").write_text(SPAWN)
    done = subprocess.run(
        [*python_module("spawn"), str(tmp_path / "socket")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    modules = set(done.stdout.split())
    assert "sgc.runtime.engine.model.models" in modules, done.stderr
    late = {"asyncio", "grpc", "tokenizers", "google.protobuf", "ssl", "numpy", "torch", "ctypes"}
    assert not late & modules
    assert len(modules) < 200
