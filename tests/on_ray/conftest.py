"""A Ray of this machine's own, of two workers, for the tests of this folder (`make test-ray`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


@pytest.fixture(scope="session")
def ray() -> Iterator[object]:
    ray = pytest.importorskip("ray")
    from ray.data import DataContext

    before = os.environ.get("PYTHONPATH")
    # Workers have the environment that Ray is started in: they import tools by their modules.
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # Sockets are in it, so its path is short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ray.init(
            num_cpus=2, object_store_memory=200 << 20, include_dashboard=False, _temp_dir=folder,
            log_to_driver=False, logging_level="error",
        )  # fmt: skip
        context = DataContext.get_current()
        context.enable_progress_bars = False
        context.default_hash_shuffle_parallelism = 4  # else 200 tasks sort a few rows
        yield ray
        ray.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def processes() -> dict[int, tuple[int, str]]:
    """Every process's parent and command."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError, IndexError):
            continue  # it has ended
        found[int(folder.name)] = parent, command
    return found


def children(of: int) -> dict[int, str]:
    """The processes below one, and their commands."""
    every = processes()
    found: dict[int, str] = {}
    fresh = [of]
    while fresh:
        fresh = [pid for pid, (parent, _) in every.items() if parent in fresh]
        found |= {pid: every[pid][1] for pid in fresh}
    return found
