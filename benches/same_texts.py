"""The examples on one engine by three ways in: their greedy texts are the same.

    python benches/same_texts.py [--peer PYTHON] [--model M] [--out FILE.json]

The ways: sgc over gRPC; sgc through the `openai` package, on the HTTP face of the same engine; and
with `--peer`, a Python that can import SGLang's `sglang.lang` (0.5.5.post2 was tried), SGLang's own
front end on the native HTTP face, for the examples that its language can say.
Healing is off, and every generation is greedy, also one that says a temperature.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
GRPC, OPENAI, SGLANG = "sgc over gRPC", "sgc by the openai package", "SGLang's front end"
TEXT = "Ada Moor was born in 1970. She bakes bread in York."
SUM = "Ada has 3 eggs and finds 4 more. How many has she now?"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "tip_suggestion": {"topic": "staying healthy"},
    "essay_judge": {"essay": "Tea is older than paper. It travelled by road and by sea."},
    "few_shot": {"question": "What do cows drink?"},
    "chat": {"first": "What is tea?", "second": "And coffee?"},
    "extract": {"text": TEXT},
    "react": {"question": "What is 12 times 7?"},
    "router": {"question": "What is the capital of Peru?"},
    "json_retry": {"text": TEXT},
    "tree_of_thought": {"question": SUM},
    "self_consistency": {"question": SUM},
    "map_reduce": {"chunks": ["Tea is older than paper.", "It travelled by sea."]},
}

ROLES = ("chat", "json_retry")  # examples that write messages


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["sgc"] = _greedy(vars(module)["sgc"])  # the global that its functions read
    return getattr(module, name)


def client(way: str, urls: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Runs every example; yields an error for one that SGLang's language cannot express."""
    if way == SGLANG:
        import sglang as lm

        sys.modules["sgc"] = _as_ours(lm)
        backend = lm.RuntimeEndpoint(urls[way], chat_template_name="chatml")
    else:
        import sgc as lm

        backend = None
    for name, arguments in ARGUMENTS.items():
        try:
            function = example(name)
            if way == SGLANG:
                lm.set_default_backend(backend)  # SGLang does not pass one to called programs
            else:
                # Examples without roles use completions, those with roles use messages.
                more = "?api=completions" if way == OPENAI and name not in ROLES else ""
                backend = lm.connect(urls[way] + more)
                function.heal = False
            state = function.run(**arguments, backend=backend, temperature=0)
            # Messages if there are any: a provider does not show its chat template.
            yield {"name": name, "text": state.messages() or state.text()}
        except Exception as error:
            yield {"name": name, "error": f"{type(error).__name__}: {error}"}


def _greedy(lm: ModuleType) -> ModuleType:
    """The language with temperature 0 for every generation, even if it sets another one, and in
    called programs, to which SGLang does not pass the run's temperature.
    """
    named = ModuleType("sgc")
    named.__dict__.update(vars(lm))
    named.__dict__["gen"] = lambda *args, **more: lm.gen(*args, **{**more, "temperature": 0})
    return named


def _as_ours(lm: Any) -> Any:
    """SGLang's language under our name; it ignores `heal`, which is off here anyway."""
    named = ModuleType("sgc")
    named.__dict__.update(vars(lm))

    def function(body: Any = None, *, heal: bool = False) -> Any:
        return lm.function if body is None else lm.function(body)

    named.__dict__["function"] = function
    return named


def texts(way: str, python: str, urls: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The texts of one way, from a process of its own."""
    command = [python, __file__, "--as", way, "--urls", json.dumps(urls)]
    cwd = None if way == SGLANG else ROOT
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=600)
    if done.returncode:
        raise SystemExit(f"{way} failed:\n{done.stderr[-4000:]}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["name"]: row for row in rows}


def compare(found: dict[str, dict[str, dict[str, Any]]]) -> dict[str, dict[str, str]]:
    """For each example and way: "same", or the difference."""
    report: dict[str, dict[str, str]] = {}
    for name, row in found[GRPC].items():
        for way in found.keys() - {GRPC}:
            other = found[way][name]
            same = "text" in row and other.get("text") == row["text"]
            said = "same" if same else other.get("error", "another text")
            report.setdefault(name, {})[way] = said
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python that has SGLang's front end")
    parser.add_argument("--model", help="as for `sgc serve`")
    parser.add_argument("--out", type=Path, help="write the comparison and the texts here")
    parser.add_argument("--as", dest="way", help=argparse.SUPPRESS)
    parser.add_argument("--urls", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        for row in client(arguments.way, json.loads(arguments.urls)):
            print(json.dumps(row), flush=True)
        return
    from sgc.runtime.engine.launch import EmbeddedEngine

    with EmbeddedEngine(arguments.model, ["--http", "0"]) as engine:
        said = engine.stderr_tail.splitlines()
        http = next(x.removeprefix("HTTP on ") for x in said if x.startswith("HTTP on "))
        urls = {GRPC: engine.uri, OPENAI: f"openai+{http}/v1#sgc-tiny", SGLANG: http}
        pythons = {GRPC: sys.executable, OPENAI: sys.executable, SGLANG: arguments.peer}
        found = {way: texts(way, python, urls) for way, python in pythons.items() if python}
    report = compare(found)
    for name, row in report.items():
        print(f"{name:18}", "; ".join(f"{way}: {row[way]}" for way in sorted(row)))
    if arguments.out:
        made = {"report": report, "texts": found}
        arguments.out.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
