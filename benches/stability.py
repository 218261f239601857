"""What a server withstands, at full count: the storms of `tests/storms`, their figures printed and
written to `benches/results/stability_NAME.json`.

    python -P benches/stability.py NAME [--n N]

docs/stability.md says what each shows. The exit status is 1 if something was not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from storms import abort, kills
from storms.harness import Server

RESULTS = Path(__file__).resolve().parent / "results"
Found = dict[str, Any]
Storm = Callable[[argparse.Namespace], tuple[Found, list[str]]]


def abort_storm(options: argparse.Namespace) -> tuple[Found, list[str]]:
    with Server("fake") as server:
        n = options.n or 100_000
        found = asyncio.run(abort.abort_storm(server, n, warm_up=min(n, 15_000)))
    return found, abort.problems(found)


def kill_storm(options: argparse.Namespace) -> tuple[Found, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        found = kills.kill_storm(Path(folder), options.n or 300)
    return found, kills.problems(found)


STORMS: dict[str, Storm] = {"abort": abort_storm, "kills": kill_storm}


def machine() -> Found:
    packages = ("grpcio", "aiohttp", "protobuf", "torch", "numpy")
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "others_load": round(os.getloadavg()[0], 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("storm", choices=list(STORMS))
    parser.add_argument("--n", type=int, help="requests, messages, kills or look-ups")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    before, start = machine(), time.monotonic()
    found, problems = STORMS[options.storm](options)
    took_s = round(time.monotonic() - start, 1)
    command = "python -P benches/stability.py " + " ".join(sys.argv[1:])
    whole = {"command": command, "machine": before, "took_s": took_s, **found}
    print(json.dumps(whole | {"problems": problems}, indent=1))
    out = options.out or RESULTS / f"stability_{options.storm}.json"
    out.write_text(json.dumps(whole | {"problems": problems}, indent=1) + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
