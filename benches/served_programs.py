"""Programs run beside the cache against the same programs run by their client, over a slow network.

    python -P benches/served_programs.py [--delays 1,50] [--reps 3] [--out FILE.json]

All examples, greedy, on the default model: `sgc serve --program`, asked over HTTP, in turn with the
client that runs the program itself and asks the same server over gRPC. A proxy between them holds
each byte back for half of the delay, both ways, so a message and its reply take the delay. Rows one
after the other, on connections that are open; both ways must give the same texts. seconds: of a
row, the median of all rows; requests: of a row, commits included.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "passes"))
sys.path.append(str(Path(__file__).resolve().parent / "engine"))

from peers import machine
from workloads import Workload, workloads

from sgc.programs.program import Program, load
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.run.options import RunOptions

OPTIONS = {"seed": 5, "temperature": 0.0, "max_tokens": 64}


class Proxy:
    """A TCP proxy on a free port that delays what it passes on, in a loop of its own."""

    def __init__(self, target: tuple[str, int], delay_s: float) -> None:
        self._target, self._delay_s = target, delay_s / 2
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        serving = asyncio.start_server(self._pass, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.port = server.sockets[0].getsockname()[1]

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            back, forth = await asyncio.open_connection(*self._target)
            await asyncio.gather(self._copy(reader, forth), self._copy(back, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self._loop.call_later(self._delay_s, writer.write, data)
        self._loop.call_later(self._delay_s, writer.close)


@contextmanager
def serving(programs: dict[str, Path]) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """A server's gRPC and HTTP addresses."""
    react = Path(__file__).resolve().parent.parent / "examples" / "react.py"
    command = [sys.executable, "-P", "-m", "sgc", "serve", "--listen", "127.0.0.1:0", "--http", "0"]
    command += [f"--program={name}={path}" for name, path in programs.items()]
    command += ["--tools", str(react)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        url = ""
        for line in process.stderr:
            url = line.split()[-1] if line.startswith("HTTP on ") else url
            if line.startswith("listening on "):
                yield _address(line.split()[-1]), _address(url.removeprefix("http://"))
                break
        process.terminate()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


class Client:
    """Both ways to run a program, through one proxy each."""

    def __init__(self, grpc: tuple[str, int], http_: tuple[str, int], delay_s: float) -> None:
        self.endpoint = Endpoint(EngineBackend(f"grpc://127.0.0.1:{Proxy(grpc, delay_s).port}"))
        self._http = http.client.HTTPConnection("127.0.0.1", Proxy(http_, delay_s).port)

    def own(self, program: Program, row: dict[str, Any]) -> tuple[float, str, int]:
        begun = time.perf_counter()
        result = program.run_once(row, RunOptions(**OPTIONS), self.endpoint)
        took_s = time.perf_counter() - begun
        return took_s, result.text(), result.stats.requests + result.stats.commits

    def served(self, name: str, row: dict[str, Any]) -> tuple[float, str]:
        begun = time.perf_counter()
        body = json.dumps({"arguments": row, **OPTIONS})
        self._http.request("POST", f"/v1/programs/{name}", body)
        answer = json.loads(self._http.getresponse().read())
        return time.perf_counter() - begun, answer["text"]


def measured(
    client: Client, each: Workload, program: Program, name: str, reps: int
) -> dict[str, Any]:
    own, served, messages = [], [], 0
    for rep in range(reps + 1):  # the first is a warm-up
        for row in each.rows:
            own_s, text, messages = client.own(program, row)
            served_s, same = client.served(name, row)
            if text != same:
                raise SystemExit(f"{name}: served it gives another text: {text!r} and {same!r}")
            if rep:
                own.append(own_s)
                served.append(served_s)
    found = {"own_s": statistics.median(own), "served_s": statistics.median(served)}
    return {"program": name, "requests": messages, **{k: round(v, 4) for k, v in found.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--delays", default="1,50", help="milliseconds, there and back")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        chosen = {each.name.removeprefix("example "): each for each in workloads()
                  if each.name.startswith("example ")}  # fmt: skip
        files = {name: Path(folder) / f"{name}.sgir" for name in chosen}
        for name, each in chosen.items():
            each.function.compile(**each.bind).save(files[name])
        programs = {
            name: load(path, allow_tools=chosen[name].tools) for name, path in files.items()
        }
        with serving(files) as addresses:
            for delay in map(float, options.delays.split(",")):
                client = Client(*addresses, delay / 1000)
                for name, each in chosen.items():
                    row = measured(client, each, programs[name], name, options.reps)
                    row |= {"delay_ms": delay, "times": round(row["own_s"] / row["served_s"], 2)}
                    print(f"  {row}", flush=True)
                    rows.append(row)
                client.endpoint.shutdown()
    if options.out:
        about = {
            "command": f"python -P benches/served_programs.py --delays {options.delays} --reps "
            f"{options.reps}",
            "machine": machine(), "versions": {"torch": version("torch")},
            "load_before": os.getloadavg(),
        }  # fmt: skip
        options.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
