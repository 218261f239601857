"""SGLang's own front end on `sgc serve --http`, beside sgc's on the same engine.

    python benches/sglang_frontend.py --peer PYTHON [--model M] [--out FILE.json]

PYTHON is a Python that can import SGLang's `sglang.lang` (0.5.5.post2 was tried: `pip install
--no-deps sglang==0.5.5.post2`, and what importing it then asks for). The same programs run
greedily on three front ends: SGLang's over HTTP, sgc's over the same HTTP, and sgc's own over
gRPC, healing off. Reports whose final texts and variables are equal. They need not all be: over
HTTP a prompt is text, and what was generated is tokenized anew with it, while gRPC keeps the
tokens as they were generated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FRONT_ENDS = ("sglang over HTTP", "sgc over HTTP", "sgc over gRPC")
SUBJECTS = ["France", "Japan", "a baker", "the river", "seven", "a search engine"]
COLOURS = ["red", "blue", "green"]
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
)
# SGLang does not remove the match of a stop pattern from the text; sgc does.
DIFFERS = {"stop_regex"}
Program = Callable[..., Any]


def programs(lm: Any) -> dict[str, Program]:
    """The programs, in the language that both front ends share; each takes s and x."""
    made: dict[str, Program] = {}

    def program(function: Program) -> Program:
        made[function.__name__] = lm.function(function)
        return made[function.__name__]

    @program
    def plain(s, x):
        s += f"The capital of {x} is" + lm.gen("a", max_tokens=12)

    @program
    def stop(s, x):
        s += f"Question: what is {x}?\nAnswer:" + lm.gen("a", max_tokens=24, stop=["\n", "."])
        s += "\nNext:" + lm.gen("b", max_tokens=8, stop="\n")

    @program
    def stop_regex(s, x):
        s += f"About {x}:" + lm.gen("a", max_tokens=24, stop_regex=r"[.!?]")

    @program
    def chat(s, x):
        s += lm.system("You are a helpful assistant.")
        s += lm.user(f"What is {x}?")
        s += lm.assistant(lm.gen("a", max_tokens=20))
        s += lm.user("And then?")
        s += lm.assistant(lm.gen("b", max_tokens=20))

    @program
    def tips(s, x):
        s += f"Here are two tips for {x}:\n1. sleep. 2. eat.\n"
        forks = s.fork(2)
        for i, each in enumerate(forks):
            each += f"Tip {i + 1}:" + lm.gen("tip", max_tokens=12, stop="\n")
        forks.join()
        s += f"First: {forks[0]['tip']}\nSecond: {forks[1]['tip']}\nSummary:"
        s += lm.gen("summary", max_tokens=12)

    @program
    def regex(s, x):
        s += f"The phone number of {x} is " + lm.gen("a", max_tokens=16, regex=r"\d{3}-\d{4}")

    @program
    def typed(s, x):
        s += f"{x} has this many letters: " + lm.gen("a", max_tokens=6, dtype=int)
        s += " True or false: " + lm.gen("b", max_tokens=6, dtype=bool)

    @program
    def schema(s, x):
        s += f"A person who knows {x}: " + lm.gen("a", max_tokens=48, json_schema=SCHEMA)

    @program
    def select(s, x):
        s += f"The colour of {x} is " + lm.select("a", COLOURS)
        s += ". Is that so?" + lm.select("b", [" yes", " no", " not at all"])

    @program
    def select_greedy(s, x):
        choices = ["red", "reddish brown", "blue"]
        method = lm.greedy_token_selection
        s += f"The colour of {x} is " + lm.select("a", choices, choices_method=method)

    @program
    def select_unconditional(s, x):
        method = lm.unconditional_likelihood_normalized
        s += f"The colour of {x} is" + lm.gen(
            "a", choices=[" red", " deep blue", " green"], choices_method=method
        )

    @program
    def branch(s, x):
        s += f"To learn about {x} I need a " + lm.select("tool", ["search engine", "calculator"])
        if s["tool"] == "calculator":
            s += ". The expression is:" + lm.gen("a", max_tokens=8)
        else:
            s += ". The key word is:" + lm.gen("a", max_tokens=8)

    @program
    def expand(s, x):
        s += f"Please expand the following tip into a detailed paragraph: {x}\n"
        s += lm.gen("paragraph", max_tokens=24, temperature=0)  # SGLang does not pass the run's

    @program
    def nested(s, x):
        s += f"Here are 2 concise tips for {x}.\n1."
        s += lm.gen("tip", max_tokens=16, stop=["\n", ":", "."]) + "\n"
        inside = expand(x=s["tip"])
        s += "Tip: " + inside["paragraph"] + "\nIn summary," + lm.gen("summary", max_tokens=12)

    @program
    def penalties(s, x):
        s += f"{x}, {x}, {x}," + lm.gen(
            "a", max_tokens=16, frequency_penalty=1.0, presence_penalty=0.5, ignore_eos=True
        )

    return made


def client(front_end: str, url: str) -> Iterator[dict[str, Any]]:
    """Runs every program on every subject one by one, and as a batch, and once as a stream."""
    if front_end.startswith("sglang"):
        import sglang as lm

        backend = lm.RuntimeEndpoint(url, chat_template_name="chatml")
        backend.flush_cache()
    else:
        import sgc as lm

        is_http = "HTTP" in front_end
        backend = (
            lm.RuntimeEndpoint(url, chat_template_name="chatml") if is_http else lm.connect(url)
        )
    lm.set_default_backend(backend)
    for name, program in programs(lm).items():
        for x in SUBJECTS:
            state = program.run(x=x, temperature=0)
            yield {"key": f"{name}({x})", "text": state.text(), "variables": _variables(state)}
        state = program.run(x=SUBJECTS[0], temperature=0, stream=True)
        pieces = list(state.text_iter())
        yield {"key": f"{name}({SUBJECTS[0]}) streamed", "text": "".join(pieces), "variables": {}}
        states = program.run_batch([{"x": x} for x in SUBJECTS], temperature=0)
        texts = [state.text() for state in states]
        yield {"key": f"{name} batch", "text": json.dumps(texts), "variables": {}}


NAMES = ("a", "b", "tip", "summary", "paragraph", "tool")


def _variables(state: Any) -> dict[str, Any]:
    found = {}
    for name in NAMES:
        try:
            found[name] = state[name]
        except KeyError:
            continue
    return {name: value for name, value in found.items() if value is not None}


def results(front_end: str, python: str, url: str) -> dict[str, Any]:
    """The results of one front end, from a process of its own."""
    command = [python, __file__, "--as", front_end, "--url", url]
    cwd = None if front_end.startswith("sglang") else ROOT
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        raise SystemExit(f"{front_end} failed:\n{done.stderr[-4000:]}")
    rows = map(json.loads, lines)
    return {row["key"]: [row["text"], row["variables"]] for row in rows}


def compare(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    first, report = FRONT_ENDS[0], {}
    for other in FRONT_ENDS[1:]:
        keys = [key for key in found[first] if key.split("(")[0].split(" ")[0] not in DIFFERS]
        unequal = [key for key in keys if found[first][key] != found[other].get(key)]
        report[other] = {"runs": len(keys), "equal": len(keys) - len(unequal), "unequal": unequal}
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python that has SGLang's front end")
    parser.add_argument("--model", help="as for `sgc serve`")
    parser.add_argument("--out", type=Path, help="write the comparison and unequal texts here")
    parser.add_argument("--as", dest="front_end", choices=FRONT_ENDS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.front_end:
        for row in client(arguments.front_end, arguments.url):
            print(json.dumps(row), flush=True)
        return
    if not arguments.peer:
        parser.error("--peer is missing")
    from sgc.runtime.engine.launch import EmbeddedEngine

    with EmbeddedEngine(arguments.model, ["--http", "0"]) as engine:
        url = next(
            line.removeprefix("HTTP on ")
            for line in engine.stderr_tail.splitlines()
            if line.startswith("HTTP on ")
        )
        pythons = (arguments.peer, sys.executable, sys.executable)
        urls = (url, url, engine.uri)
        found = {
            name: results(name, python, at)
            for name, python, at in zip(FRONT_ENDS, pythons, urls, strict=True)
        }
    report = compare(found)
    print(json.dumps(report, indent=1))
    if arguments.out:
        unequal = {key for each in report.values() for key in each["unequal"]}
        texts = {name: {key: rows[key] for key in unequal} for name, rows in found.items()}
        written = {"report": report, "unequal": texts}
        arguments.out.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
