"""API speculation: three fields of a text, in one request each and all in one.

    python benches/speculation.py [-n 300] [--out benches/results/speculation.json]

Prompts are those of sgc-tiny's held-out evaluation (tools/tiny_model), asked greedily of the
shipped model through `sgc serve --http` with the official `openai` package, as of any provider:
once compiled at -O1, which asks for each field, once at -O2, which fuses the calls. Counted are
requests, tokens, and how many extractions took one request; texts must be equal.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from tiny_model.corpus import LAST_STAGE  # noqa: E402
from tiny_model.evaluate import three_fields  # noqa: E402
from tiny_model.world import World  # noqa: E402

import sgc  # noqa: E402
from sgc.passes.pipeline import optimize  # noqa: E402
from sgc.programs.program import Program  # noqa: E402
from sgc.runs.endpoints import connect  # noqa: E402
from sgc.runtime.executor.run.options import RunOptions  # noqa: E402

PACKAGES = ("openai", "torch", "aiohttp")


@sgc.function
def extract(s: Any, prompt: str, second: str, third: str) -> None:
    s += prompt + sgc.gen("first", stop="\n", max_tokens=24)
    s += "\n" + second + ":" + sgc.gen("second", stop="\n", max_tokens=24)
    s += "\n" + third + ":" + sgc.gen("third", stop="\n", max_tokens=24)


def rows(n: int, seed: int) -> list[dict[str, str]]:
    """Prompts, each with the keys that the program appends."""
    found = []
    for i in range(n):
        text = three_fields(Random(f"speculation {seed}/{i}"), World("test", stage=LAST_STAGE))
        prompt = "".join(part for part, is_new in text.parts if not is_new)
        reply = next(part for part, is_new in text.parts if is_new)
        second, third = re.findall(r"\n([^:\n]+):", reply)[:2]
        found.append({"prompt": prompt, "second": second, "third": third})
    return found


def serve() -> tuple[subprocess.Popen[str], str]:
    """Starts a server of the default model on a free port; returns it and its address."""
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "sgc", "serve", "--http", "127.0.0.1:0", "--listen",
         "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    said = ""
    for line in server.stdout:
        said += line
        found = re.search(r"http://[\d.]+:\d+", line)
        if found:
            return server, found.group()
    raise SystemExit(f"the server did not start:\n{said}")


def run(program: Program, endpoint: sgc.Endpoint, given: list[dict[str, str]]) -> dict[str, Any]:
    options = RunOptions(temperature=0.0)
    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(lambda row: program.run_once(row, options, endpoint), given))
    stats = [result.stats for result in results]
    return {
        "texts": [result.text() for result in results],
        "requests": sum(each.requests for each in stats),
        "prompt_tokens": sum(each.prompt_tokens for each in stats),
        "completion_tokens": sum(each.completion_tokens for each in stats),
        "in_one_request": sum(each.requests == 1 for each in stats),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/speculation.json")
    given = parser.parse_args()
    graph = extract.compile().graph
    asked = rows(given.n, given.seed)
    server, address = serve()
    try:
        endpoint = connect(f"openai+{address}/v1#?api=completions")
        found = {
            name: run(Program(optimize(graph, level)), endpoint, asked)
            for name, level in (("plain", 1), ("fused", 2))
        }
    finally:
        server.terminate()
        server.wait(30)
    texts = {name: each.pop("texts") for name, each in found.items()}
    equal = sum(one == two for one, two in zip(texts["plain"], texts["fused"], strict=True))
    report = {
        "command": f"python benches/speculation.py -n {given.n} --seed {given.seed}",
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in PACKAGES},
        "rows": given.n,
        "equal_texts": equal,
        "fused_share": found["fused"]["in_one_request"] / given.n,
        "requests_ratio": found["plain"]["requests"] / found["fused"]["requests"],
        "prompt_tokens_ratio": found["plain"]["prompt_tokens"] / found["fused"]["prompt_tokens"],
        **found,
    }
    given.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
