"""Runs what needs no torch on every Python that is listed, and compares what they compile.

Run from the repository's root: `make test-pythons`. A Python is found by its name on PATH or under
pyenv; a missing one is reported, and is an error only with `--all`. Each has its own environment
under `.venv-pythons`, with the versions of constraints.txt.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venv-pythons"
EXTRAS = ("grpc", "http", "types")
TOOLS = ("hypothesis", "pytest", "pytest-timeout")
# What depends on the Python: bytecode, frames, converted source and snapshots of paths, how many
# refer to an object, places of instructions, names in code and how sets are kept. What forks,
# attributes, lists, pieces, texts, and matches, which become `if`s, do once they are read from
# these is the same on each, and `same_bytes` compares the programs of the golden files.
CONTROL_FLOW = (
    "called_values", "calls", "generators", "handlers", "in_expressions", "loops", "names",
)  # fmt: skip
TESTS = (
    "tests/ir/test_golden.py", "tests/programs/test_jit_reads.py",
    *(f"tests/tracing/control_flow/test_{name}.py" for name in CONTROL_FLOW),
    "tests/tracing/pieces/test_pieces.py::test_an_error_of_a_piece_is_pythons",
    *(
        f"tests/tracing/pieces/test_deleted_items.py::test_what_is_not_at_once_is_refused[{body}]"
        for body in ("while_it_is_gone_over-True", "of_an_own_class-False")
    ),
    "tests/tracing/pieces/test_changed_around_refused.py",
    "tests/tracing/pieces/test_changed_sets.py::test_a_set_has_its_order_in_each_node",
    "tests/executor/code/test_set_table.py",
    "tests/tracing/test_bytecode.py", "tests/tracing/test_convert.py",
)  # fmt: skip


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def listed() -> list[str]:
    """The versions that pyproject.toml lists, such as `3.11`, in order."""
    names = project()["classifiers"]
    versions = [name.rpartition(" ")[2] for name in names if "Python :: 3." in name]
    return sorted(versions, key=lambda version: int(version.split(".")[1]))


def find(version: str) -> str | None:
    """The path of a Python of that version that starts; None if there is none."""
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    patterns = [f"{root}/versions/{version}.*/bin/python" for root in roots if root]
    under_pyenv = [path for pattern in patterns for path in glob.glob(pattern)]
    for path in [*under_pyenv, shutil.which(f"python{version}")]:
        if path and says(path) == version:
            return path
    return None


def says(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def environment(version: str, python: str) -> Path:
    """The environment of a version, made again if its requirements have changed."""
    folder = VENVS / version
    made_from = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    stamp = hashlib.sha256(b"".join([*made_from, repr((EXTRAS, TOOLS)).encode()])).hexdigest()
    if (folder / "made").is_file() and (folder / "made").read_text() == stamp:
        return folder
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
    # This environment's pip, for a pip of its own takes as long as half of the packages. What tests
    # import is compiled when it is imported.
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "-q", "install"]
    pip += ["--disable-pip-version-check", "--no-compile"]
    extras = project()["optional-dependencies"]
    needed = [*project()["dependencies"], *(each for name in EXTRAS for each in extras[name])]
    subprocess.run([*pip, "-c", "constraints.txt", *needed, *TOOLS], check=True, cwd=ROOT)
    (folder / "made").write_text(stamp)
    return folder


def run(version: str, python: str, tests: list[str]) -> tuple[bool, str]:
    start = time.monotonic()
    try:
        folder = environment(version, python)
    except subprocess.CalledProcessError as error:
        return False, f"Python {version}: could not be set up: {error}"
    installed = time.monotonic()
    command = [str(folder / "bin/python"), "-m", "pytest", "-m", "not slow and not engine", *tests]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)
    took = f"{installed - start:.0f} s to set up, {time.monotonic() - installed:.0f} s of tests"
    last = done.stdout.strip().splitlines()[-1:] or [done.stderr.strip()]
    shown = f"Python {version}: {last[0]} ({took})"
    return done.returncode == 0, shown if done.returncode == 0 else f"{shown}\n{done.stdout}"


def same_bytes(pythons: list[str]) -> bool:
    """Whether the same programs compile to the same files on all Pythons."""
    sys.path.insert(0, str(ROOT / "tests"))
    from tracing.same_bytes import digests_elsewhere

    with ThreadPoolExecutor() as pool:
        found = list(pool.map(digests_elsewhere, pythons, range(len(pythons))))
    different = [name for name in found[0] if len({each[name] for each in found}) > 1]
    print(f"{len(found[0])} programs compiled by {len(pythons)} Pythons, ", end="")
    print(f"different files: {', '.join(different)}" if different else "to the same bytes")
    return not different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="a listed Python not found is an error")
    parser.add_argument("--too", action="store_true", help="the Python that runs this one too")
    parser.add_argument("tests", nargs="*", default=list(TESTS))
    options = parser.parse_args()
    own = "%d.%d" % sys.version_info[:2]  # noqa: UP031
    wanted = [version for version in listed() if options.too or version != own]
    found = {version: path for version in wanted if (path := find(version)) is not None}
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda v: run(v, found[v], options.tests), found))
    for _, shown in results:
        print(shown)
    is_same = same_bytes([sys.executable, *(str(VENVS / v / "bin/python") for v in found)])
    missing = [version for version in wanted if version not in found]
    for version in missing:
        print(f"Python {version}: not found (PATH, pyenv)")
    is_green = is_same and all(ok for ok, _ in results)
    sys.exit(not is_green or (options.all and bool(missing)))


if __name__ == "__main__":
    main()
