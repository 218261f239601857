"""What tools that begin early gain, one program at a time, and how many begin in vain.

    python -P benches/early_tools.py [--runs 20] [--model FOLDER] [--out FILE.json]

A program asks whether it needs a search, and searches if so; the search is a pure tool of the
question that takes as long as given. The same runs, with equal seeds, with and without
`early_tools`, in turn. Ratios of times: of all runs, and of those in which the search is needed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import Runtime

TOOL_S = (0.05, 0.2, 1.0)
QUESTIONS = (
    "What is the tallest mountain?",
    "Who wrote the play?",
    "How do bees fly?",
    "Two and two?",
)


def make(tool_s: float) -> Any:
    @sgc.tool(effect="pure")
    def search(query: str) -> str:
        time.sleep(tool_s)
        return f"Notes about {query}"

    @sgc.function
    def answers(s: Any, question: str) -> None:
        s += "Question: " + question + "\nThoughts:"
        s += sgc.gen("thoughts", max_tokens=48, ignore_eos=True)
        if "e" in s["thoughts"][:12]:
            s += "\nNotes: " + search(f"about {question.strip()}") + "\n"
        s += "\nAnswer:" + sgc.gen("answer", max_tokens=24, ignore_eos=True)

    return answers.compile()


def measured(program: Any, runtime: Endpoint, n_runs: int) -> dict[str, Any]:
    times: dict[bool, list[float]] = {False: [], True: []}
    needed, n_early, n_vain = [], 0, 0
    for number in range(n_runs):
        texts = []
        for is_early in (False, True):
            runtime.flush_cache()
            found = program.run(
                QUESTIONS[number % len(QUESTIONS)], backend=runtime, seed=number,
                early_tools=is_early,
            )  # fmt: skip
            times[is_early].append(found.stats.wall_s)
            texts.append(found.text())
            n_early += found.early_calls
            n_vain += found.early_calls - sum(call.is_early for call in found.tool_calls)
        assert texts[0] == texts[1]
        needed.append(bool(found.tool_calls))
    ratios = np.array(times[False]) / np.array(times[True])
    return {
        "without_s": float(np.median(times[False])),
        "with_s": float(np.median(times[True])),
        "ratio": float(np.median(ratios)),
        "ratio_if_needed": float(np.median(ratios[needed])) if any(needed) else None,
        "needed": float(np.mean(needed)),
        "in_vain": n_vain / max(1, n_early),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--model")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {
        "command": " ".join(["python -P benches/early_tools.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "found": {},
    }
    with Runtime(given.model) as runtime:
        for tool_s in TOOL_S:
            row = measured(make(tool_s), runtime, given.runs)
            report["found"][f"a search of {tool_s:g} s"] = row
            print(f"{tool_s:g} s", {k: v and round(v, 3) for k, v in row.items()}, flush=True)
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
