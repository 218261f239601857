"""Who may import whom (docs/architecture.md), and what `import sgc` must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
from repository.rooms import ROOT, code, imports, modules, room_of, rooms

# folder -> prefixes of our own modules it may import; "sgc.errors" is open to all
ALLOWED = {
    "proto": ("sgc.proto",),
    "ir": ("sgc.ir", "sgc.proto"),
    "passes": ("sgc.passes", "sgc.ir"),
    "kernels": ("sgc.kernels",),
    "runtime/telemetry": ("sgc.runtime.telemetry",),
    "runtime/engine": ("sgc.runtime.engine", "sgc.kernels", "sgc.proto", "sgc.runtime.telemetry"),
    "runtime/executor": ("sgc.runtime.executor", "sgc.ir", "sgc.proto", "sgc.runtime.telemetry"),
}
HEAVY = (
    "torch",
    "transformers",
    "grpc",
    "aiohttp",
    "pydantic",
    "openai",
    "anthropic",
    "ray",
    "networkx",
)
FORBIDDEN = {"pickle", "dill", "marshal", "cloudpickle", "shelve"}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in code(path).imports:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
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


def test_every_module_has_a_room():
    bare = {name for name, path in modules().items() if room_of(name) is None}
    assert not [name for name in bare if modules()[name].read_text()], "no row of the table has it"
    in_use = {room_of(name) for name in modules()}
    assert [room for room in rooms() if room not in in_use and room != "proto/"] == []


def test_every_import_of_ours_exists():
    """mypy takes a module that is not there for one without types."""
    ours = set(modules())
    wanted = {name for path in modules().values() for name in _imports(path)}
    missing = {name for name in wanted if name.partition(".")[0] == "sgc"} - ours
    assert {name for name in missing if not name.startswith("sgc.proto")} == set()


def test_no_import_points_up():
    floor = {room: number for number, room in enumerate(rooms())}
    up = []
    for importing, imported in imports().edges:
        here, there = room_of(importing), room_of(imported)
        if here is not None and there is not None and floor[there] < floor[here]:
            up.append(f"{importing} imports {imported}: {there} is above {here}")
    assert not up, "\n".join(sorted(up))


def test_no_modules_import_each_other_in_a_circle():
    circles = [sorted(each) for each in nx.strongly_connected_components(imports())]
    assert [each for each in circles if len(each) > 1] == []


def test_no_room_is_crowded():
    files = Counter(path.parent for path in modules().values())
    crowded = {folder.relative_to(ROOT).as_posix(): n for folder, n in files.items() if n > 16}
    assert crowded == {}


def test_nothing_unpickles_or_evaluates():
    for folder in ("sgc", "ir", "passes", "runtime", "kernels", "proto"):
        for path in _sources(folder):
            assert not FORBIDDEN & {n.partition(".")[0] for n in _imports(path)}, path
            assert not {"eval", "exec", "torch.load"} & code(path).called, path


def test_the_command_starts_without_the_compiler_and_the_executor():
    """`sgc --help` and completion import what they show; programs bring the rest."""
    program = (
        "import click, sys, sgc\nfrom sgc.cli.main import cli\n"
        "print(len(cli.get_help(click.Context(cli))) > 500)\n"
        "print([m for m in sys.modules if m.startswith(('sgc.runtime.executor', 'sgc.tracing', "
        "'sgc.passes', 'sgc.ir', 'sgc.lang', 'asyncio', 'rich'))])"
    )
    run = [sys.executable, "-P", "-c", program]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "[]"]


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import sgc; sgc.gen", HEAVY),
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
