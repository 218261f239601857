"""Who may import whom (docs/architecture.md), and what `import sgc` must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# folder -> prefixes of our own modules it may import; "sgc.errors" is open to all
ALLOWED = {
    "proto": ("sgc.proto",),
    "ir": ("sgc.ir", "sgc.proto"),
    "passes": ("sgc.passes", "sgc.ir"),
    "kernels": ("sgc.kernels",),
    "runtime/engine": ("sgc.runtime.engine", "sgc.kernels", "sgc.proto"),
    "runtime/executor": ("sgc.runtime.executor", "sgc.ir", "sgc.proto"),
}
HEAVY = ("torch", "transformers", "grpc", "aiohttp", "pydantic", "openai", "anthropic", "networkx")
FORBIDDEN = {"pickle", "dill", "marshal", "cloudpickle", "shelve"}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return found


def _sources(folder: str) -> list[Path]:
    return [p for p in (ROOT / folder).rglob("*.py") if not p.name.endswith("_pb2_grpc.py")]


@pytest.mark.parametrize("folder", ALLOWED)
def test_layers_point_one_way(folder):
    allowed = (*ALLOWED[folder], "sgc.errors")
    sources = _sources(folder)
    assert sources
    for path in sources:
        for name in _imports(path):
            root = name.partition(".")[0]
            assert root not in ("ir", "passes", "runtime", "kernels", "proto"), f"{path}: {name}"
            if root == "sgc":
                fits = any(name == prefix or name.startswith(prefix + ".") for prefix in allowed)
                assert fits, f"{path} imports {name}"


def test_nothing_unpickles_or_evaluates():
    for folder in ("sgc", "ir", "passes", "runtime", "kernels", "proto"):
        for path in _sources(folder):
            assert not FORBIDDEN & {n.partition(".")[0] for n in _imports(path)}, path
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    called = ast.unparse(node.func)
                    assert called not in ("eval", "exec", "torch.load"), f"{path}: {called}"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import sgc", HEAVY),
        ("import sgc.cli.commands", HEAVY),
        (
            "from sgc.cli.programs.source import load_function as f; "
            "f('examples/tip_suggestion.py').compile()",
            HEAVY[:-1],
        ),
    ],
)
def test_light_use_loads_nothing_heavy(code, heavy):
    program = f"{code}\nimport sys\nprint([m for m in {heavy!r} if m in sys.modules])"
    run = [sys.executable, "-P", "-c", program]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
