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
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/support"))
sys.path.append(str(Path(__file__).resolve().parent / "engine"))

from attacks import discard
from storms import abort, attackers, fuzz, hostile, isolation, kills, overload, steady
from storms.harness import Server

MAX_WAITING = 64
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


def soak(options: argparse.Namespace) -> tuple[Found, list[str]]:
    """On the fake model and on the small one, side by side."""
    seconds = options.seconds or 1200.0
    with Server("fake") as fake, Server(None) as small:
        servers = {"fake": (fake, 40.0), "sgc-tiny": (small, 4.0)}
        found = asyncio.run(steady.soak(servers, seconds, warm_s=seconds / 5))
    return {"seconds": seconds, "servers": found}, steady.problems_of_soak(found)


def overloads(options: argparse.Namespace) -> tuple[Found, list[str]]:
    arguments = ("--max-context", "4096", "--pool-tokens", "40000")
    bounds = ("--max-running", "32", "--max-waiting", str(MAX_WAITING))
    seconds, found, said = options.seconds or 600.0, Found(), list[str]()
    for face in [options.face] if options.face else overload.FACES:
        with Server("fake", (*arguments, *bounds)) as server:
            storm = overload.overload(server, seconds, 12, max_tokens=128, face=face, fills=True)
            found[face] = asyncio.run(storm)
        problems = overload.problems_of_overload(found[face], MAX_WAITING)
        said += [f"{face}: {each}" for each in problems]
    return {"faces": found}, said


def isolation_of_tokens(options: argparse.Namespace) -> tuple[Found, list[str]]:
    tokens = isolation.names(200)
    n, n_timed = options.n or 100_000, 2000
    found: Found = {}
    large = ("--max-context", "4096", "--pool-tokens", "3000000")
    with Server("fake", large, tokens) as server:
        found["lookups"] = asyncio.run(isolation.lookups(server, tokens, n))
    for name, model, n_words in (("fake", "fake", 500), ("sgc-tiny", None, 60)):
        arguments = large if model else ("--max-context", "4096")
        with Server(model, arguments, tokens) as server:
            own = isolation.timings(server, tokens[0], tokens[0], 200, n_words)
            found[f"{name}, its own"] = asyncio.run(own)
            for face in ("gRPC", "HTTP"):
                others = isolation.timings(
                    server, tokens[0], tokens[1], n_timed, n_words, face == "HTTP"
                )
                found[f"{name}, {face}"] = asyncio.run(others)
    said = [f"{found['lookups']['hits']} hits"] if found["lookups"]["hits"] else []
    said += [
        f"{name} tells: {each['auc']}, {each['interval']}"
        for name, each in found.items()
        if name.endswith(("gRPC", "HTTP")) and isolation.tells(each)
    ]
    return found, said


def fuzz_of_messages(options: argparse.Namespace) -> tuple[Found, list[str]]:
    arguments = ("--max-context", "512", "--pool-tokens", "20000", "--check")
    with Server("program", arguments) as server:
        found = asyncio.run(fuzz.fuzz(server, options.n or 100_000))
    return found, fuzz.problems(found)


def hostile_clients(options: argparse.Namespace) -> tuple[Found, list[str]]:
    found: Found = {}
    with hostile.running(discard) as nowhere:
        for name in options.attacks or attackers.ATTACKS:
            tokens = ("right", "another") if name == "wrong tokens" else ()
            with Server("fake", tokens=tokens) as server:
                seconds = options.seconds or 10.0
                found[name] = hostile.hostile_storm(server, name, nowhere, 3, seconds)
                print(name, found[name]["ratio_of_p99"], flush=True)
    return {"attacks": found}, hostile.problems(found)


STORMS: dict[str, Storm] = {
    "hostile": hostile_clients,
    "fuzz": fuzz_of_messages,
    "abort": abort_storm,
    "kills": kill_storm,
    "isolation": isolation_of_tokens,
    "overload": overloads,
    "soak": soak,
}


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
    parser.add_argument("--face", choices=overload.FACES, help="of `overload`: this alone")
    parser.add_argument("--attacks", nargs="*", help="of `hostile`: these alone")
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
