"""Shared by the benches of constrained generation: servers, their processes, reports.

Import it as `generation.serving`, with the folder `benches` on the path.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "engine"))

import bars  # noqa: F401  # other benches import it from here
import models
from peer_process import PAGE_MB, tree
from peers import machine

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.token_bytes import token_bytes
from sgc.runtime.engine.text.tokenizer import Tokenizer, load_tokenizer

PACKAGES = ("llguidance", "jsonschema", "numpy", "torch", "transformers")
WORKER = "sgc.runtime.engine.worker.main"


def model_folder(name: str, folder: Path) -> Path:
    """The folder of `default`, S or M, which is made if it does not exist."""
    return DEFAULT_FOLDER if name == "default" else models.make(name, folder)


def tokenizer_of(name: str, folder: Path) -> Tokenizer:
    """The tokenizer of a model's server."""
    return load_tokenizer(model_folder(name, folder))


def engine(name: str, options: argparse.Namespace, *arguments: str) -> EmbeddedEngine:
    """A server of a model, not yet started."""
    threads = ["--threads", str(options.threads)] if options.threads else []
    return EmbeddedEngine(str(model_folder(name, options.folder)), [*threads, *arguments])


def worker_pid(running: EmbeddedEngine) -> int:
    """The step process of a server."""
    assert running.pid is not None
    return next(pid for pid in tree(running.pid) if WORKER in _command(pid))


def rss_mb(pid: int) -> float:
    """The resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MB


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")


def text_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Each token's own text, with escapes for bytes that are not valid text."""
    table = token_bytes(tokenizer)
    assert table is not None
    return [table[i].decode("utf-8", "backslashreplace") for i in ids]


def common_arguments(doc: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """The options of every bench; defaults: further options with their defaults."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench_models"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, help="of the model; fewer on a busy machine")
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return parser


def report(script: str, options: argparse.Namespace, **found: Any) -> dict[str, Any]:
    """The report of a run: its command, the machine, the versions and the results."""
    return {
        "command": " ".join([f"python -P benches/generation/{script}.py", *_shown(options)]),
        "machine": machine(),
        "versions": {
            "python": sys.version.split()[0],
            **{each: version(each) for each in PACKAGES},
        },
        **found,
    }


def _shown(options: argparse.Namespace) -> Iterator[str]:
    """The options, without those that depend on the machine."""
    for name, value in vars(options).items():
        if name in ("folder", "out") or value is None or value is False:
            continue
        yield f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")


def save(path: Path, found: dict[str, Any]) -> None:
    """Writes a report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
